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

    let directory: any HubDelivery.Directory

    /// One answer for each delivery, in their order.
    /// - Parameter now: milliseconds since 1970.
    func find(_ deliveries: [DeliveryRecord], now: Int64) async -> [Found] {
        // A backend named the others: there is no device whose token could have changed.
        let registered = deliveries.filter { $0.address == nil }
        var devices = await read(registered.map { DeviceName(app: $0.app, user: $0.user, id: $0.device) }).makeIterator()
        return deliveries.map { delivery in
            if let address = delivery.address {
                return .target(
                    PushTarget(
                        app: delivery.app, device: delivery.device, provider: address.provider, platform: address.platform,
                        token: address.text, form: address.form, environment: address.environment), lastAcceptedAt: nil)
            }
            guard case .success(let device) = devices.next() else { return .unknown }
            guard let device, let token = device.token else { return .none(reason: "no token") }
            guard device.notifications else { return .none(reason: "permission denied") }
            if TokenAge.isExpired(device, now: now) { return .none(reason: "token expired") }
            return .target(
                PushTarget(
                    app: delivery.app, device: delivery.device, provider: device.provider, platform: device.platform, token: token,
                    form: device.form, environment: device.environment, isProven: device.lastAcceptedAt != nil),
                lastAcceptedAt: device.lastAcceptedAt ?? 0)
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
