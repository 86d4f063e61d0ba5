/// A push that is not tried again by itself: its gateway refused it, or it was tried as often as it may.
package struct DeadLetter: Sendable, Equatable {
    /// Its `outcome` says why. With its message, unless that cannot be read any more.
    package var delivery: PushRecord
    /// Nil: its device is gone.
    package var provider: PushProvider?
    package var attempts: [DeliveryAttempt]
    package var place: Place

    /// Where it stands among the app's: the one that failed first is first.
    package struct Place: Sendable, Hashable {
        /// Milliseconds since 1970.
        package var failedAt: Int64
        /// Tells apart what failed at the same time.
        package var row: Int64

        package init(failedAt: Int64, row: Int64) {
            self.failedAt = failedAt
            self.row = row
        }
    }

    package init(delivery: PushRecord, provider: PushProvider?, attempts: [DeliveryAttempt], place: Place) {
        self.delivery = delivery
        self.provider = provider
        self.attempts = attempts
        self.place = place
    }

    /// Dead letters that one call replays or dismisses at most.
    package static let stepMax = 1_000
}

/// Which of an app's dead letters are meant.
package enum DeadLetterSelection: Sendable, Equatable {
    /// All devices of these notifications.
    case nids([String])
    /// Those whose outcome is the reason, or begins with it and a colon; and that failed before a time in milliseconds since 1970.
    case failed(reason: String?, before: Int64?)
}

/// What became of a replay.
package struct DeadLetterReplay: Sendable, Equatable {
    /// As they are now: due, with no attempt made; to be handed to whoever sends.
    package var due: [PushRecord]
    /// Stay dead: their time is over and the replay gave them none. Named only where the selection names notifications.
    package var expired: [PushRecord]

    package init(due: [PushRecord], expired: [PushRecord]) {
        self.due = due
        self.expired = expired
    }
}

/// The dead letters: deliveries that failed and still have their message, until their event is pruned. Callable from any thread.
package protocol DeadLetterStore: Sendable {
    /// Without messages, the first failed first, from behind another one.
    func deadLetters(app: String, reason: String?, after place: DeadLetter.Place?, limit: Int) async throws -> [DeadLetter]
    func deadLetter(app: String, nid: String, device: String) async throws -> DeadLetter?
    /// Makes some due again, with a fresh count of attempts, in one transaction: `DeadLetter.stepMax` at most, those that failed first.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - ttl: how long they are worth telling from now on, in milliseconds; nil: as long as they were.
    func replayDeadLetters(_ selection: DeadLetterSelection, app: String, now: Int64, ttl: Int64?) async throws -> DeadLetterReplay
    /// Takes some out of the dead letters: they end as cancelled, `DeadLetter.stepMax` at most.
    /// - Returns: how many.
    func dismissDeadLetters(_ selection: DeadLetterSelection, app: String) async throws -> Int
    /// Takes one out.
    /// - Returns: whether it was there.
    func dismissDeadLetter(app: String, nid: String, device: String) async throws -> Bool
}
