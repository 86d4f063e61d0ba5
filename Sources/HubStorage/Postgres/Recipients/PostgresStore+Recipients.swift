import HubDefinitions
package import HubDelivery
import Synchronization

extension PostgresStore {
    /// `RecipientStore.settle`: a row per settlement.
    package func settle(_ settlements: [RecipientSettlement]) async throws {
        _ = try await escalate([], settlements)
    }

    /// `RecipientStore.escalate`: a row per push and settlement, in one round trip when the events are recent.
    package func escalate(_ deliveries: [PushRecord], _ settlements: [RecipientSettlement]) async throws -> [PushRecord] {
        if deliveries.isEmpty && settlements.isEmpty { return [] }
        let pushes = WrittenRows(deliveries, numbers: numbers)
        let unknown = Set(settlements.map(\.event)).filter { recent[$0] == nil }
        let (inserted, found) = try await write(rows: deliveries.count + settlements.count) { [recent] tx in
            var places: [String: RecentFanouts.Place] = [:]
            if !unknown.isEmpty {
                let rows = try tx.query(
                    "SELECT event, number, day, committed_at FROM tandem.fanout WHERE event = ANY($1)", [.texts(unknown.sorted())])
                for index in 0..<rows.count { places[rows[index].text("event")] = Self.place(rows[index]) }
            }
            var statements = pushes.statements
            if let settling = Self.settling(settlements, { places[$0] ?? recent[$0] }) { statements.append(settling) }
            let results = try tx.all(statements)
            let inserted = pushes.inserted(results.prefix(pushes.statements.count).last)
            tx.onUnknown { tx in try Self.remove(inserted, tx) }
            return (inserted, places)
        }
        recent.note(found)
        return inserted
    }

    /// `RecipientStore.cancelDeliveries`: reads the open pushes of these people, and ends or marks them.
    package func cancelDeliveries(event: String, _ cancellations: [PushCancellation]) async throws -> [PushRecord] {
        if cancellations.isEmpty { return [] }
        let leased = leases.withLock { $0 }
        return try await write(rows: cancellations.count) { tx in
            let users = Set(cancellations.map(\.user))
            let open = try PushReader(tx, withMessages: false).pushes(
                "p.event = $1 AND p.user_id = ANY($2) AND NOT \(PushReader.isClear)", [.text(event), .texts(users.sorted())]
            ).filter { PushState.open.contains($0.record.state) }
            var (steps, ended) = (PushSteps(), [PushRecord]())
            var met: Set<Int64> = []
            for wanted in cancellations {
                for push in open where push.record.user == wanted.user && (wanted.device ?? push.record.device) == push.record.device {
                    let isFree = ![Policy.both.rawValue, Policy.pushOnly.rawValue].contains(push.record.reason)
                    guard wanted.isOfNotification || isFree, met.insert(push.number).inserted else { continue }
                    var push = push
                    push.record.outcome = PushSteps.receipt
                    // The attempt under way goes on, but is not retried.
                    if !leased.contains(push.number) {
                        push.record.state = .cancelled
                        ended.append(push.record)
                    }
                    steps.add(push)
                }
            }
            if let statement = steps.statement { try tx.query(statement.sql, statement.values) }
            return ended
        }
    }

    // MARK: Inside a transaction

    private static func place(_ row: PostgresRow) -> RecentFanouts.Place {
        RecentFanouts.Place(number: row.int("number"), day: Int32(clamping: row.int("day")), committedAt: row.int("committed_at"))
    }

    /// Nil if no settlement has a row to settle.
    private static func settling(
        _ settlements: [RecipientSettlement], _ place: (String) -> RecentFanouts.Place?
    ) -> PostgresStatement? {
        let rows = settlements.compactMap { settlement in place(settlement.event).map { (settlement, $0) } }
            .filter { !$0.0.confirmed.isEmpty || !$0.0.pushed.isEmpty || $0.0.isClosed }
        if rows.isEmpty { return nil }
        return PostgresStatement(
            """
            INSERT INTO tandem.settlement (day, fanout, places, is_closed)
            SELECT w.* FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::boolean[]) AS w (day, fanout, places, is_closed)
            JOIN tandem.day d ON d.day = w.day
            """,
            [
                .ints(rows.map { Int64($0.1.day) }), .ints(rows.map { $0.1.number }),
                .blobs(rows.map { SettlementCoding.encode($0.0, committedAt: $0.1.committedAt) }), .bools(rows.map { $0.0.isClosed }),
            ])
    }

    /// The statement that writes events' recipients; its rows name where they lie.
    static func writing(_ fanouts: [(event: EventRecord, columns: RecipientColumns)]) -> PostgresStatement? {
        if fanouts.isEmpty { return nil }
        func ints(_ value: (EventRecord, RecipientColumns) -> Int64) -> PostgresValue { .ints(fanouts.map { value($0.event, $0.columns) }) }
        return PostgresStatement(
            """
            INSERT INTO tandem.fanout
              (day, event, app, channel, committed_at, expires_at, snapshot, count, is_large, is_open, pushed, notes)
            SELECT day, event, app, channel, committed_at, expires_at,
              (SELECT number FROM tandem.snapshot s WHERE s.key = wanted.key AND s.day = wanted.day),
              count, is_large, is_open, pushed, notes
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bigint[],
                $9::boolean[], $10::boolean[], $11::bytea[], $12::bytea[])
              WITH ORDINALITY AS wanted
                (day, event, app, channel, committed_at, expires_at, key, count, is_large, is_open, pushed, notes, place)
            ORDER BY place
            RETURNING event, number, day, committed_at
            """,
            [
                ints { event, _ in Int64(day(event.committedAt)) }, .texts(fanouts.map(\.event.id)), .texts(fanouts.map(\.event.app)),
                .texts(fanouts.map(\.event.channel)), ints { event, _ in event.committedAt }, ints { event, _ in event.expiresAt },
                .blobs(fanouts.map(\.columns.snapshot.key)), ints { _, columns in Int64(columns.snapshot.users.count) },
                .bools(fanouts.map(\.columns.isLarge)), .bools(fanouts.map(\.columns.isOpen)),
                .blobs(fanouts.map { $0.columns.pushed.isEmpty ? [] : $0.columns.pushed.bytes }), .blobs(fanouts.map(\.columns.notes)),
            ])
    }

    static func places(_ rows: PostgresRows) -> [String: RecentFanouts.Place] {
        Dictionary(rows.map { ($0.text("event"), place($0)) }, uniquingKeysWith: { _, new in new })
    }
}

extension RecipientBits {
    /// Columns that `init(row:)` reads, of `tandem.fanout f`.
    static let columns = """
        f.count, f.committed_at, f.pushed, (SELECT string_agg(s.places, ''::bytea ORDER BY s.number) FROM tandem.settlement s
          WHERE s.day = f.day AND s.fanout = f.number) AS settled
        """

    init(row: PostgresRow) {
        var bits = RecipientBits(
            count: Int(clamping: row.int("count")), committedAt: row.int("committed_at"), confirmed: [], pushed: row.bytes("pushed"),
            received: [])
        if let settled = row.bytesOrNil("settled"), !SettlementCoding.apply(settled, to: &bits) { bits.isUnreadable = true }
        self = bits
    }
}
