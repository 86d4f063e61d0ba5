internal import HubCore
internal import HubDelivery

/// Stores registrations, and keeps the number of one user's devices bounded.
struct DeviceShelf: Sendable {
    let directory: any Directory
    let time: any TimeSource
    /// Of APNs tokens that come without one.
    let defaultEnvironment: APNsEnvironment

    /// Every event reads all devices of its recipients. Beyond this the longest registered one makes room, which is the one
    /// most likely to be dead.
    static let devicesPerUserMax = 50

    /// - Parameters:
    ///   - former: the device as it is stored.
    ///   - keepsFormer: whether members that are not given stay as they are, instead of getting their defaults.
    func put(
        _ registration: DeviceRegistration, of owner: DeviceRegistration.Owner, former: Device?, keepsFormer: Bool
    ) async throws -> Device {
        let device = try registration.device(
            of: owner, former: keepsFormer ? former : nil, environment: defaultEnvironment, now: time.wallMilliseconds)
        if former == nil { try await makeRoom(owner) }
        return try await directory.putDevice(device)
    }

    func stored(_ owner: DeviceRegistration.Owner) async throws -> Device? {
        try await directory.device(app: owner.app, user: owner.user, id: owner.device)
    }

    func delete(_ owner: DeviceRegistration.Owner) async throws {
        _ = try await directory.deleteDevice(app: owner.app, user: owner.user, id: owner.device)
    }

    private func makeRoom(_ owner: DeviceRegistration.Owner) async throws {
        let devices = try await directory.devices(app: owner.app, user: owner.user)
        guard devices.count >= Self.devicesPerUserMax else { return }
        let oldestFirst = devices.sorted { ($0.registeredAt, $0.id) < ($1.registeredAt, $1.id) }
        for device in oldestFirst.prefix(devices.count - Self.devicesPerUserMax + 1) {
            _ = try await directory.deleteDevice(app: device.app, user: device.user, id: device.id)
        }
    }

    /// A device as answers show it. The token itself stays here: whoever may read a device need not be able to send to it.
    static func answer(_ device: Device) -> JSONValue {
        [
            "user": .string(device.user),
            "device": .string(device.id),
            "platform": .string(device.platform.rawValue),
            "provider": .string(device.provider.rawValue),
            "environment": .string(device.environment.rawValue),
            "locale": JSONValue(orNull: device.locale),
            "notifications": .bool(device.notifications),
            "has_token": .bool(device.token != nil),
            "registered_at": .string(Timestamp.iso8601(milliseconds: device.registeredAt)),
        ]
    }
}
