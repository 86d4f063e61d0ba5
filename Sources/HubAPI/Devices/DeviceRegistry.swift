internal import HubCore
internal import HubDelivery

/// Stores registrations, and bounds the number of devices per user.
struct DeviceRegistry: Sendable {
    let directory: any PeopleStore
    let time: any TimeSource
    /// Environment of APNs tokens without one.
    let defaultEnvironment: APNsEnvironment

    /// Every event reads all devices of its recipients. If exceeded, the device with the oldest registration is dropped, because it is
    /// the most likely to be dead.
    static let devicesPerUserMax = 50

    /// - Parameters:
    ///   - former: the stored device.
    ///   - keepsFormer: whether missing members keep their values instead of getting their defaults.
    func put(
        _ registration: DeviceRegistration, of owner: DeviceRegistration.Owner, by writer: DeviceWriter, former: Device?, keepsFormer: Bool
    ) async throws -> Device {
        let device = try registration.device(
            of: owner, former: keepsFormer ? former : nil, environment: defaultEnvironment, now: time.wallMilliseconds)
        return try await directory.putDevice(device, by: writer, perUserMax: Self.devicesPerUserMax)
    }

    func stored(_ owner: DeviceRegistration.Owner) async throws -> Device? {
        try await directory.device(app: owner.app, user: owner.user, id: owner.device)
    }

    func delete(_ owner: DeviceRegistration.Owner) async throws {
        _ = try await directory.deleteDevice(app: owner.app, user: owner.user, id: owner.device)
    }

    /// A device in an answer. The token is left out: permission to read a device is no permission to push to it.
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
            "form": .string(device.form.rawValue),
            "timezone": JSONValue(orNull: device.timezone),
            "app_version": JSONValue(orNull: device.appVersion),
            "registered_at": .string(Timestamp.iso8601(milliseconds: device.registeredAt)),
            "refreshed_at": .string(Timestamp.iso8601(milliseconds: device.refreshedAt)),
            "last_accepted_at": device.lastAcceptedAt.map { .string(Timestamp.iso8601(milliseconds: $0)) } ?? .null,
        ]
    }
}
