internal import Dispatch
package import HubCore
package import HubDelivery
package import Logging
internal import Synchronization

/// Sends each push with its app's credentials for the target's provider. Pushes to a provider without credentials are logged.
///
/// Credentials can be replaced at any time: pushes in flight end on the old lanes, and later ones take the new lanes.
package final class PushRouter: ClosablePushGateway {
    /// Time for unused lanes to end the pushes in flight.
    package static let drain = Duration.seconds(15)

    private struct Route: Sendable {
        var apns: (any ClosablePushGateway)?
        var fcm: (any ClosablePushGateway)?

        subscript(provider: PushProvider) -> (any ClosablePushGateway)? {
            switch provider {
            case .apns: apns
            case .fcm: fcm
            }
        }
    }

    private struct Routes: Sendable {
        var common = Route()
        var apps: [String: Route] = [:]

        subscript(app: String, provider: PushProvider) -> (any ClosablePushGateway)? {
            guard !apps.isEmpty, let own = apps[app] else { return common[provider] }
            return own[provider]
        }
    }

    private struct State {
        var routes = Routes()
        /// Nil if the gateways were passed in.
        var lanes: PushLanes?
        var credentials: [PushCredentials] = []
        var isClosed = false
    }

    private let logger: Logger
    private let state: Mutex<State>
    private let counted = Mutex<[PushProvider: PushCounts]>([:])

    /// - Parameters:
    ///   - apns: nil without APNs credentials.
    ///   - fcm: nil without FCM credentials.
    package init(apns: (any ClosablePushGateway)?, fcm: (any ClosablePushGateway)?, logger: Logger) {
        self.logger = logger
        state = Mutex(State(routes: Routes(common: Route(apns: apns, fcm: fcm))))
    }

    /// Makes the lanes for the credentials, one per distinct credential.
    /// - Throws: if a credential cannot be used.
    package init(
        _ credentials: PushCredentialSet, time: any TimeSource, logger: Logger, reports: PushReports
    ) throws(PushConfigurationError) {
        self.logger = logger
        state = Mutex(State())
        try state.withLock { state throws(PushConfigurationError) in
            let lanes = PushLanes(time: time, logger: logger, reports: reports)
            state.lanes = lanes
            _ = try Self.install(credentials, lanes, &state)
        }
    }

    /// Replaces the credentials. Lanes with an unchanged credential stay; others end in the background.
    /// - Returns: the number of lanes that end.
    /// - Throws: if a credential cannot be used; the former ones then stay in force.
    @discardableResult
    package func replace(_ credentials: PushCredentialSet) throws(PushConfigurationError) -> Int {
        let closers = try state.withLock { state throws(PushConfigurationError) -> [@Sendable (Duration) -> Void] in
            guard let lanes = state.lanes, !state.isClosed else { return [] }
            return try Self.install(credentials, lanes, &state)
        }
        if !closers.isEmpty {
            // Closing blocks its thread, which must be none of Swift's pool.
            DispatchQueue.global().async { PushLanes.close(closers, grace: Self.drain) }
        }
        return closers.count
    }

    private static func install(
        _ set: PushCredentialSet, _ lanes: PushLanes, _ state: inout State
    ) throws(PushConfigurationError) -> [@Sendable (Duration) -> Void] {
        func route(_ credentials: PushCredentials) throws(PushConfigurationError) -> Route {
            var route = Route()
            if let apns = credentials.apns { route.apns = try lanes.gateway(apns) }
            if let fcm = credentials.fcm { route.fcm = try lanes.gateway(fcm) }
            return route
        }
        let used = [set.common] + set.apps.values
        do throws(PushConfigurationError) {
            let common = try route(set.common)
            var apps: [String: Route] = [:]
            for (app, credentials) in set.apps { apps[app] = try route(credentials) }
            state.routes = Routes(common: common, apps: apps)
            state.credentials = used
            return lanes.retire(allBut: used)
        } catch {
            // Lanes made before the fault was found have carried nothing yet.
            PushLanes.close(lanes.retire(allBut: state.credentials), grace: .zero)
            throw error
        }
    }

    /// Lanes with connections of their own; for tests and metrics.
    package var laneCount: Int { state.withLock { $0.lanes?.count ?? 0 } }

    /// Numbers of all lanes, in no particular order.
    package var lanes: [LaneCounters] { state.withLock { $0.lanes?.figures ?? [] } }

    /// Whether pushes to this provider are sent, for apps without credentials of their own.
    package func isConfigured(_ provider: PushProvider) -> Bool { state.withLock { $0.routes.common[provider] } != nil }

    private func gateway(app: String, _ provider: PushProvider) -> (any ClosablePushGateway)? {
        state.withLock { $0.routes[app, provider] }
    }

    package func room(on route: PushRoute) -> PushRoom {
        // A push without credentials ends at once.
        gateway(app: route.app, route.provider)?.room(on: route) ?? .unlimited
    }

    /// Asks each lane once about its pushes: this, the app's gateway, `PushLane` and `LaneAdmission` are the whole way of the question.
    package func admit(_ candidates: [PushCandidate]) -> [PushAdmission] {
        let ways = candidates.map { candidate in
            var way = candidate.target.route
            way.isUnproven = false
            return way
        }
        guard let first = ways.first else { return [] }
        let routes = state.withLock { $0.routes }
        // A push without credentials ends at once.
        func ask(_ way: PushRoute, _ candidates: [PushCandidate]) -> [PushAdmission] {
            routes[way.app, way.provider]?.admit(candidates) ?? candidates.map { _ in .go }
        }
        if ways.allSatisfy({ $0 == first }) { return ask(first, candidates) }
        var answers = Array(repeating: PushAdmission.go, count: candidates.count)
        for (way, places) in Dictionary(grouping: candidates.indices, by: { ways[$0] }) {
            for (place, answer) in zip(places, ask(way, places.map { candidates[$0] })) { answers[place] = answer }
        }
        return answers
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        send(message, to: target, departs: { true }, completion: completion)
    }

    package func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        let provider = target.provider
        guard let gateway = gateway(app: target.app, provider) else {
            let log = PushLog(message, target)
            // Asynchronous like every other completion, because the caller may hold locks.
            Task { [self] in
                logger.info("push not sent: no credentials for its provider", metadata: log.metadata(.skippedUnconfigured))
                note(provider, .skippedUnconfigured)
                completion(.skippedUnconfigured)
            }
            return
        }
        gateway.send(message, to: target, departs: departs) { [self] outcome in
            note(provider, outcome)
            completion(outcome)
        }
    }

    private func note(_ provider: PushProvider, _ outcome: PushOutcome) {
        counted.withLock { $0[provider, default: PushCounts()].note(outcome) }
    }

    /// Outcomes by provider; a provider without any is missing.
    package var counts: [PushProvider: PushCounts] { counted.withLock { $0 } }

    package func shutdown(grace: Duration) {
        let (closers, common) = state.withLock { state in
            state.isClosed = true
            return (state.lanes?.retire(allBut: []) ?? [], state.lanes == nil ? state.routes.common : Route())
        }
        PushLanes.close(closers, grace: grace)
        common.apns?.shutdown(grace: grace)
        common.fcm?.shutdown(grace: grace)
    }
}
