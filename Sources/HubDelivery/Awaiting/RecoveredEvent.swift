package import HubCore
package import HubDefinitions

/// An event that an earlier process left open, ready to be waited for again.
package struct RecoveredEvent: Sendable {
    package var opening: Escalation.Opening
    package let context: PushContext
    /// Roles whose sockets get the frame.
    let roles: RoleSet

    /// Milliseconds for which receipts that are under way are waited for. Near the event's end it is a quarter of what is left.
    private static let receiptsMilliseconds: Int64 = 5_000

    /// Milliseconds since 1970.
    package var committedAt: Int64 { context.record.committedAt }

    /// Every unsettled recipient is waited for once more, for as long as people take to come back after an absence of the server.
    ///
    /// After half of the event's lifetime only receipts are waited for, and ever shorter towards its end. Otherwise an event would expire
    /// among changes of its owner, each of which begins the wait anew.
    /// - Parameters:
    ///   - audience: read now; nil: the event's session is gone.
    ///   - data: the event's data, parsed.
    ///   - rows: the event's rows, where each device stands for itself.
    /// - Returns: nil: no recipient is left, or no definition says any more what to push.
    package init?(
        _ open: OpenRecipients, event: EventDefinition, audience: EventAudience?, data: JSONValue, rows: [PushRecord], loopCount: Int,
        tokenAge: TokenAge, at moment: Moment
    ) {
        guard let audience, !open.unsettled.isEmpty else { return nil }
        let now = moment.wall
        let (record, definition, placeholders) = (open.event, audience.definition, audience.placeholders)
        let entries = Dictionary(audience.entries.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first })
        let pushed = Set(rows.map { [$0.user, $0.device] })
        let targets = open.unsettled.flatMap { place -> [Escalation.Target] in
            guard let entry = entries[open.users[place]],
                let variant = event.variant(user: entry.user, role: entry.participant?.role, channelUser: placeholders.user, data: data),
                let wait = variant.policy.wait(.serverGrace, graceLeft: .seconds(DeviceState.bootGraceSeconds))
            else { return [] }
            let devices: [String?] =
                definition.scope == .device
                ? Decision.usableDevices(tokenAge.worthTrying(entry.devices, for: variant.policy, now: now)).map(\.id)
                    .filter { !pushed.contains([entry.user, $0]) } : [nil]
            let lifetime = record.committedAt + variant.ttlMilliseconds - now
            let receipts = min(Self.receiptsMilliseconds, max(0, lifetime / 4))
            return devices.map {
                Escalation.Target(
                    user: entry.user, device: $0, policy: variant.policy,
                    wait: min(wait.milliseconds, max(receipts, lifetime - variant.ttlMilliseconds / 2)), lifetime: lifetime,
                    recipient: place, reason: DeviceState.serverGrace.rawValue)
            }
        }
        guard !targets.isEmpty else { return nil }
        // Nobody who is connected now was sent it.
        opening = Escalation.Opening(
            number: 0, event: record.id, app: record.app, channel: record.channel, attendedUpTo: Array(repeating: 0, count: loopCount),
            targets: targets)
        roles = audience.socketRoles(event, data: data)
        context = PushContext(
            record: record, readAt: moment, definition: definition, event: event, placeholders: placeholders, data: data)
    }
}
