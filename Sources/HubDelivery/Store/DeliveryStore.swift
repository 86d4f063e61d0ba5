/// A published event that had a policy, as it is kept.
package struct EventRecord: Sendable, Equatable {
    /// Lower-case UUID.
    package var id: String
    package var app: String
    package var channel: String
    /// Position among the channel's events; begins with 1, without gaps. Set by the store at commit.
    package var sequence: Int64
    package var name: String
    /// The publisher's data string, byte for byte.
    package var data: String
    package var policy: Policy
    /// Milliseconds since 1970.
    package var committedAt: Int64
    package var expiresAt: Int64

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

/// What a definition asks for when an event is published.
package enum Policy: String, Sendable, CaseIterable {
    case realtimeOnly = "realtime_only"
    case sync
    case notify
    case critical
    case both
    case pushOnly = "push_only"
}

/// Where a delivery stands. Everything but `waiting`, `due`, `leased` and `retry` is an end.
package enum PushState: String, Sendable, CaseIterable {
    case waiting, due, leased, retry
    /// Told over the socket: no push was made.
    case socket
    case accepted, failed, expired, undeliverable, cancelled
    case skippedUnconfigured = "skipped_unconfigured"

    /// The states a restart takes up again.
    package static let open: [PushState] = [.waiting, .due, .leased, .retry]
}

/// What a delivery is for. A device has one of each per event at most.
package enum DeliveryPurpose: String, Sendable, CaseIterable {
    /// Tells the event.
    case notification
    /// Takes the notification back that the device was sent: `Clearing`.
    case clear
}

/// One recipient's row of an event: what was decided, and for a push what became of it.
///
/// A push is handed from list to list on its way: what was decided is shared by all copies, and changing any of that makes another one.
package struct PushRecord: Sendable, Equatable {
    /// Never changed: what many copies share.
    private final class Box: Sendable {
        let decided: Decided
        let timing: PushMessage.Timing?

        init(_ decided: Decided) {
            self.decided = decided
            timing = decided.message?.timing
        }
    }

    /// What the properties of the same names say.
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
    package var state: PushState
    /// Milliseconds since 1970.
    package var dueAt: Int64
    package var attempts: Int
    /// What the gateway called it: FCM's message name or APNs' id.
    package var providerID: String?
    /// The gateway's last answer in short: `UNREGISTERED`, `http 503`, …
    package var outcome: String?
    /// Set by who has made an attempt, for the `update` that writes it down; never read back.
    package var attempt: DeliveryAttempt?
    /// When the first attempt was made that `attempts` counts, in milliseconds since 1970. Set by who sends, and by `openDeliveries` from
    /// the attempts that are written down; nil: none is known.
    package var firstAttemptAt: Int64?
    /// The message's, where it became known after the message was written; 0: the message says it.
    package var sequence: Int64 = 0
    /// Where the store has the row: set by it in what it leases, to find it again without a search. Means nothing to others, and does
    /// not tell two records apart.
    package var row: Int64?

    /// Lower-case UUID derived from event and participant, and the same on both surfaces; of a `clear` one of its own.
    package var nid: String {
        get { box.decided.nid }
        set { change { $0.nid = newValue } }
    }
    package var event: String {
        get { box.decided.event }
        set { change { $0.event = newValue } }
    }
    package var app: String {
        get { box.decided.app }
        set { change { $0.app = newValue } }
    }
    package var user: String {
        get { box.decided.user }
        set { change { $0.user = newValue } }
    }
    /// Empty when the decision concerns the participant and no device (told by socket, or has no device).
    package var device: String {
        get { box.decided.device }
        set { change { $0.device = newValue } }
    }
    package var purpose: DeliveryPurpose {
        get { box.decided.purpose }
        set { change { $0.purpose = newValue } }
    }
    /// Why it was decided so, for the trail: `live`, `bg`, `absent`, `no device`, …
    package var reason: String {
        get { box.decided.reason }
        set { change { $0.reason = newValue } }
    }
    /// Set for pushes only.
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
    /// The message's; what is asked about each push at every step.
    package var timing: PushMessage.Timing? { box.timing }
    /// Where a push goes that was sent to an address and not to a registered device.
    package var address: DirectAddress? {
        get { box.decided.address }
        set { change { $0.address = newValue } }
    }
    /// The way that the device's pushes took when it was decided: a hint, which is not stored. Which way it takes is looked up when it is
    /// sent. Nil: not known.
    package var route: PushRoute? {
        get { box.decided.route }
        set { change { $0.route = newValue } }
    }

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
    package var provider: PushProvider
    package var platform: DevicePlatform
    package var environment: APNsEnvironment
    package var form: TargetForm
    /// The token, topic or condition.
    package var text: String

    package init(provider: PushProvider, platform: DevicePlatform, environment: APNsEnvironment, form: TargetForm, text: String) {
        self.provider = provider
        self.platform = platform
        self.environment = environment
        self.form = form
        self.text = text
    }
}

/// The durable side of delivery: the contract every store fulfils. Callable from any thread.
package protocol DeliveryStore: RecipientStore, ScheduledStore, TrailStore, ReceiptStore, RedirectionStore, AttendanceMarkStore,
    DeadLetterStore, OnceStore
{
    /// Commits events with their delivery rows and recipients, the answers that tell of them, and the end of the scheduled
    /// publishes that they come from, in one transaction, and returns the events with their sequences set. When it returns, all
    /// of it survives a crash of the process.
    /// - Parameters:
    ///   - answers: each takes the place of an older one with the same app and key.
    ///   - scheduled: each has to wait still. Also to be given where no event is committed: a publish without a policy.
    /// - Throws: `AlreadySent` if one of an event's `once.users` was sent its key before. `ScheduleError.notWaiting` with all publishes
    ///   that do not wait; the rest can be committed again without those.
    func commit(_ batch: [EventCommit], answers: [AnswerRecord], scheduled: [ScheduledTake]) async throws -> [EventRecord]
    /// The deliveries in an open state, soonest due first, at most `limit`, with their `firstAttemptAt`. For start-up.
    func openDeliveries(limit: Int) async throws -> [PushRecord]
    /// Writes down, durably, that deliveries are about to be sent, save for those that have ended meanwhile. Whoever reads them finds them
    /// leased with these attempts and due times until `update` writes what became of them; so does the next process after a crash.
    /// - Returns: those that were leased, in order. Only these may be sent.
    func lease(_ deliveries: [PushRecord]) async throws -> [PushRecord]
    /// Writes states, attempts, due times, provider ids and outcomes of open rows, in one transaction, and adds each record's `attempt` to
    /// the trail. Rows that ended meanwhile stay as they ended. The due time of a failed push becomes the end of its last attempt.
    /// - Returns: of what was to be tried again, those that a receipt came to during their attempt, as they ended: cancelled.
    @discardableResult
    func update(_ deliveries: [PushRecord]) async throws -> [PushRecord]
    /// One event's rows, ordered by user and device, a user's notifications before their clears. For the trail and for tests.
    func deliveries(event: String) async throws -> [PushRecord]
    /// The same of one user.
    func deliveries(event: String, user: String) async throws -> [PushRecord]
    func event(id: String) async throws -> EventRecord?
    /// Removes ended events and what belongs to them, committed before `cutoff` (milliseconds since 1970), and scheduled publishes
    /// that ended before it: at most `limit` of each. An event with an open delivery or an open fan-out has not ended.
    /// - Returns: the larger of both counts: `limit` means that there may be more.
    func prune(before cutoff: Int64, limit: Int) async throws -> Int
    /// The answer kept under a key of the app, unless it was given before `cutoff` (milliseconds since 1970).
    func answer(app: String, key: String, since cutoff: Int64) async throws -> AnswerRecord?
    /// Removes answers given before `cutoff`, and the oldest of those beyond `countMax`: at most `limit` of each kind. Returns
    /// how many of each.
    func pruneAnswers(before cutoff: Int64, keeping countMax: Int, limit: Int) async throws -> (expired: Int, displaced: Int)
}

extension DeliveryStore {
    /// Commits events of publishes that were not scheduled.
    package func commit(_ batch: [EventCommit], answers: [AnswerRecord] = []) async throws -> [EventRecord] {
        try await commit(batch, answers: answers, scheduled: [])
    }
}
