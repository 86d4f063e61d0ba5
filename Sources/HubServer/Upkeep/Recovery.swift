internal import HubAPI
internal import HubCore
internal import HubDelivery
internal import HubJSON

/// An event that an earlier process left open, ready to be waited for again.
struct RecoveredEvent: Sendable {
    var opening: Escalation.Opening
    let context: PushContext
}

/// Takes up the events whose receipts an earlier process still awaited.
struct Recovery: Sendable {
    let reader: AudienceReader
    let store: any DeliveryStore
    let definitions: DefinitionSet
    let loopCount: Int
    let tokenAge: TokenAge
    let time: any TimeSource

    /// Fan-outs that are taken up at one start; the oldest are first.
    static let fanoutsMax = 20_000
    /// Read at a time: one of a large session takes tens of kilobytes.
    static let pageMax = 200

    /// Everybody who is unsettled is waited for once more: for as long as people take to come back after the server was away.
    func events() async throws -> [RecoveredEvent] {
        var recovered: [RecoveredEvent] = []
        var orphans: [RecipientSettlement] = []
        var page = try await store.openFanouts(limit: Self.pageMax)
        while !page.isEmpty, recovered.count < Self.fanoutsMax {
            for fanout in page {
                if let event = try await recover(fanout) {
                    recovered.append(event)
                } else {
                    // Nobody is left, or nobody says any more what would have been pushed.
                    orphans.append(RecipientSettlement(event: fanout.event.id, isClosed: true))
                }
            }
            page = try await store.openFanouts(after: page.last?.position ?? .max, limit: Self.pageMax)
        }
        if !orphans.isEmpty { try await store.settle(orphans) }
        return recovered
    }

    private func recover(_ fanout: OpenRecipients) async throws -> RecoveredEvent? {
        let record = fanout.event
        guard let (definition, placeholders) = definitions.match(channel: record.channel), let event = definition.events[record.name],
            !fanout.unsettled.isEmpty, let entries = try await entries(record, definition, placeholders, event)
        else { return nil }
        let data = (try? JSONValue(parsing: record.data)) ?? .null
        // Where each device stands for itself, some of a recipient's may have been pushed to already.
        let rows = definition.scope == .device ? try await store.deliveries(event: record.id) : []
        let pushed = Set(rows.map { [$0.user, $0.device] })
        let targets = fanout.unsettled.flatMap { place -> [Escalation.Target] in
            guard let entry = entries[fanout.users[place]],
                let variant = event.variant(user: entry.user, role: entry.participant?.role, channelUser: placeholders.user, data: data),
                let wait = variant.policy.wait(.serverGrace, graceLeft: .seconds(DeviceState.bootGraceSeconds))
            else { return [] }
            let lifetime = record.committedAt + variant.ttlMilliseconds - time.wallMilliseconds
            let devices: [String?] =
                definition.scope == .device
                ? Decision.usableDevices(tokenAge.worthTrying(entry.devices, for: variant.policy, now: time.wallMilliseconds)).map(\.id)
                    .filter { !pushed.contains([entry.user, $0]) } : [nil]
            return devices.map {
                Escalation.Target(
                    user: entry.user, device: $0, policy: variant.policy, wait: wait.milliseconds, lifetime: lifetime, recipient: place,
                    reason: DeviceState.serverGrace.rawValue)
            }
        }
        guard !targets.isEmpty else { return nil }
        let opening = Escalation.Opening(
            number: 0, event: record.id, app: record.app, channel: record.channel, attendedUpTo: Array(repeating: 0, count: loopCount),
            targets: targets)
        let context = PushContext(record: record, definition: definition, event: event, placeholders: placeholders, data: data)
        return RecoveredEvent(opening: opening, context: context)
    }

    /// Nil when the event's session is gone.
    private func entries(
        _ record: EventRecord, _ definition: ChannelDefinition, _ placeholders: ChannelPattern.Match, _ event: EventDefinition
    ) async throws -> [String: EventAudience.Entry]? {
        do {
            let audience = try await reader.audience(app: record.app, definition, placeholders, event)
            return Dictionary(audience.entries.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first })
        } catch is PublishRefusal {
            return nil
        }
    }
}
