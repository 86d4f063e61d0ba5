package import HubDelivery
package import Logging
internal import Synchronization

/// How many pushes ended how, for one provider, since the start.
package struct PushCounts: Sendable, Equatable {
    package var accepted = 0
    package var retry = 0
    package var dead = 0
    package var rejected = 0
    package var skippedUnconfigured = 0

    package init() {}

    mutating func note(_ outcome: PushOutcome) {
        switch outcome {
        case .accepted: accepted += 1
        case .retry: retry += 1
        case .dead: dead += 1
        case .rejected: rejected += 1
        case .skippedUnconfigured: skippedUnconfigured += 1
        }
    }
}

/// Sends each push through its target's provider, and logs those whose provider has no credentials.
package final class PushRouter: ClosablePushGateway {
    private let apns: (any ClosablePushGateway)?
    private let fcm: (any ClosablePushGateway)?
    private let logger: Logger
    private let counted = Mutex<[PushProvider: PushCounts]>([:])

    /// - Parameters:
    ///   - apns: nil without APNs credentials.
    ///   - fcm: nil without FCM credentials.
    package init(apns: (any ClosablePushGateway)?, fcm: (any ClosablePushGateway)?, logger: Logger) {
        self.apns = apns
        self.fcm = fcm
        self.logger = logger
    }

    /// Whether pushes to this provider are really sent.
    package func isConfigured(_ provider: PushProvider) -> Bool { gateway(provider) != nil }

    private func gateway(_ provider: PushProvider) -> (any ClosablePushGateway)? {
        switch provider {
        case .apns: apns
        case .fcm: fcm
        }
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let provider = target.provider
        guard let gateway = gateway(provider) else {
            let log = PushLog(message, target)
            // Off the caller's thread like every other completion, because the caller may hold locks.
            Task { [self] in
                logger.info("push not sent: no credentials for its provider", metadata: log.metadata(.skippedUnconfigured))
                note(provider, .skippedUnconfigured)
                completion(.skippedUnconfigured)
            }
            return
        }
        gateway.send(message, to: target) { [self] outcome in
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
        apns?.shutdown(grace: grace)
        fcm?.shutdown(grace: grace)
    }
}
