internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// What delivery knows, and what it makes of an event: a value without I/O, owned by the delivery task.
struct DecisionDesk {
    var attendance = Attendance()
    var escalation = Escalation()
    var replays = Replays()
    /// Some connection may be barred from a channel.
    var hasExpelled = false
    /// The events of the last millisecond in which some were decided.
    private var justDecided: (at: Int64, events: Set<String>) = (.min, [])
    /// Per loop, the last attendance ticket that has been entered in the book.
    var attendedUpTo: [UInt64]
    private(set) var lastNumber: UInt64 = 0
    /// Of the newest events, because those of a session have mostly the same recipients.
    private var snapshots: [RecipientSnapshot] = []
    private static let snapshotsMax = 8
    private let tokenAge: TokenAge
    /// How much of the spread one recipient gets: 0 up to 1.
    private let fraction: @Sendable () -> Double
    /// Refuses what no gateway would take.
    private let payloadCheck: (any PayloadCheck)?

    /// - Parameter fraction: drawn for each recipient of a large audience; 0 up to 1.
    init(
        loopCount: Int, tokenAge: TokenAge = .standard, payloadCheck: (any PayloadCheck)? = nil,
        fraction: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.tokenAge = tokenAge
        self.fraction = fraction
        self.payloadCheck = payloadCheck
        attendedUpTo = Array(repeating: 0, count: loopCount)
    }

    /// Somebody has come to a channel that replays.
    /// - Parameters:
    ///   - now: wall clock, in milliseconds since 1970.
    ///   - monotonic: milliseconds on the clock of the attendance book.
    mutating func arrived(_ arrival: Arrival, now: Int64, monotonic: Int64) {
        var arrival = arrival
        arrival.at = now
        if justDecided.at == now { arrival.decidedJustBefore = justDecided.events }
        replays.arrived(arrival, now: monotonic)
    }

    /// An event was decided and is going to be committed: who comes from now on was not written it, and is replayed it.
    mutating func noteDecided(_ event: EventRecord) {
        if justDecided.at != event.committedAt { justDecided = (event.committedAt, []) }
        justDecided.events.insert(event.id)
    }

    /// Whose replays are to be read now.
    mutating func takeArrivals() -> [Arrival] { replays.takeReady() }

    /// The hub was late: so much of everybody's wait does not count.
    mutating func note(_ delay: Hearing.Delay?) {
        if let delay { escalation.hubWasLate(from: delay.from, until: delay.until, least: delay.least) }
    }

    /// The next name of an event between delivery and the loops.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// The list of recipients as the store keeps it.
    mutating func snapshot(of users: [String]) -> RecipientSnapshot {
        if let index = snapshots.firstIndex(where: { $0.users == users }) { return snapshots[index] }
        let snapshot = RecipientSnapshot(users: users)
        if snapshots.count == Self.snapshotsMax { snapshots.removeFirst() }
        snapshots.append(snapshot)
        return snapshot
    }

    /// What an event became.
    struct Decided {
        /// Nil: the event has no policy for anybody, and nothing is kept of it.
        var event: EventRecord?
        /// Rows that are made with the event: pushes that are due at once, and ends.
        var deliveries: [PushRecord] = []
        /// Everybody whom the event is to reach for certain, in the order in which the store counts them.
        var recipients: [String] = []
        /// Of each recipient.
        var notes: [RecipientNote] = []
        /// Whose receipts are awaited.
        var targets: [Escalation.Target] = []
        /// Whose sockets get the frame.
        var roles = RoleSet.everybody
    }

    /// - Parameters:
    ///   - now: wall clock, in milliseconds since 1970.
    ///   - monotonic: milliseconds on the clock of the attendance book.
    /// - Throws: `PublishRefusal` when the data lacks what the definition's texts need; nothing has been sent then.
    func decide(
        _ definition: EventDefinition, request: PublishRequest, channel: ChannelName, audience: EventAudience, excluded: ConnectionID?,
        now: Int64, monotonic: Int64, random: [UInt8]
    ) throws(PublishRefusal) -> Decided {
        let data = request.data.contentValue ?? .null
        let problems = definition.fieldProblems(data)
        guard problems.isEmpty else {
            throw PublishRefusal(
                status: 400, sentence: "the event \"\(definition.name)\" cannot be published: \(problems.joined(separator: "; "))")
        }
        let channelUser = audience.placeholders.user
        var decided = Decided()
        decided.roles = audience.socketRoles(definition, data: data)

        // Every role's variant counts, also where nobody has the role now: what a publish may lack must not depend on who is there.
        let variants = audience.variants(definition, data: data)
        guard let strictest = variants.map(\.policy).filter({ $0 != .realtimeOnly }).first else { return decided }
        let expiresAt = now + (variants.map(\.ttlMilliseconds).max() ?? 0)
        let event = EventRecord(
            id: EventID.make(wallMilliseconds: now, random: random), app: audience.app, channel: channel.text, name: request.name,
            data: request.data.content, policy: strictest, committedAt: now, expiresAt: expiresAt)
        decided.event = event

        var rendering = Rendering(
            definition: audience.definition, event: event, channel: audience.placeholders, session: audience.session, data: data,
            check: payloadCheck)
        do {
            for variant in variants where !variant.isPersonal { try rendering.prepare(variant) }
            for entry in audience.entries {
                guard
                    let variant = definition.variant(user: entry.user, role: entry.participant?.role, channelUser: channelUser, data: data)
                else { continue }
                // Rendered for everybody, also for who is told by the socket: what a publish lacks must not show only when somebody leaves.
                if variant.isPersonal { try rendering.prepare(variant, participant: entry.participant) }
                try decide(
                    entry, variant, event, excluded: excluded, scope: audience.definition.scope, monotonic: monotonic,
                    rendering: &rendering,
                    into: &decided)
            }
        } catch {
            throw PublishRefusal(status: 400, sentence: "\(error)")
        }
        spread(&decided)
        return decided
    }

    private func decide(
        _ entry: EventAudience.Entry, _ variant: EventVariant, _ event: EventRecord, excluded: ConnectionID?, scope: SuppressScope,
        monotonic: Int64, rendering: inout Rendering, into decided: inout Decided
    ) throws(RenderingError) {
        // Whoever published over their own socket knows already, on all their devices.
        let isActor =
            excluded.map { attendance.connections(app: event.app, channel: event.channel, user: entry.user).contains($0) } ?? false
        let decision = Decision.make(
            Decision.Input(
                policy: variant.policy, expiresAt: event.committedAt + variant.ttlMilliseconds, now: event.committedAt, isActor: isActor,
                scope: scope, devices: entry.devices, tokenAge: tokenAge,
                reach: { attendance.state(app: event.app, channel: event.channel, user: entry.user, device: $0, now: monotonic) }))
        let recipient = decided.recipients.count
        decided.recipients.append(entry.user)
        decided.notes.append(RecipientNote(state: decision.state, choice: choice(decision, policy: variant.policy, devices: entry.devices)))
        if isActor || variant.policy == .realtimeOnly { return }
        for awaited in decision.awaited {
            decided.targets.append(
                Escalation.Target(
                    user: entry.user, device: awaited.device, policy: variant.policy, wait: awaited.wait.milliseconds,
                    lifetime: variant.ttlMilliseconds, recipient: recipient, reason: awaited.reason))
        }
        // Not of who is awaited: the digest is a good part of deciding.
        if decision.pushes.isEmpty && decision.end == nil { return }
        let nid = NotificationID.make(event: event.id, app: event.app, user: entry.user)
        if !decision.pushes.isEmpty {
            for push in decision.pushes {
                let device = entry.devices.first { $0.id == push.device }
                let locale = variant.locales.isEmpty ? nil : device?.locale
                let message = try rendering.message(variant, participant: entry.participant, nid: nid, locale: locale)
                decided.deliveries.append(
                    PushRecord(
                        nid: nid, event: event.id, app: event.app, user: entry.user, device: push.device, state: .due, reason: push.reason,
                        dueAt: event.committedAt, message: message, route: device?.route))
            }
        } else if let end = decision.end {
            decided.deliveries.append(
                PushRecord(
                    nid: nid, event: event.id, app: event.app, user: entry.user, device: "", state: end, reason: decision.reason,
                    dueAt: event.committedAt))
        }
    }

    private func spread(_ decided: inout Decided) {
        guard decided.recipients.count > Policy.spreadRecipientsMin else { return }
        for index in decided.targets.indices {
            let target = decided.targets[index]
            // Who is on the way back to a hub that has just come up has all of its grace; `critical` does not wait so long anyway.
            if target.reason == DeviceState.serverGrace.rawValue, target.policy != .critical { continue }
            decided.targets[index].wait =
                target.policy.spread(
                    .milliseconds(target.wait), recipients: decided.recipients.count, fraction: fraction()
                ).milliseconds
        }
    }

    private func choice(_ decision: Decision, policy: Policy, devices: [Device]) -> RecipientNote.Choice {
        if policy == .realtimeOnly { return .socketOnly }
        if !decision.awaited.isEmpty { return .awaited }
        if !decision.pushes.isEmpty { return .pushed }
        switch decision.end {
        case .cancelled: return .actor
        case .expired: return .expired
        case .undeliverable: return .unreachable(devices)
        default: return .seen
        }
    }

    func presence(app: String, channel: String, users: [String]) -> [String: ParticipantPresence] {
        var presence: [String: ParticipantPresence] = [:]
        for user in users {
            guard let known = attendance.presence(app: app, channel: channel, user: user) else { continue }
            presence[user] = ParticipantPresence(connections: known.connections, state: known.state)
        }
        return presence
    }
}

/// Whom an event concerns, read from the directory.
struct EventAudience: Sendable {
    struct Entry: Sendable {
        var user: String
        var participant: Participant?
        var devices: [Device]
    }

    var app: String
    var definition: ChannelDefinition
    var placeholders: ChannelPattern.Match
    var session: Session?
    var entries: [Entry]

    /// The variants that apply to some role, or to somebody without one, each once.
    func variants(_ event: EventDefinition, data: JSONValue) -> [EventVariant] {
        var variants: [EventVariant] = []
        for role in roles {
            guard let variant = event.variant(user: placeholders.user ?? "", role: role, channelUser: placeholders.user, data: data)
            else { continue }
            if !variants.contains(where: { $0.index == variant.index }) { variants.append(variant) }
        }
        return variants
    }

    /// Whose sockets get the event: everybody for whom some variant applies that means the socket.
    func socketRoles(_ event: EventDefinition, data: JSONValue) -> RoleSet {
        var excluded: RoleSet = []
        for role in roles {
            let variant = event.variant(user: placeholders.user ?? "", role: role, channelUser: placeholders.user, data: data)
            if variant == nil || variant?.policy == .pushOnly { excluded.insert(RoleSet(role: role, in: definition)) }
        }
        return excluded.isEmpty ? .everybody : RoleSet.everybody.subtracting(excluded)
    }

    private var roles: [String?] { definition.roles + [nil] }
}

extension RoleSet {
    /// The bit of a role; `unmatched` for none, or for one that the definition does not know any more.
    init(role: String?, in definition: ChannelDefinition) {
        self = role.flatMap(definition.roles.firstIndex(of:)).map { .role($0) } ?? .unmatched
    }
}
