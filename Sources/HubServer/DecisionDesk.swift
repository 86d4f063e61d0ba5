internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// What delivery knows, and what it makes of an event: a value without I/O, owned by the delivery task.
struct DecisionDesk: Sendable {
    var attendance = Attendance()
    /// Per loop, the last attendance ticket that has been entered in the book.
    var attendedUpTo: [UInt64]

    init(loopCount: Int) {
        attendedUpTo = Array(repeating: 0, count: loopCount)
    }

    /// What an event became.
    struct Decided {
        /// Nil: the event has no policy for anybody, and nothing is kept of it.
        var event: EventRecord?
        var deliveries: [DeliveryRecord] = []
        /// Whose sockets get the frame.
        var roles = RoleSet.everybody
    }

    /// - Throws: `PublishRefusal` when the data lacks what the definition's texts need; nothing has been sent then.
    func decide(
        _ definition: EventDefinition, request: PublishRequest, channel: ChannelName, audience: EventAudience, excluded: ConnectionID?,
        now: Int64, random: [UInt8]
    ) throws(PublishRefusal) -> Decided {
        let data = request.data.contentValue ?? .null
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
            definition: audience.definition, event: event, channel: audience.placeholders, session: audience.session, data: data)
        do {
            for variant in variants where !variant.isPersonal {
                _ = try rendering.message(variant, user: channelUser ?? "", participant: nil)
            }
            for entry in audience.entries {
                guard let variant = definition.variant(user: entry.user, role: entry.participant?.role, channelUser: channelUser, data: data)
                else { continue }
                // Rendered for everybody, also for who is told by the socket: what a publish lacks must not show only when somebody leaves.
                if variant.isPersonal { _ = try rendering.message(variant, user: entry.user, participant: entry.participant) }
                decided.deliveries += try decide(entry, variant, event, excluded: excluded, scope: audience.definition.scope, rendering: &rendering)
            }
        } catch {
            throw PublishRefusal(status: 400, sentence: "\(error)")
        }
        return decided
    }

    private func decide(
        _ entry: EventAudience.Entry, _ variant: EventVariant, _ event: EventRecord, excluded: ConnectionID?, scope: SuppressScope,
        rendering: inout Rendering
    ) throws(RenderingError) -> [DeliveryRecord] {
        // Whoever published over their own socket knows already, on all their devices.
        let isActor = excluded.map { attendance.connections(app: event.app, channel: event.channel, user: entry.user).contains($0) } ?? false
        let decision = Decision.make(
            Decision.Input(
                policy: variant.policy, expiresAt: event.committedAt + variant.ttlMilliseconds, now: event.committedAt, isActor: isActor,
                isInAudience: true, scope: scope,
                attachments: attendance.attachments(app: event.app, channel: event.channel, user: entry.user), devices: entry.devices))
        let nid = NotificationID.make(event: event.id, app: event.app, user: entry.user)
        switch decision.state {
        case .due:
            let message = try rendering.message(variant, user: entry.user, participant: entry.participant)
            return decision.pushes.map { push in
                let wait = push.wait.components.seconds * 1000 + push.wait.components.attoseconds / 1_000_000_000_000_000
                return DeliveryRecord(
                    nid: nid, event: event.id, app: event.app, user: entry.user, device: push.device, state: .due, reason: push.reason,
                    dueAt: event.committedAt + wait, message: message)
            }
        case .undeliverable, .expired:
            return [
                DeliveryRecord(
                    nid: nid, event: event.id, app: event.app, user: entry.user, device: "", state: decision.state ?? .undeliverable,
                    reason: decision.reason, dueAt: event.committedAt)
            ]
        // Told by the socket, or not to be told: no row each, so that a full session costs one row and not one per person.
        default: return []
        }
    }

    func presence(app: String, channel: String, users: [String]) -> [String: ParticipantPresence] {
        var presence: [String: ParticipantPresence] = [:]
        for user in users {
            let attachments = attendance.attachments(app: app, channel: channel, user: user).filter(\.isSubscribed)
            guard !attachments.isEmpty else { continue }
            let states = attachments.map(\.state)
            let state: AppState = states.contains(.foreground) ? .foreground : states.contains(.unknown) ? .unknown : .background
            presence[user] = ParticipantPresence(connections: attachments.count, state: state)
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
