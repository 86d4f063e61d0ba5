import HubCore
package import HubDelivery

extension PostgresStore {
    /// `TrailStore.trail`: three queries, whatever the page's size is.
    package func trail(event id: String, users: [String]?, from first: Int, limit: Int) async throws -> EventTrail? {
        try await reading { tx, lists in try Self.trail(event: id, users: users, from: first, limit: limit, tx, &lists) }
    }

    static func trail(
        event id: String, users: [String]?, from first: Int, limit: Int, _ tx: PostgresTransaction, _ lists: inout Lists
    ) throws -> EventTrail? {
        let (first, limit) = (max(0, first), min(max(0, limit), EventTrail.pageMax))
        guard let event = try Self.event(id, tx) else { return nil }
        guard let recipients = try RecipientsOfTrail(id, tx, &lists) else {
            return try Self.trailOfDeliveries(event, users: users, from: first, limit: limit, tx, &lists)
        }
        let (bits, list) = (recipients.bits, recipients.list)
        let start = min(first, bits.count)
        let page = start..<min(bits.count, start + limit)
        let places = users.map { Array($0.lazy.compactMap { list.place(of: $0) }.prefix(limit)) } ?? Array(page)
        let deliveries = try Self.trails(id, users: places.map { list.users[$0] }, tx, &lists)
        var trail = EventTrail(event: event, isOpen: recipients.isOpen, recipientCount: bits.count, recipients: [], next: nil)
        trail.recipients = places.map { place in
            EventTrail.Recipient(
                user: list.users[place], note: recipients.notes?[place], isConfirmed: bits.confirmed.contains(place),
                confirmedAt: bits.received?.milliseconds(place).map { event.committedAt + $0 }, isPushed: bits.pushed.contains(place),
                deliveries: deliveries[list.users[place]] ?? [])
        }
        if users == nil && page.upperBound < bits.count { trail.next = page.upperBound }
        return trail
    }

    /// `TrailStore.outcomes`: three queries.
    package func outcomes(event id: String) async throws -> EventOutcomes? {
        try await reading { tx, lists in
            guard let event = try Self.event(id, tx) else { return nil }
            var (pushes, users) = ([ExactText: PushTimes](), [String]())
            for push in try PushReader(tx, withMessages: false).pushes("p.event = $1", [.text(id)]) {
                let record = push.record
                if users.last.map(ExactText.init) != ExactText(record.user) { users.append(record.user) }
                pushes[ExactText(record.user), default: PushTimes()].add(
                    record.state, purpose: record.purpose, outcome: record.outcome, dueAt: record.dueAt, isOfDevice: !record.device.isEmpty,
                    attempts: AttemptLog.decode(push.log).attempts)
            }
            guard let recipients = try RecipientsOfTrail(id, tx, &lists) else { return EventOutcomes(event, users: users, pushes) }
            return EventOutcomes(
                event, isOpen: recipients.isOpen, users: recipients.list.users, notes: recipients.notes, recipients.bits, pushes)
        }
    }

    /// The trail from the delivery rows, for an event without recipients or with an unreadable list.
    private static func trailOfDeliveries(
        _ event: EventRecord, users wanted: [String]?, from first: Int, limit: Int, _ tx: PostgresTransaction, _ lists: inout Lists
    ) throws -> EventTrail {
        let results = try tx.all([
            PostgresStatement("SELECT count(DISTINCT user_id) AS count FROM tandem.push WHERE event = $1", [.text(event.id)]),
            PostgresStatement(
                "SELECT DISTINCT user_id FROM tandem.push WHERE event = $1 ORDER BY user_id LIMIT $2 OFFSET $3",
                [.text(event.id), .int(limit), .int(first)]),
        ])
        let users = wanted.map { Array($0.prefix(limit)) } ?? results[1].map { $0.text("user_id") }
        let deliveries = try trails(event.id, users: users, tx, &lists)
        var trail = EventTrail(
            event: event, isOpen: false, recipientCount: Int(results[0].first?.int("count") ?? 0), recipients: [], next: nil)
        trail.recipients = users.compactMap { user in
            deliveries[user].map {
                EventTrail.Recipient(user: user, note: nil, isConfirmed: false, confirmedAt: nil, isPushed: true, deliveries: $0)
            }
        }
        if wanted == nil && first + users.count < trail.recipientCount { trail.next = first + users.count }
        return trail
    }

    private static func trails(
        _ event: String, users: [String], _ tx: PostgresTransaction, _ lists: inout Lists
    ) throws -> [String: [EventTrail.Delivery]] {
        let pushes = try PushReader(tx, withMessages: false).pushes(
            "p.event = $1 AND p.user_id = ANY($2)", [.text(event), .texts(users)])
        var trails: [String: [EventTrail.Delivery]] = [:]
        for push in pushes {
            let log = AttemptLog.decode(push.log)
            if !log.isComplete {
                lists.problems.append(
                    StorageError(.unreadableRow, "some attempts of a delivery cannot be read (event \(event), nid \(push.record.nid))"))
            }
            trails[push.record.user, default: []].append(EventTrail.Delivery(record: push.record, attempts: log.attempts))
        }
        return trails
    }
}

/// An event's recipient row with everything needed for the trail.
private struct RecipientsOfTrail {
    let list: SnapshotCache.Entry
    let bits: RecipientBits
    /// Nil if they cannot be read.
    let notes: [RecipientNote]?
    let isOpen: Bool

    /// Nil if there is no row, or its list cannot be read.
    init?(_ id: String, _ tx: PostgresTransaction, _ lists: inout Lists) throws {
        let row = try tx.query(
            """
            SELECT f.snapshot, f.notes, f.is_open AND NOT EXISTS (
                SELECT FROM tandem.settlement s WHERE s.day = f.day AND s.fanout = f.number AND s.is_closed) AS is_open,
              \(RecipientBits.columns)
            FROM tandem.fanout f WHERE f.event = $1
            """, [.text(id)]
        ).first
        guard let row else { return nil }
        bits = RecipientBits(row: row)
        guard let list = try lists.list(row.int("snapshot"), ofEvent: id, count: bits.count) else { return nil }
        self.list = list
        notes = NoteCoding.decode(row.bytes("notes"), count: bits.count)
        isOpen = row.bool("is_open")
        if bits.isUnreadable || notes == nil { lists.problems.append(RecipientBits.unreadable(event: id)) }
    }
}
