import Foundation
import GRDB
import HubDelivery

/// The SQLite file of a copy, inside one transaction.
struct SQLiteCopySide {
    let db: Database
    private let lists = RecipientLists()

    init(_ db: Database) { self.db = db }

    /// Rows of the kind.
    func count(_ kind: CopyKind) throws -> Int {
        if kind == .counter { return CopyKind.counters.count }
        return try Int.fetchOne(db, sql: "SELECT count(*) FROM \(kind.rawValue)") ?? 0
    }

    /// Calls `body` for every row, in the kind's order.
    func each(_ kind: CopyKind, _ body: (CopyRecord) throws -> Void) throws {
        switch kind {
        case .fanout: try eachFanout(body)
        case .push: try eachPush(body)
        case .counter:
            for counter in CopyKind.counters {
                let last = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [counter.table])
                try body(CopyRecord([.text(counter.table), .int(last ?? 0)]))
            }
        default:
            let names = kind.columns.map { "\"\($0.name)\"" }.joined(separator: ", ")
            let order = kind.order.map { "\"\($0)\"" }.joined(separator: ", ")
            let rows = try Row.fetchCursor(db, sql: "SELECT \(names) FROM \(kind.rawValue) ORDER BY \(order)")
            while let row = try rows.next() {
                try body(CopyRecord(kind.columns.indices.map { Self.value(row[$0]) }))
            }
        }
    }

    /// Writes rows, whose numbers stay.
    func write(_ kind: CopyKind, _ records: [CopyRecord]) throws {
        switch kind {
        case .fanout: for record in records { try write(fanout: record) }
        case .push:
            _ = try WrittenPushes(records.compactMap(\.push)).insert(db)
            let statement = try db.cachedStatement(sql: "UPDATE delivery SET attempts_log = ? WHERE event = ? AND user = ? AND device = ?")
            for record in records where !record.text(CopyRecord.pushLog).isEmpty {
                try statement.execute(
                    arguments: [
                        record.text(CopyRecord.pushLog), record.text(CopyRecord.pushEvent), record.text(CopyRecord.pushUser),
                        record.text(CopyRecord.pushDevice),
                    ])
            }
        case .counter:
            for record in records {
                try db.execute(sql: "DELETE FROM sqlite_sequence WHERE name = ?", arguments: [record.text(0)])
                try db.execute(sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", arguments: [record.text(0), record.int(1)])
            }
        default:
            let names = kind.columns.map { "\"\($0.name)\"" }.joined(separator: ", ")
            let marks = kind.columns.map { _ in "?" }.joined(separator: ", ")
            let statement = try db.cachedStatement(sql: "INSERT INTO \(kind.rawValue) (\(names)) VALUES (\(marks))")
            for record in records { try statement.execute(arguments: StatementArguments(record.values.map(Self.databaseValue))) }
        }
    }

    private func eachFanout(_ body: (CopyRecord) throws -> Void) throws {
        let rows = try Row.fetchCursor(db, sql: "SELECT * FROM fanout ORDER BY number")
        var known: [Int64: RecipientSnapshot] = [:]
        while let row = try rows.next() {
            let number: Int64 = row["snapshot"]
            guard let list = try known[number] ?? RecipientLists.read(number, db) else {
                throw StorageError(.unreadableRow, "the list of recipients of event \(row["event"] as String) cannot be read")
            }
            if known.count > 16 { known = [:] }
            known[number] = list
            let values = ["event", "number", "app", "channel", "committed_at", "expires_at", "is_open"].map { Self.value(row[$0]) }
            try body(.fanout(values + [.bytes([UInt8](row["notes"] as Data))], list: list, bits: RecipientBits(row: row)))
        }
    }

    private func write(fanout record: CopyRecord) throws {
        guard let (list, bits) = record.fanout, case .bytes(let notes) = record.values[7] else { return }
        let arguments: [(any DatabaseValueConvertible)?] = [
            record.int(1), record.text(0), record.text(2), record.text(3), record.int(4), record.int(5), try lists.number(of: list, db),
            bits.count, RecipientColumns.isLarge(list), record.int(6), Data(bits.confirmed.bytes), Data(bits.pushed.bytes),
            Data(bits.received?.bytes ?? []), Data(notes),
        ]
        try db.cachedStatement(
            sql: """
                INSERT INTO fanout
                  (number, event, app, channel, committed_at, expires_at, snapshot, count, is_large, is_open, confirmed, pushed, received,
                   notes)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: StatementArguments(arguments))
    }

    private func eachPush(_ body: (CopyRecord) throws -> Void) throws {
        var messages = MessageReader(db)
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT delivery.*, event.sequence FROM delivery JOIN event ON event.id = delivery.event
                ORDER BY delivery.event, delivery.user, delivery.device
                """)
        while let row = try rows.next() {
            let push = try SQLiteStore.delivery(row: row, &messages).delivery
            try body(.push(push, log: row["attempts_log"] as String? ?? ""))
        }
    }

    private static func value(_ value: (any DatabaseValueConvertible)?) -> CopyValue {
        switch value?.databaseValue.storage {
        case .int64(let number): .int(number)
        case .string(let text): .text(text)
        case .blob(let data): .bytes([UInt8](data))
        case .double, .null, nil: .null
        }
    }

    private static func databaseValue(_ value: CopyValue) -> DatabaseValue {
        switch value {
        case .null: .null
        case .int(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let bytes): Data(bytes).databaseValue
        }
    }
}
