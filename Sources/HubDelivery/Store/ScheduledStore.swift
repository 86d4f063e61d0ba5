/// A publish for later.
package struct ScheduledPublish: Sendable, Equatable {
    /// State of a publish. All states except `waiting` are final.
    package enum State: String, Sendable, CaseIterable {
        case waiting, published, cancelled
        /// Refused when its time came; `outcome` has the reason.
        case failed
    }

    /// Lower-case UUID.
    package var id: String
    /// Id of the app.
    package var app: String
    /// Time of the publish, in milliseconds since 1970.
    package var deliverAt: Int64
    /// The request as the caller encoded it; empty after the end.
    package var request: [UInt8]
    /// Key of the scheduling request; nil for none.
    package var idempotencyKey: String?
    /// Time of the scheduling request, in milliseconds since 1970.
    package var createdAt: Int64
    /// State of the publish.
    package var state: State
    /// Time of the end, in milliseconds since 1970; nil while it waits.
    package var endedAt: Int64?
    /// Comma-separated ids of the events of a published one; the reason of a failed one; nil otherwise.
    package var outcome: String?

    /// A waiting publish unless given.
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

    /// Most waiting publishes of one app; one more is refused.
    package static let waitingMax = 10_000
}

/// A scheduled publish whose time has come, ended by the transaction that commits its events.
package struct ScheduledTake: Sendable, Equatable {
    /// Id of the publish.
    package var id: String
    /// Time of the end, in milliseconds since 1970.
    package var at: Int64
    /// Ids of its events; empty if no definition has a policy for them.
    package var events: [String]

    /// An end for `DeliveryStore.commit`.
    package init(id: String, at: Int64, events: [String]) {
        self.id = id
        self.at = at
        self.events = events
    }
}

/// Refusals of scheduled publishes. Nothing of the call was written.
package enum ScheduleError: Error, Equatable {
    /// The app has as many waiting publishes as may wait.
    case full(app: String)
    /// These publishes have ended, or do not exist: they were published or cancelled.
    case notWaiting([String])
}

/// Publishes that wait for their time. Callable from any thread.
///
/// `DeliveryStore.commit` ends the row in the transaction that commits the events, so each is published exactly once, whatever crashes.
/// Afterwards there are either the events, or a row that is due again.
///
/// Events without a policy are not stored. Their row ends in a commit of its own before the frames go out, so such a publish happens at
/// most once.
package protocol ScheduledStore: Sendable {
    /// Stores publishes and their answers, in one transaction.
    /// - Throws: `ScheduleError.full`.
    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws
    /// At most `limit` waiting publishes that are due at `now` (milliseconds since 1970), the earliest first. They stay until they end, for
    /// example by a commit.
    func dueScheduled(now: Int64, limit: Int) async throws -> [ScheduledPublish]
    /// Time of the next due publish, in milliseconds since 1970; nil if none waits.
    func nextScheduledAt() async throws -> Int64?
    /// At most `limit` of the app's waiting publishes after another one, the earliest first.
    func scheduled(app: String, after other: (deliverAt: Int64, id: String)?, limit: Int) async throws -> [ScheduledPublish]
    /// At most `limit` of the app's failed publishes, the latest first, until pruned.
    func failedScheduled(app: String, limit: Int) async throws -> [ScheduledPublish]
    /// A publish in any state, until pruned; nil if unknown.
    func scheduled(app: String, id: String) async throws -> ScheduledPublish?
    /// Cancels a waiting publish.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the state before the call: after `waiting` it is cancelled, any other had ended. Nil if unknown.
    func cancelScheduled(app: String, id: String, now: Int64) async throws -> ScheduledPublish.State?
    /// Ends a waiting publish as `failed`; one that has ended stays.
    /// - Parameter outcome: the reason, a sentence.
    func failScheduled(id: String, outcome: String, now: Int64) async throws
}
