import HubDelivery

/// The PostgreSQL database of a copy, inside one transaction.
final class PostgresCopySide {
    private let tx: PostgresTransaction
    private let lists = PostgresLists()
    private let numbers: TextNumbers
    private var days: Set<Int32> = []

    private static let rowsPerStep = 1_000

    /// - Parameter numbers: for texts that pushes share.
    init(_ tx: PostgresTransaction, numbers: TextNumbers) {
        self.tx = tx
        self.numbers = numbers
    }

    /// Rows of the kind.
    func count(_ kind: CopyKind) throws -> Int {
        switch kind {
        case .counter: CopyKind.counters.count
        case .push: try count("tandem.push")
        default: try count("(\(Self.rows(kind)))")
        }
    }

    private func count(_ source: String) throws -> Int {
        Int(try tx.query("SELECT count(*) AS count FROM \(source) AS counted").first?.int("count") ?? 0)
    }

    /// Calls `body` for every row, in the kind's order.
    func each(_ kind: CopyKind, _ body: (CopyRecord) throws -> Void) throws {
        switch kind {
        case .push: try eachPush(body)
        case .counter:
            for counter in CopyKind.counters {
                let last = try tx.query("SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM \(counter.sequence)").first
                try body(CopyRecord([.text(counter.table), .int(last?.int("last") ?? 0)]))
            }
        default:
            let order = kind == .fanout ? "number" : kind.order.map { "\"\($0)\"" }.joined(separator: ", ")
            tx.queue("DECLARE copied NO SCROLL CURSOR FOR SELECT * FROM (\(Self.rows(kind))) AS copied ORDER BY \(order)")
            var known: [Int64: RecipientSnapshot] = [:]
            while true {
                let rows = try tx.query("FETCH \(Self.rowsPerStep) FROM copied")
                for index in 0..<rows.count {
                    try body(
                        try kind == .fanout ? fanout(rows[index], &known) : CopyRecord(kind.columns.map { Self.value(rows[index], $0) }))
                }
                if rows.count < Self.rowsPerStep { break }
            }
            try tx.query("CLOSE copied")
        }
    }

    /// Writes rows, whose numbers stay.
    func write(_ kind: CopyKind, _ records: [CopyRecord]) throws {
        switch kind {
        case .fanout: try write(fanouts: records)
        case .push: try write(pushes: records)
        case .counter:
            for record in records where record.int(1) > 0 {
                guard let counter = CopyKind.counters.first(where: { $0.table == record.text(0) }) else { continue }
                try tx.query("SELECT setval('\(counter.sequence)', $1)", [.int(record.int(1))])
            }
        default: try write(rows: records, of: kind)
        }
    }

    // MARK: Rows

    /// The rows of a kind, with SQLite's names of the columns.
    private static func rows(_ kind: CopyKind) -> String {
        let names = kind.columns.map { "\(column($0.name)) AS \"\($0.name)\"" }.joined(separator: ", ")
        switch kind {
        // Days that were dropped left their channels' last sequences here; of the others the events tell.
        case .channel:
            return """
                SELECT app, name, max(sequence) AS sequence FROM (
                  SELECT app, name, sequence FROM tandem.channel UNION ALL
                  SELECT app, channel, max(sequence) FROM tandem.event GROUP BY app, channel) AS every GROUP BY app, name
                """
        // The last answer under a key counts.
        case .answer: return "SELECT DISTINCT ON (app, key) \(names) FROM tandem.answer ORDER BY app, key, answered_at DESC"
        case .webhook:
            return "SELECT \(names) FROM tandem.webhook w WHERE NOT EXISTS (SELECT FROM tandem.webhook_end e WHERE e.number = w.number)"
        case .fanout:
            return """
                SELECT f.number, f.event, f.app, f.channel, f.expires_at, f.snapshot, f.notes, \(RecipientBits.columns),
                  (f.is_open AND NOT EXISTS (
                  SELECT FROM tandem.settlement c WHERE c.day = f.day AND c.fanout = f.number AND c.is_closed))::integer AS is_open
                FROM tandem.fanout f
                """
        default: return "SELECT \(names) FROM tandem.\(kind.rawValue)"
        }
    }

    private static func column(_ name: String) -> String { name == "user" ? "user_id" : name }

    private static func value(_ row: PostgresRow, _ column: CopyKind.Column) -> CopyValue {
        switch column.type {
        case .int: row.intOrNil(column.name).map { .int($0) } ?? .null
        case .text: row.textOrNil(column.name).map { .text($0) } ?? .null
        case .bytes: row.bytesOrNil(column.name).map { .bytes($0) } ?? .null
        case .flag: .int(row.bool(column.name) ? 1 : 0)
        }
    }

    private func write(rows records: [CopyRecord], of kind: CopyKind) throws {
        let columns = kind.columns
        if let dayColumn = kind.dayColumn, let place = columns.firstIndex(where: { $0.name == dayColumn }) {
            try makeDays(records.map { $0.int(place) })
        }
        let types = columns.map { column in
            switch column.type {
            case .int, .flag: "bigint"
            case .text: "text"
            case .bytes: "bytea"
            }
        }
        let day = kind.dayColumn.map { "floor(w.\($0)::numeric / 86400000)::integer" }
        let targets = columns.map { "\"\(Self.column($0.name))\"" } + (day == nil ? [] : ["day"])
        let sources = columns.map { $0.type == .flag ? "w.\"\($0.name)\" <> 0" : "w.\"\($0.name)\"" } + [day].compactMap { $0 }
        let lists = types.enumerated().map { "$\($0.offset + 1)::\($0.element)[]" }
        try tx.query(
            """
            INSERT INTO tandem.\(kind.rawValue) (\(targets.joined(separator: ", "))) SELECT \(sources.joined(separator: ", "))
            FROM unnest(\(lists.joined(separator: ", "))) AS w (\(columns.map { "\"\($0.name)\"" }.joined(separator: ", ")))
            """,
            columns.indices.map { place in
                let values = records.map { $0.values[place] }
                return switch columns[place].type {
                case .int, .flag: .ints(values.map { if case .int(let number) = $0 { number } else { nil } })
                case .text: .texts(values.map { if case .text(let text) = $0 { text } else { nil } })
                case .bytes: .blobs(values.map { if case .bytes(let bytes) = $0 { bytes } else { nil } })
                }
            })
    }

    private func makeDays(_ times: [Int64]) throws {
        for day in Set(times.map(PostgresStore.day)).subtracting(days).sorted() {
            try tx.query("SELECT tandem.make_day($1::bigint::integer)", [.int(Int64(day))])
            days.insert(day)
        }
    }

    // MARK: Fan-outs and pushes

    private func fanout(_ row: PostgresRow, _ known: inout [Int64: RecipientSnapshot]) throws -> CopyRecord {
        let number = row.int("snapshot")
        guard let list = try known[number] ?? PostgresLists.read(number, tx) else {
            throw StorageError(.unreadableRow, "the list of recipients of event \(row.text("event")) cannot be read")
        }
        if known.count > 16 { known = [:] }
        known[number] = list
        return .fanout(
            [
                .text(row.text("event")), .int(row.int("number")), .text(row.text("app")), .text(row.text("channel")),
                .int(row.int("committed_at")), .int(row.int("expires_at")), .int(row.int("is_open")), .bytes(row.bytes("notes")),
            ], list: list, bits: RecipientBits(row: row))
    }

    private func write(fanouts records: [CopyRecord]) throws {
        try makeDays(records.map { $0.int(4) })
        for record in records {
            guard let (list, bits) = record.fanout, case .bytes(let notes) = record.values[7] else { continue }
            let day = PostgresStore.day(record.int(4))
            if let plan = lists.plan(list, day: day) {
                for statement in plan.statements { tx.queue(statement.sql, statement.values) }
                lists.committed([plan])
            }
            tx.queue(
                """
                INSERT INTO tandem.fanout
                  (day, number, event, app, channel, committed_at, expires_at, snapshot, count, is_large, is_open, pushed, notes)
                VALUES (
                  $1, $2, $3, $4, $5, $6, $7, (SELECT number FROM tandem.snapshot WHERE key = $8 AND day = $1), $9, $10, $11, $12, $13)
                """,
                [
                    .int(Int64(day)), .int(record.int(1)), .text(record.text(0)), .text(record.text(2)), .text(record.text(3)),
                    .int(record.int(4)), .int(record.int(5)), .bytes(list.key), .int(bits.count), .bool(RecipientColumns.isLarge(list)),
                    .bool(record.int(6) != 0), .bytes(bits.pushed.bytes), .bytes(notes),
                ])
            guard case .bytes(let told) = record.values[10] else { continue }
            tx.queue(
                "INSERT INTO tandem.settlement (day, fanout, places, is_closed) VALUES ($1, $2, $3, false)",
                [.int(Int64(day)), .int(record.int(1)), .bytes(told)])
        }
        _ = try tx.all([])
    }

    private func eachPush(_ body: (CopyRecord) throws -> Void) throws {
        let reader = PushReader(tx)
        var last = (event: "", user: "", device: "")
        while true {
            let pushes = try reader.pushes(
                "(p.event, p.user_id, p.device) > ($1::tandem.word, $2::tandem.word, $3::tandem.word)",
                [.text(last.event), .text(last.user), .text(last.device), .int(Self.rowsPerStep)],
                tail: "ORDER BY p.event, p.user_id, p.device LIMIT $4")
            for push in pushes { try body(.push(push.record, log: push.log)) }
            guard pushes.count == Self.rowsPerStep, let end = pushes.last?.record else { return }
            last = (end.event, end.user, DeviceColumn.text(end))
        }
    }

    private func write(pushes records: [CopyRecord]) throws {
        let pushes = records.compactMap(\.push)
        let written = WrittenRows(pushes, numbers: numbers, ignoringKnown: false)
        for statement in written.statements { tx.queue(statement.sql, statement.values) }
        let names: [PostgresValue] = [
            .texts(records.map { $0.text(CopyRecord.pushEvent) }), .texts(records.map { $0.text(CopyRecord.pushUser) }),
            .texts(records.map { $0.text(CopyRecord.pushDevice) }),
        ]
        let joined = "JOIN tandem.push p ON p.event = w.event AND p.user_id = w.user_id AND p.device = w.device"
        tx.queue(
            """
            INSERT INTO tandem.push_step (day, push, state, due_at, attempts, provider_id, outcome, log, is_final)
            SELECT p.day, p.number, p.state, p.due_at, p.attempts, p.provider_id, p.outcome, w.log, w.is_final
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[]) AS w (event, user_id, device, log, is_final)
            \(joined)
            WHERE w.log <> ''
            """, names + [.texts(records.map { $0.text(CopyRecord.pushLog) }), .bools(pushes.map { !PushState.open.contains($0.state) })])
        tx.queue(
            """
            INSERT INTO tandem.dead_letter (day, push, app, nid, device, failed_at, expires_at)
            SELECT p.day, p.number, p.app, p.nid, p.device, p.due_at, w.expires_at
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS w (event, user_id, device, expires_at) \(joined)
            WHERE p.state = 'failed' AND p.message IS NOT NULL AND NOT \(PushReader.isClear)
            """, names + [.ints(pushes.map { $0.message?.expiresAt })])
        _ = try tx.all([])
    }
}
