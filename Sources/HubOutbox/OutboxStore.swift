internal import HubCore
internal import HubDelivery
internal import Logging

/// The outbox's reads and writes: store and directory, for the steps of its flow. A failure is logged here, and answered with nil.
struct OutboxStore: Sendable {
    let directory: any PeopleStore
    let store: any DeliveryStore
    let time: any TimeSource
    let logger: Logger
    /// Facts for whoever looks; nil: nobody can.
    var live: LiveStream?

    // MARK: Reading

    /// The channels of events, in order.
    func channels(of events: [String]) async -> [String?] {
        var channels: [String?] = []
        for event in events {
            let record = await logged("an event could not be read; its pushes go by the standard limits", ["event": "\(event)"]) {
                try await store.event(id: event)
            }
            channels.append(record??.channel)
        }
        return channels
    }

    /// The time zones of the pushes' devices, in order.
    func zones(of pushes: [PushRecord]) async -> [String?] {
        var zones: [String?] = []
        for push in pushes {
            let device = await logged(
                "a device could not be read; its quiet hours go by the definition's time zone", ["push.nid": "\(push.nid)"]
            ) { try await directory.device(app: push.app, user: push.user, id: push.device) }
            zones.append(device??.timezone)
        }
        return zones
    }

    /// Devices in order, and the places of those that cannot be read.
    func targets(of devices: [DeviceName]) async -> (found: [DeviceTarget?], unread: Set<Int>) {
        do {
            return (try await directory.targets(of: devices), [])
        } catch {
            // One row that cannot be read must not hold up its neighbours.
            var found: [DeviceTarget?] = []
            var unread: Set<Int> = []
            for (place, name) in devices.enumerated() {
                do {
                    found.append(try await directory.device(app: name.app, user: name.user, id: name.id).map(DeviceTarget.init))
                } catch {
                    found.append(nil)
                    unread.insert(place)
                }
            }
            return (found, unread)
        }
    }

    /// The failures of following a recipient, in a round and after a dead token.
    static let waitingNotFollowed: Logger.Message = "devices of waiting pushes could not be looked at again; trying again"
    static let deadNotFollowed: Logger.Message = "whose token is dead could not be looked for on other devices"

    /// The devices of users, by app and user.
    /// - Parameters:
    ///   - users: by app.
    ///   - failure: for the log.
    func devices(of users: [String: [String]], failure: Logger.Message) async -> [String: [String: [Device]]]? {
        await logged(failure) {
            var devices: [String: [String: [Device]]] = [:]
            for (app, users) in users { devices[app] = try await directory.devices(app: app, users: users) }
            return devices
        }
    }

    func reload(limit: Int) async -> [PushRecord]? {
        await logged("open deliveries could not be read") { try await store.openDeliveries(limit: limit) }
    }

    // MARK: Writing

    private static let retryEvery = Duration.seconds(1)

    func redirect(_ redirections: [Redirection], now: Int64, failure: Logger.Message) async -> [RedirectionOutcome]? {
        await logged(failure) { try await store.redirect(redirections, now: now) }
    }

    func lease(_ pushes: [PushRecord]) async -> [PushRecord]? {
        await logged("deliveries could not be leased; trying again") { try await store.lease(pushes) }
    }

    /// A failure leaves the store as it was: the pushes are repeated after the next start.
    /// - Returns: pushes that have ended instead of being tried again.
    /// - Parameter retries: how often it is tried again, a second after each failure.
    func update(_ pushes: [PushRecord], retries: Int = 0) async -> [PushRecord]? {
        live?.note(pushes)
        var left = retries
        while true {
            let withdrawn = await logged(
                "the outcome of pushes could not be stored", ["push.nid": "\(pushes.first?.nid ?? "")", "count": "\(pushes.count)"]
            ) { try await store.update(pushes) }
            if withdrawn != nil || left == 0 { return withdrawn }
            left -= 1
            // Nobody cancels the task.
            try? await Task.sleep(for: Self.retryEvery)
        }
    }

    /// Notes side by side, so that the store needs one transaction: an app that its users have removed gives thousands of dead tokens.
    func write(_ notes: [PushFlow.TokenNote]) async {
        await withTaskGroup(of: Void.self) { group in
            for note in notes {
                group.addTask {
                    switch note {
                    case .dead(let token, let app, let provider, let since): await remove(token, app: app, of: provider, deadSince: since)
                    case .accepted(let token, let app, let provider, let environment):
                        await noteAccepted(token, app: app, of: provider, environment)
                    }
                }
            }
        }
    }

    /// - Parameter deadSince: milliseconds since 1970; nil: the gateway gave no time.
    func remove(_ token: String, app: String, of provider: PushProvider, deadSince: Int64?) async {
        _ = await logged("a dead token could not be removed") {
            try await directory.removeToken(token, app: app, provider: provider, deadSince: deadSince)
        }
    }

    private func noteAccepted(_ token: String, app: String, of provider: PushProvider, _ environment: APNsEnvironment) async {
        // After a failure the next accepted push says it again.
        _ = await logged("that a token was accepted could not be written down") {
            try await directory.noteAccepted(
                token: token, app: app, provider: provider, environment: environment, at: time.wallMilliseconds)
        }
    }

    private func logged<Value: Sendable>(
        _ failure: Logger.Message, _ metadata: Logger.Metadata = [:], _ work: () async throws -> Value
    ) async -> Value? {
        do {
            return try await work()
        } catch {
            logger.error(failure, metadata: metadata.merging(["error": "\(error)"]) { own, _ in own })
            return nil
        }
    }
}
