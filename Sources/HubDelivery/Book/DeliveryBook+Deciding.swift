internal import HubCore
internal import HubDefinitions

/// Deciding: the surfaces of one event, per recipient.
extension DeliveryBook {
    /// One decided event.
    struct Decided {
        /// Nil: no variant has a policy beyond the socket, and nothing is kept of the event.
        var event: EventRecord?
        /// Rows of the event's commit: pushes that are due at once, and ends.
        var deliveries: [PushRecord] = []
        /// Users who are to be reached for certain. A user's index is the recipient's place in the store.
        var recipients: [String] = []
        /// One per recipient.
        var notes: [RecipientNote] = []
        /// Receipts that are awaited.
        var targets: [Escalation.Target] = []
        /// Places of those who get a push, and the frame in the background.
        var unseen: [UnseenPushes.Target: Int] = [:]
        /// Roles whose sockets get the frame.
        var roles = RoleSet.everybody
    }

    /// - Throws: `PublishRefusal` with status 400 where the data lacks a value of the definition's texts, or no gateway takes the result.
    func decide(
        _ event: EventDefinition, _ input: EventInput, channel: String, excluded: ConnectionID?, at now: Moment
    ) throws(PublishRefusal) -> Decided {
        let (audience, data) = (input.audience, input.data)
        let problems = event.fieldProblems(data)
        guard problems.isEmpty else {
            throw PublishRefusal(
                status: 400, sentence: "the event \"\(event.name)\" cannot be published: \(problems.joined(separator: "; "))")
        }
        let channelUser = audience.placeholders.user
        var decided = Decided()
        decided.roles = audience.socketRoles(event, data: data)

        // Every role's variant counts, even without a participant of that role: a refusal must not depend on the roster.
        let variants = audience.variants(event, data: data)
        guard let strictest = variants.map(\.policy).filter({ $0 != .realtimeOnly }).first else { return decided }
        let record = EventRecord(
            id: EventID.make(wallMilliseconds: input.idTime ?? now.wall, random: input.random), app: audience.app, channel: channel,
            name: event.name, data: input.content, policy: strictest, committedAt: now.wall,
            expiresAt: now.wall + (variants.map(\.ttlMilliseconds).max() ?? 0))
        decided.event = record

        var rendering = Rendering(
            definition: audience.definition, event: record, channel: audience.placeholders, session: audience.session, data: data,
            check: settings.payloadCheck)
        do {
            for variant in variants where !variant.isPersonal { try rendering.prepare(variant) }
            for entry in audience.entries {
                guard
                    let variant = event.variant(user: entry.user, role: entry.participant?.role, channelUser: channelUser, data: data)
                else { continue }
                // Rendered for everybody, sockets included: a missing value must not show only when somebody leaves.
                if variant.isPersonal { try rendering.prepare(variant, participant: entry.participant) }
                try decide(
                    entry, variant, record, excluded: excluded, scope: audience.definition.scope, monotonic: now.monotonic,
                    rendering: &rendering, into: &decided)
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
        // The publisher's own socket stands for all of the publisher's devices.
        let isActor =
            excluded.map { attendance.connections(app: event.app, channel: event.channel, user: entry.user).contains($0) } ?? false
        let decision = Decision.make(
            Decision.Input(
                policy: variant.policy, expiresAt: event.committedAt + variant.ttlMilliseconds, now: event.committedAt, isActor: isActor,
                scope: scope, devices: entry.devices, tokenAge: settings.tokenAge,
                reach: { [attendance] device in
                    attendance.state(app: event.app, channel: event.channel, user: entry.user, device: device, now: monotonic)
                }))
        let recipient = decided.recipients.count
        decided.recipients.append(entry.user)
        let choice = choice(decision, policy: variant.policy, devices: entry.devices)
        decided.notes.append(RecipientNote(state: decision.state, choice: choice))
        if isActor || variant.policy == .realtimeOnly { return }
        for awaited in decision.awaited {
            decided.targets.append(
                Escalation.Target(
                    user: entry.user, device: awaited.device, policy: variant.policy, wait: awaited.wait.milliseconds,
                    lifetime: variant.ttlMilliseconds, recipient: recipient, reason: awaited.reason))
        }
        // Only for rows: the digest is a good part of deciding. An end that the note tells needs none.
        if decision.pushes.isEmpty && (decision.end == nil || choice.reason != nil) { return }
        let nid = NotificationID.make(event: event.id, app: event.app, user: entry.user)
        if !decision.pushes.isEmpty {
            for push in decision.pushes {
                if push.reason == DeviceState.background.rawValue, variant.policy.usesSocket {
                    decided.unseen[UnseenPushes.Target(user: entry.user, device: scope == .device ? push.device : nil)] = recipient
                }
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
            // A return to a hub that has just come up has the whole grace; `critical` does not wait so long anyway.
            if target.reason == DeviceState.serverGrace.rawValue, target.policy != .critical { continue }
            decided.targets[index].wait =
                target.policy.spread(
                    .milliseconds(target.wait), recipients: decided.recipients.count, fraction: settings.fraction()
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
}
