/// A publish that is to happen later.
package struct ScheduledPublish: Sendable, Equatable {
    /// Everything but `waiting` is an end.
    package enum State: String, Sendable, CaseIterable {
        case waiting, published, cancelled
        /// Its time came, and it was refused then; `outcome` says why.
        case failed
    }

    /// Lower-case UUID.
    package var id: String
    package var app: String
    /// Milliseconds since 1970.
    package var deliverAt: Int64
    /// What is needed to publish it, as the caller wrote it down; empty after the end.
    package var request: [UInt8]
    /// Of the request that scheduled it.
    package var idempotencyKey: String?
    /// Milliseconds since 1970.
    package var createdAt: Int64
    package var state: State
    /// Milliseconds since 1970; nil while it waits.
    package var endedAt: Int64?
    /// Of a published one the ids of its events, with commas between; of a failed one the reason.
    package var outcome: String?

    package init(
        id: String, app: String, deliverAt: Int64, request: [UInt8], idempotencyKey: String? = nil, createdAt: Int64,
        state: State = .waiting, endedAt: Int64? = nil, outcome: String? = nil
    ) {
        self.id = id
        self.app = app
        self.deliverAt = deliverAt
        self.request = request
        self.idempotencyKey = idempotencyKey
        self.createdAt = createdAt
        self.state = state
        self.endedAt = endedAt
        self.outcome = outcome
    }

    /// Publishes of one app that may wait at the same time; one more is refused.
    package static let waitingMax = 10_000
}

/// A scheduled publish whose time has come, ended by the transaction that commits its events.
package struct ScheduledTake: Sendable, Equatable {
    package var id: String
    /// Milliseconds since 1970.
    package var at: Int64
    /// Ids of the events that it became; none for one that no definition has a policy for.
    package var events: [String]

    package init(id: String, at: Int64, events: [String]) {
        self.id = id
        self.at = at
        self.events = events
    }
}

/// What a store refuses about scheduled publishes. Nothing of the call was written then.
package enum ScheduleError: Error, Equatable {
    /// The app has as many waiting as may wait.
    case full(app: String)
    /// These have ended, or are not there: whoever took them has published them, or they were cancelled.
    case notWaiting([String])
}

/// Publishes that wait for their time. Callable from any thread.
///
/// Published exactly once, whatever crashes: `DeliveryStore.commit` ends the row in the transaction that commits the events, so
/// afterwards there are either the events, or a row that is due again and no events. An event without a policy is not stored;
/// its row is ended by a commit of its own before the frames go out, which makes such a publish happen at most once.
package protocol ScheduledStore: Sendable {
    /// Writes publishes, and the answers that tell of them, in one transaction.
    /// - Throws: `ScheduleError.full`.
    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws
    /// Those that wait and are due at `now` (milliseconds since 1970), the earliest first, at most `limit`. They stay until a
    /// commit takes them or they end otherwise.
    func dueScheduled(now: Int64, limit: Int) async throws -> [ScheduledPublish]
    /// When the next one is due; milliseconds since 1970. Nil: none waits.
    func nextScheduledAt() async throws -> Int64?
    /// The app's waiting ones, the earliest first, at most `limit`, from behind another one of them.
    func scheduled(app: String, after other: (deliverAt: Int64, id: String)?, limit: Int) async throws -> [ScheduledPublish]
    /// The app's failed ones, the latest first, at most `limit`, until they are pruned.
    func failedScheduled(app: String, limit: Int) async throws -> [ScheduledPublish]
    /// One in any state, until it is pruned.
    func scheduled(app: String, id: String) async throws -> ScheduledPublish?
    /// Cancels one that waits.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the state it was in: `waiting` means that it is cancelled now, another that it had ended. Nil: not there.
    func cancelScheduled(app: String, id: String, now: Int64) async throws -> ScheduledPublish.State?
    /// Ends one that waits as `failed`. One that has ended stays as it is.
    /// - Parameter outcome: the reason, a sentence.
    func failScheduled(id: String, outcome: String, now: Int64) async throws
}
