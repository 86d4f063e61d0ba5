/// A push that is not retried: its gateway refused it, or its attempts are used up.
package struct DeadLetter: Sendable, Equatable {
    /// The row; `outcome` has the reason. It has its message, unless that can no longer be read.
    package var delivery: PushRecord
    /// Push service of the device; nil if the device is gone.
    package var provider: PushProvider?
    /// Attempts in the order of their numbers.
    package var attempts: [DeliveryAttempt]
    /// Place among the app's dead letters.
    package var place: Place

    /// Place among the app's dead letters, ordered by the time of failure.
    package struct Place: Sendable, Hashable {
        /// Time of the failure, in milliseconds since 1970.
        package var failedAt: Int64
        /// Orders failures of the same time.
        package var row: Int64

        /// A place to list from.
        package init(failedAt: Int64, row: Int64) {
            self.failedAt = failedAt
            self.row = row
        }
    }

    /// A dead letter as stored.
    package init(delivery: PushRecord, provider: PushProvider?, attempts: [DeliveryAttempt], place: Place) {
        self.delivery = delivery
        self.provider = provider
        self.attempts = attempts
        self.place = place
    }

    /// Most dead letters that one call replays or dismisses.
    package static let stepMax = 1_000
}

/// A choice among an app's dead letters.
package enum DeadLetterSelection: Sendable, Equatable {
    /// All devices of these notifications.
    case nids([String])
    /// Failures before a time in milliseconds since 1970, with an outcome that is the reason or begins with it and a colon. Nil sets no
    /// condition.
    case failed(reason: String?, before: Int64?)
}

/// Result of a replay.
package struct DeadLetterReplay: Sendable, Equatable {
    /// Replayed pushes as they are now: due, without any attempt, to be handed to the outbox.
    package var due: [PushRecord]
    /// Pushes that stay dead, because they have expired and the replay gave them no time. Listed only if the selection names notifications.
    package var expired: [PushRecord]

    /// Result for the caller of the store.
    package init(due: [PushRecord], expired: [PushRecord]) {
        self.due = due
        self.expired = expired
    }
}

/// Dead letters: failed deliveries that still have their message, until their event is pruned. Callable from any thread.
package protocol DeadLetterStore: Sendable {
    /// Dead letters after a place, without messages, in the order of their failure.
    func deadLetters(app: String, reason: String?, after place: DeadLetter.Place?, limit: Int) async throws -> [DeadLetter]
    func deadLetter(app: String, nid: String, device: String) async throws -> DeadLetter?
    /// Makes at most `DeadLetter.stepMax` dead letters due again, those that failed first, with a fresh count of attempts, in one
    /// transaction.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - ttl: their lifetime from now on, in milliseconds; nil keeps their time of expiry.
    func replayDeadLetters(_ selection: DeadLetterSelection, app: String, now: Int64, ttl: Int64?) async throws -> DeadLetterReplay
    /// Ends at most `DeadLetter.stepMax` dead letters as cancelled.
    /// - Returns: number of ended ones.
    func dismissDeadLetters(_ selection: DeadLetterSelection, app: String) async throws -> Int
    /// Ends one dead letter as cancelled.
    /// - Returns: whether there was one.
    func dismissDeadLetter(app: String, nid: String, device: String) async throws -> Bool
}
