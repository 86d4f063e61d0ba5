package import HubDefinitions

/// A stored event with a policy.
package struct EventRecord: Sendable, Equatable {
    /// Lower-case UUID.
    package var id: String
    /// Id of the app.
    package var app: String
    /// Name of the channel.
    package var channel: String
    /// Position among the channel's events, from 1 without gaps; set by the store at the commit.
    package var sequence: Int64
    /// Name on the socket.
    package var name: String
    /// The publisher's data string, byte for byte.
    package var data: String
    /// Policy of the first variant that is not `realtime_only`.
    package var policy: Policy
    /// Time of the commit, in milliseconds since 1970.
    package var committedAt: Int64
    /// Time of expiry, in milliseconds since 1970.
    package var expiresAt: Int64

    /// An event whose sequence the store sets at the commit, unless given.
    package init(
        id: String, app: String, channel: String, sequence: Int64 = 0, name: String, data: String, policy: Policy,
        committedAt: Int64, expiresAt: Int64
    ) {
        self.id = id
        self.app = app
        self.channel = channel
        self.sequence = sequence
        self.name = name
        self.data = data
        self.policy = policy
        self.committedAt = committedAt
        self.expiresAt = expiresAt
    }
}

/// State of a delivery. All states except `waiting`, `due`, `leased` and `retry` are final.
package enum PushState: String, Sendable, CaseIterable {
    case waiting, due, leased, retry
    /// Confirmed over the socket: no push was made.
    case socket
    case accepted, failed, expired, undeliverable, cancelled
    case skippedUnconfigured = "skipped_unconfigured"

    /// States that a restart takes up again.
    package static let open: [PushState] = [.waiting, .due, .leased, .retry]
}

/// Purpose of a delivery; a device has at most one of each per event.
package enum DeliveryPurpose: String, Sendable, CaseIterable {
    /// Tells the event.
    case notification
    /// Clears the notification that the device was sent (`Clearing`).
    case clear
}

/// One recipient's row of an event: the decision, and the progress of a push.
///
/// A push passes through many lists. All copies share the decided part; changing it makes a new one.
package struct PushRecord: Sendable, Equatable {
    /// The immutable part that copies share.
    private final class Box: Sendable {
        let decided: Decided
        let timing: PushMessage.Timing?

        init(_ decided: Decided) {
            self.decided = decided
            timing = decided.message?.timing
        }
    }

    /// Values of the properties of the same names.
    private struct Decided: Sendable, Equatable {
        var nid: String
        var event: String
        var app: String
        var user: String
        var device: String
        var purpose: DeliveryPurpose
        var reason: String
        var message: PushMessage?
        var address: DirectAddress?
        var route: PushRoute?
    }

    private var box: Box
    /// State of the delivery.
    package var state: PushState
    /// Time at which the push is due, in milliseconds since 1970.
    package var dueAt: Int64
    /// Attempts made so far.
    package var attempts: Int
    /// The gateway's name for the push: FCM's message name or APNs' id.
    package var providerID: String?
    /// The gateway's last answer in short: `UNREGISTERED`, `http 503`, …
    package var outcome: String?
    /// The attempt that `update` has to write; set by the sender, and never read back.
    package var attempt: DeliveryAttempt?
    /// Time of the first counted attempt, in milliseconds since 1970; nil if unknown. Set by the sender, and by `openDeliveries` from the
    /// stored attempts.
    package var firstAttemptAt: Int64?
    /// The message's sequence, if it became known after the message was written; 0 otherwise.
    package var sequence: Int64 = 0
    /// Place of the row in the store, which sets it in leased rows to find them without a search. Means nothing to others, and is ignored
    /// in comparisons.
    package var row: Int64?

    /// Notification id: a lower-case UUID derived from event and participant, the same on both surfaces. A `clear` has its own.
    package var nid: String {
        get { box.decided.nid }
        set { change { $0.nid = newValue } }
    }
    /// Id of the event.
    package var event: String {
        get { box.decided.event }
        set { change { $0.event = newValue } }
    }
    /// Id of the app.
    package var app: String {
        get { box.decided.app }
        set { change { $0.app = newValue } }
    }
    /// User id of the recipient.
    package var user: String {
        get { box.decided.user }
        set { change { $0.user = newValue } }
    }
    /// Device of the push; empty if the decision concerns the participant (confirmed over the socket, or without a device).
    package var device: String {
        get { box.decided.device }
        set { change { $0.device = newValue } }
    }
    /// Purpose of the row.
    package var purpose: DeliveryPurpose {
        get { box.decided.purpose }
        set { change { $0.purpose = newValue } }
    }
    /// Reason of the decision, for the trail: `live`, `bg`, `absent`, `no device`, …
    package var reason: String {
        get { box.decided.reason }
        set { change { $0.reason = newValue } }
    }
    /// Notification to send; nil for rows without a push.
    package var message: PushMessage? {
        get {
            guard sequence != 0, var message = box.decided.message else { return box.decided.message }
            message.sequence = sequence
            return message
        }
        set {
            sequence = 0
            change { $0.message = newValue }
        }
    }
    /// Timing of the message, which every step asks of every push.
    package var timing: PushMessage.Timing? { box.timing }
    /// Address of a push to something else than a registered device.
    package var address: DirectAddress? {
        get { box.decided.address }
        set { change { $0.address = newValue } }
    }
    /// Route of the device's pushes at the decision: a hint, which is not stored; nil if unknown. The real route is looked up when the push
    /// is sent.
    package var route: PushRoute? {
        get { box.decided.route }
        set { change { $0.route = newValue } }
    }

    /// A notification without attempts, message and address unless given.
    package init(
        nid: String, event: String, app: String, user: String, device: String, purpose: DeliveryPurpose = .notification,
        state: PushState, reason: String, dueAt: Int64, attempts: Int = 0, message: PushMessage? = nil,
        address: DirectAddress? = nil, providerID: String? = nil, outcome: String? = nil, route: PushRoute? = nil
    ) {
        box = Box(
            Decided(
                nid: nid, event: event, app: app, user: user, device: device, purpose: purpose, reason: reason, message: message,
                address: address, route: route))
        self.state = state
        self.dueAt = dueAt
        self.attempts = attempts
        self.providerID = providerID
        self.outcome = outcome
    }

    /// Equal in all properties except `row`. O(1) in the decided part for copies.
    package static func == (left: PushRecord, right: PushRecord) -> Bool {
        (left.box === right.box && left.sequence == right.sequence || left.message == right.message && left.hasSameNames(as: right))
            && (left.state, left.dueAt, left.attempts) == (right.state, right.dueAt, right.attempts)
            && (left.providerID, left.outcome) == (right.providerID, right.outcome)
            && (left.attempt, left.firstAttemptAt) == (right.attempt, right.firstAttemptAt)
    }

    private func hasSameNames(as other: PushRecord) -> Bool {
        var (own, others) = (box.decided, other.box.decided)
        (own.message, others.message) = (nil, nil)
        return own == others
    }

    private mutating func change(_ change: (inout Decided) -> Void) {
        var decided = box.decided
        change(&decided)
        box = Box(decided)
    }
}

/// A token, topic or condition that a backend named itself.
package struct DirectAddress: Sendable, Equatable {
    /// Push service.
    package var provider: PushProvider
    /// System of the devices.
    package var platform: DevicePlatform
    /// Apple's environment of a token.
    package var environment: APNsEnvironment
    /// Form of `text`.
    package var form: TargetForm
    /// The token, topic or condition.
    package var text: String

    /// An address as the backend named it.
    package init(provider: PushProvider, platform: DevicePlatform, environment: APNsEnvironment, form: TargetForm, text: String) {
        self.provider = provider
        self.platform = platform
        self.environment = environment
        self.form = form
        self.text = text
    }
}

/// An open push before its message is read.
package struct OpenPush: Sendable {
    package let nid: String
    package let device: String
    package let app: String
    package let user: String
    package let state: PushState

    package init(nid: String, device: String, app: String, user: String, state: PushState) {
        (self.nid, self.device, self.app, self.user, self.state) = (nid, device, app, user, state)
    }

    package init(_ push: PushRecord) {
        self.init(nid: push.nid, device: push.device, app: push.app, user: push.user, state: push.state)
    }
}

/// The durable side of delivery: the contract of every store. Callable from any thread.
package protocol DeliveryStore: RecipientStore, ScheduledStore, TrailStore, ReceiptStore, RedirectionStore, AttendanceMarkStore,
    DeadLetterStore, OnceStore, SearchStore
{
    /// Commits events with their rows and recipients, their answers, and the ends of their scheduled publishes, in one transaction. On
    /// return all of it survives a crash of the process.
    /// - Parameters:
    ///   - answers: each replaces an older one with the same app and key.
    ///   - scheduled: each still has to wait. Also given if no event is committed, for a publish without a policy.
    /// - Returns: the events with their sequences set.
    /// - Throws: `AlreadySent` if one of an event's `once.users` was sent its key before. `ScheduleError.notWaiting` with all publishes
    ///   that do not wait; the rest can be committed again without them.
    func commit(_ batch: [EventCommit], answers: [AnswerRecord], scheduled: [ScheduledTake]) async throws -> [EventRecord]
    /// At most `limit` deliveries in an open state with their `firstAttemptAt`, soonest due first. A node among several reads those of its
    /// own people. For start-up, and for what a former owner has left.
    /// - Parameter isMeant: whether the push is asked for. The messages of others are not read.
    func openDeliveries(limit: Int, isMeant: @escaping @Sendable (OpenPush) -> Bool) async throws -> [PushRecord]
    /// Stores durably that deliveries are about to be sent, except those that have ended meanwhile.
    ///
    /// The rows read as leased, with these attempts and due times, until `update` writes their results. The next process after a crash
    /// reads them so as well.
    /// - Returns: the leased deliveries, in order. Only these may be sent.
    func lease(_ deliveries: [PushRecord]) async throws -> [PushRecord]
    /// Writes states, attempts, due times, provider ids and outcomes of open rows in one transaction, and adds each `attempt` to the trail.
    /// Rows that ended meanwhile keep their end. The due time of a failed push becomes the end of its last attempt.
    /// - Returns: retries whose receipt came during the attempt, in their final state: cancelled.
    @discardableResult
    func update(_ deliveries: [PushRecord]) async throws -> [PushRecord]
    /// One event's rows, ordered by user and device, a user's notifications before their clears. For the trail and for tests.
    func deliveries(event: String) async throws -> [PushRecord]
    /// One event's rows of one user, in the same order.
    func deliveries(event: String, user: String) async throws -> [PushRecord]
    /// Rows of these events in the state due, in the same order.
    func dueDeliveries(events: [String]) async throws -> [PushRecord]
    func event(id: String) async throws -> EventRecord?
    /// Removes ended events and all that belongs to them, committed before `cutoff`, and scheduled publishes that ended before it. An event
    /// with an open delivery or open recipients has not ended.
    /// - Parameters:
    ///   - cutoff: milliseconds since 1970.
    ///   - limit: most removals of each kind.
    /// - Returns: the larger of both counts; `limit` means that there may be more.
    func prune(before cutoff: Int64, limit: Int) async throws -> Int
    /// The answer kept under a key of the app, unless given before `cutoff` (milliseconds since 1970).
    func answer(app: String, key: String, since cutoff: Int64) async throws -> AnswerRecord?
    /// Removes answers given before `cutoff`, and the oldest of those that exceed `countMax`: at most `limit` of each kind.
    /// - Returns: the number of each kind.
    func pruneAnswers(before cutoff: Int64, keeping countMax: Int, limit: Int) async throws -> (expired: Int, displaced: Int)
}

extension DeliveryStore {
    /// All open deliveries.
    package func openDeliveries(limit: Int) async throws -> [PushRecord] { try await openDeliveries(limit: limit) { _ in true } }

    /// Commits events whose publishes were not scheduled.
    package func commit(_ batch: [EventCommit], answers: [AnswerRecord] = []) async throws -> [EventRecord] {
        try await commit(batch, answers: answers, scheduled: [])
    }
}
