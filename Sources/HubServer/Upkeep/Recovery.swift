internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import HubJSON

/// Takes up the events whose receipts an earlier process still awaited.
struct Recovery: Sendable {
    let reader: AudienceReader
    let store: any DeliveryStore
    let definitions: DefinitionSet
    let loopCount: Int
    let tokenAge: TokenAge
    let time: any TimeSource

    /// Most events that a start recovers, the oldest first.
    static let fanoutsMax = 20_000
    /// Audiences that are kept while events are read: one of a large session takes a megabyte.
    private static let audiencesMax = 16
    /// Events read at a time: one of a large session takes tens of kilobytes.
    static let pageMax = 200

    /// Reads the open events. Every unsettled recipient is awaited once more, for as long as people take to return after the server's
    /// absence.
    /// - Parameter isMeant: whether this process awaits events of the channel.
    func events(_ isMeant: (_ app: String, _ channel: String) -> Bool = { _, _ in true }) async throws -> [RecoveredEvent] {
        var recovered: [RecoveredEvent] = []
        var orphans: [RecipientSettlement] = []
        var audiences: [AudienceName: EventAudience?] = [:]
        var page = try await store.openFanouts(limit: Self.pageMax)
        while !page.isEmpty, recovered.count < Self.fanoutsMax {
            for fanout in page where isMeant(fanout.event.app, fanout.event.channel) {
                if let event = try await recover(fanout, &audiences) {
                    recovered.append(event)
                } else {
                    // No recipient is left, or the definition or session is gone.
                    orphans.append(RecipientSettlement(event: fanout.event.id, isClosed: true))
                }
            }
            page = try await store.openFanouts(after: page.last?.position ?? .max, limit: Self.pageMax)
        }
        if !orphans.isEmpty { try await store.settle(orphans) }
        return recovered
    }

    /// Events of one name on one channel have one audience. A roster is long, and a session has many open events.
    private struct AudienceName: Hashable {
        let app: String
        let channel: String
        let event: String
    }

    private func recover(_ open: OpenRecipients, _ audiences: inout [AudienceName: EventAudience?]) async throws -> RecoveredEvent? {
        let record = open.event
        guard let (definition, placeholders) = definitions.match(channel: record.channel), let event = definition.events[record.name]
        else { return nil }
        // Where each device stands for itself, some of a recipient's devices may have a row already.
        let rows = definition.scope == .device ? try await store.deliveries(event: record.id) : []
        let name = AudienceName(app: record.app, channel: record.channel, event: record.name)
        let known = audiences[name]
        let audience = if let known { known } else { try await audience(record, definition, placeholders, event) }
        if audiences.count >= Self.audiencesMax { audiences = [:] }
        audiences[name] = .some(audience)
        return RecoveredEvent(
            open, event: event, audience: audience,
            data: (try? JSONValue(parsing: record.data)) ?? .null, rows: rows, loopCount: loopCount, tokenAge: tokenAge,
            at: time.moment)
    }

    /// Nil: the event's session is gone.
    private func audience(
        _ record: EventRecord, _ definition: ChannelDefinition, _ placeholders: ChannelPattern.Match, _ event: EventDefinition
    ) async throws -> EventAudience? {
        do {
            return try await reader.audience(app: record.app, definition, placeholders, event)
        } catch is PublishRefusal {
            return nil
        }
    }
}
