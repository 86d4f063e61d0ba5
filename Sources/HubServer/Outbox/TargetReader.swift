internal import HubDelivery

/// Where pushes go: read when they are sent, for many of them together.
struct TargetReader {
    enum Found {
        /// - Parameter lastAcceptedAt: milliseconds since 1970, 0 for never; nil: there is no device that it could be noted of.
        case target(PushTarget, lastAcceptedAt: Int64?)
        /// There is nothing to send to.
        case none(reason: String)
        /// The store could not be read.
        case unknown
    }

    struct Answer {
        let found: Found
        /// The device or its token is another than when the push was decided, or others may have come since: it is to be looked at again.
        let isChanged: Bool
    }

    let directory: any HubDelivery.Directory
    let tokenAge: TokenAge

    /// How long after its event a push is looked at again for devices that have come since, in milliseconds. What goes out sooner reads
    /// its own device and nothing else.
    static let waitingMin: Int64 = 60_000

    /// One answer for each delivery, in their order.
    /// - Parameter now: milliseconds since 1970.
    func find(_ deliveries: [PushRecord], now: Int64) async -> [Answer] {
        // A backend named the others: there is no device whose token could have changed.
        let registered = deliveries.filter { $0.address == nil }
        var devices = await read(registered.map { DeviceName(app: $0.app, user: $0.user, id: $0.device) }).makeIterator()
        return deliveries.map { delivery in
            if let address = delivery.address {
                let target = PushTarget(
                    app: delivery.app, device: delivery.device, provider: address.provider, platform: address.platform,
                    token: address.text, form: address.form, environment: address.environment)
                return Answer(found: .target(target, lastAcceptedAt: nil), isChanged: false)
            }
            guard case .success(let device) = devices.next() else { return Answer(found: .unknown, isChanged: false) }
            let found = Self.found(device, for: delivery, now: now)
            guard delivery.purpose == .notification, let timing = delivery.timing else { return Answer(found: found, isChanged: false) }
            if case .none = found { return Answer(found: found, isChanged: true) }
            let isNewer = device.map { Self.isNew(registeredAt: $0.registeredAt, timing, now: now) } ?? true
            return Answer(found: found, isChanged: isNewer || now - timing.committedAt >= Self.waitingMin)
        }
    }

    /// A registration in the future was made before the wall clock was set back.
    private static func isNew(registeredAt: Int64, _ timing: PushMessage.Timing, now: Int64) -> Bool {
        registeredAt > timing.committedAt && registeredAt <= now
    }

    private static func found(_ device: DeviceTarget?, for delivery: PushRecord, now: Int64) -> Found {
        guard let device else { return .none(reason: "no device") }
        guard let token = device.token else { return .none(reason: "no token") }
        guard device.notifications else { return .none(reason: "permission denied") }
        if TokenAge.isExpired(device, now: now) { return .none(reason: "token expired") }
        return .target(
            PushTarget(
                app: delivery.app, device: delivery.device, provider: device.provider, platform: device.platform, token: token,
                form: device.form, environment: device.environment, isProven: device.lastAcceptedAt != nil),
            lastAcceptedAt: device.lastAcceptedAt ?? 0)
    }

    /// The devices that each delivery's person can be reached on now, newest registration first, in the deliveries' order.
    /// - Parameter now: milliseconds since 1970.
    func reachable(for deliveries: [PushRecord], now: Int64) async throws -> [[Redirection.Reachable]] {
        var devices: [String: [String: [Device]]] = [:]
        for (app, own) in Dictionary(grouping: deliveries, by: \.app) {
            devices[app] = try await directory.devices(app: app, users: Array(Set(own.map(\.user))))
        }
        return deliveries.map { delivery in
            guard let timing = delivery.timing, let own = devices[delivery.app]?[delivery.user] else { return [] }
            return tokenAge.worthTrying(own, for: timing.policy, now: now).compactMap { device in
                guard device.notifications, let token = device.token else { return nil }
                return Redirection.Reachable(
                    device: device.id, token: TokenMark(token, of: device.provider),
                    isNew: Self.isNew(registeredAt: device.registeredAt, timing, now: now))
            }
        }
    }

    private func read(_ devices: [DeviceName]) async -> [Result<DeviceTarget?, any Error>] {
        if devices.isEmpty { return [] }
        do {
            return try await directory.targets(of: devices).map { .success($0) }
        } catch {
            // One row that cannot be read must not hold up its neighbours.
            var found: [Result<DeviceTarget?, any Error>] = []
            for name in devices {
                do {
                    found.append(.success(try await directory.device(app: name.app, user: name.user, id: name.id).map(DeviceTarget.init)))
                } catch {
                    found.append(.failure(error))
                }
            }
            return found
        }
    }
}
