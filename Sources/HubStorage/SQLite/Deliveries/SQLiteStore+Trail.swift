import Foundation
import GRDB
import HubCore
package import HubDelivery

extension SQLiteStore {
    /// Costs one look-up per recipient of the page, and for a large session a look-up in its list in memory.
    package func trail(event id: String, users: [String]?, from first: Int, limit: Int) async throws -> EventTrail? {
        let leases = leases.current
        return try await reading { db, lists in
            try Self.trail(db, event: id, users: users, from: first, limit: limit, leases, lists: &lists)
        }
    }

    static func trail(
        _ db: Database, event id: String, users: [String]?, from first: Int, limit: Int, _ leases: [Int64: PushLeases.Lease],
        lists: inout Lists
    ) throws -> EventTrail? {
        let (first, limit) = (max(0, first), min(max(0, limit), EventTrail.pageMax))
        guard let event = try Self.event(db, id: id) else { return nil }
        guard let fanout = try TrailOfRecipients(db, id: id, lists: &lists) else {
            return try Self.trailOfDeliveries(db, event, users: users, from: first, limit: limit, leases, lists: &lists)
        }
        let start = min(first, fanout.count)
        let page = start..<min(fanout.count, start + limit)
        let places = users.map { Array($0.lazy.compactMap { fanout.place(of: $0) }.prefix(limit)) } ?? Array(page)
        var trail = EventTrail(event: event, isOpen: fanout.isOpen, recipientCount: fanout.count, recipients: [], next: nil)
        for place in places {
            var recipient = fanout.recipient(place, committedAt: event.committedAt)
            recipient.deliveries = try Self.trail(db, event: id, user: recipient.user, leases, lists: &lists)
            trail.recipients.append(recipient)
        }
        if users == nil && page.upperBound < fanout.count { trail.next = page.upperBound }
        assert(trail.recipients.count <= limit, "a page of \(limit) has \(trail.recipients.count) recipients")
        return trail
    }

    /// `TrailStore.outcomes`: a walk along the event's rows.
    package func outcomes(event id: String) async throws -> EventOutcomes? {
        try await reading { db, lists in
            guard let event = try Self.event(db, id: id) else { return nil }
            var (pushes, users) = ([ExactText: PushTimes](), [String]())
            let rows = try Row.fetchCursor(db.cachedStatement(sql: Self.outcomesSQL), arguments: [id])
            while let row = try rows.next() {
                let user: String = row["user"]
                if users.last.map(ExactText.init) != ExactText(user) { users.append(user) }
                let (device, purpose) = DeviceColumn.read(row["device"])
                pushes[ExactText(user), default: PushTimes()].add(
                    PushState(rawValue: row["state"]) ?? .failed, purpose: purpose, outcome: row["outcome"], dueAt: row["due_at"],
                    isOfDevice: !device.isEmpty, attempts: AttemptLog.decode(row["attempts_log"] ?? "").attempts)
            }
            guard let fanout = try TrailOfRecipients(db, id: id, lists: &lists) else {
                return EventOutcomes(event, users: users, pushes)
            }
            return EventOutcomes(
                event, isOpen: fanout.isOpen, users: fanout.list.users, notes: fanout.notes, fanout.bits, pushes)
        }
    }

    private static var outcomesSQL: String {
        """
        SELECT user, device, state, outcome, due_at, attempts_log FROM delivery WHERE event = ?
        ORDER BY user, \(DeviceColumn.isClear), device
        """
    }

    /// The trail from the delivery rows, for an event without recipients or with an unreadable list.
    private static func trailOfDeliveries(
        _ db: Database, _ event: EventRecord, users wanted: [String]?, from first: Int, limit: Int, _ leases: [Int64: PushLeases.Lease],
        lists: inout Lists
    ) throws -> EventTrail {
        let count = try Int.fetchOne(
            db.cachedStatement(sql: "SELECT COUNT(DISTINCT user) FROM delivery WHERE event = ?"), arguments: [event.id])
        let users =
            try wanted.map { Array($0.prefix(limit)) }
            ?? String.fetchAll(
                db.cachedStatement(sql: "SELECT DISTINCT user FROM delivery WHERE event = ? ORDER BY user LIMIT ? OFFSET ?"),
                arguments: [event.id, limit, first])
        var trail = EventTrail(event: event, isOpen: false, recipientCount: count ?? 0, recipients: [], next: nil)
        for user in users {
            let deliveries = try Self.trail(db, event: event.id, user: user, leases, lists: &lists)
            if deliveries.isEmpty { continue }
            trail.recipients.append(
                EventTrail.Recipient(
                    user: user, note: nil, isConfirmed: false, confirmedAt: nil, isPushed: true, deliveries: deliveries))
        }
        if wanted == nil && first + users.count < trail.recipientCount { trail.next = first + users.count }
        return trail
    }

    private static func trail(
        _ db: Database, event: String, user: String, _ leases: [Int64: PushLeases.Lease], lists: inout Lists
    ) throws -> [EventTrail.Delivery] {
        var messages = MessageReader(db)
        return try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT event, user, device, nid, app, state, reason, due_at, attempts, NULL AS message, provider_id, outcome,
                      attempts_log, rowid AS row
                    FROM delivery WHERE event = ? AND user = ? ORDER BY \(DeviceColumn.isClear), device
                    """), arguments: [event, user]
        ).map { row in
            let log = AttemptLog.decode(row["attempts_log"] ?? "")
            if !log.isComplete {
                lists.problems.append(
                    StorageError(.unreadableRow, "some attempts of a delivery cannot be read (event \(event), nid \(row["nid"] as String))")
                )
            }
            return EventTrail.Delivery(record: try delivery(row: row, &messages, leases).delivery, attempts: log.attempts)
        }
    }
}

/// A fan-out with everything needed for the trail.
private struct TrailOfRecipients {
    let list: SnapshotCache.Entry
    let bits: RecipientBits
    let notes: [RecipientNote]?
    let isOpen: Bool

    /// Nil if there is no fan-out, or its list cannot be read.
    init?(_ db: Database, id: String, lists: inout Lists) throws {
        guard
            let row = try Row.fetchOne(db.cachedStatement(sql: "SELECT * FROM fanout WHERE event = ?"), arguments: [id])
        else { return nil }
        bits = RecipientBits(row: row)
        guard let list = try lists.list(row["snapshot"], ofEvent: id, count: bits.count) else { return nil }
        self.list = list
        notes = NoteCoding.decode([UInt8](row["notes"] as Data), count: bits.count)
        isOpen = row["is_open"]
        if bits.isUnreadable || notes == nil { lists.problems.append(RecipientBits.unreadable(event: id)) }
    }

    var count: Int { bits.count }
    func place(of user: String) -> Int? { list.place(of: user) }

    /// The recipient at `place`, without deliveries.
    func recipient(_ place: Int, committedAt: Int64) -> EventTrail.Recipient {
        EventTrail.Recipient(
            user: list.users[place], note: notes?[place], isConfirmed: bits.confirmed.contains(place),
            confirmedAt: bits.received?.milliseconds(place).map { committedAt + $0 }, isPushed: bits.pushed.contains(place),
            deliveries: [])
    }
}
