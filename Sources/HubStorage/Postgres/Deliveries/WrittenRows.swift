import HubDelivery
import Synchronization

/// Numbers for the texts that pushes share: unique among all processes, made without asking the server.
final class TextNumbers: Sendable {
    private let state: Mutex<Int64>

    /// - Parameter process: the process's own number, below 2^31.
    init(process: Int64) {
        state = Mutex(process << 32)
    }

    func next() -> Int64 {
        state.withLock { number in
            number += 1
            return number
        }
    }
}

/// New pushes in the form of their rows, encoded on the caller's thread.
struct WrittenRows: Sendable {
    private struct Key: Hashable {
        let event: String
        let user: String
        let device: String
    }

    let records: [PushRecord]
    /// One for the texts that are shared, if any, and one for the pushes, whose result `inserted` reads.
    let statements: [PostgresStatement]

    /// - Parameter ignoringKnown: true keeps existing rows as they are, and tells which were new; false fails on them, and is faster.
    /// - Parameter days: the days of all events, where the caller knows them; else the server looks them up.
    init(_ records: [PushRecord], numbers: TextNumbers, ignoringKnown: Bool = true, days: [String: Int32]? = nil) {
        self.records = records
        guard !records.isEmpty else {
            statements = []
            return
        }
        var writer = PushMessageCoding.Writer()
        let places = records.map { record in record.message.map { writer.write($0, event: record.event) } }
        let texts = writer.texts
        let shared = texts.map { $0.uses > 1 ? numbers.next() : nil }
        let own = zip(records, places).map { record, place -> String? in
            guard let place else { return nil }
            var output: [UInt8] = []
            StoredMessage(texts[place], nid: record.message?.nid ?? "", number: shared[place]).appendOwn(to: &output, nid: record.nid)
            return String(decoding: output, as: UTF8.self)
        }
        let written = texts.indices.filter { shared[$0] != nil }
        var statements: [PostgresStatement] = []
        if !written.isEmpty {
            statements.append(
                PostgresStatement(
                    """
                    INSERT INTO tandem.message (day, number, text)
                    SELECT e.day, w.number, w.text FROM unnest($1::text[], $2::bigint[], $3::text[]) AS w (event, number, text)
                    JOIN tandem.event e ON e.id = w.event
                    """,
                    [.texts(written.map { texts[$0].event }), .ints(written.map { shared[$0] }), .texts(written.map { texts[$0].json })]))
        }
        var columns = PostgresColumns()
        columns.add("user_id", records.map(\.user))
        columns.add("event", records.map(\.event))
        columns.add("device", records.map(DeviceColumn.text))
        columns.add("nid", records.map(\.nid))
        columns.add("app", records.map(\.app))
        columns.add("state", records.map(\.state.rawValue))
        columns.add("reason", records.map(\.reason))
        columns.add("due_at", records.map(\.dueAt))
        columns.add("attempts", records.map { Int64($0.attempts) })
        columns.add("message", own)
        columns.add("message_number", places.map { $0.flatMap { shared[$0] } })
        columns.add("provider_id", records.map(\.providerID))
        columns.add("outcome", records.map(\.outcome))
        if let days { columns.add("day", records.map { days[$0.event].map(Int64.init) }) }
        columns.add("address", records.map { $0.address.map(DirectAddressCoding.text) })
        statements.append(
            PostgresStatement(
                """
                INSERT INTO tandem.push (\(columns.names)\(days == nil ? ", day" : ""))
                SELECT \(columns.expressions)\(days == nil ? ", e.day" : "") FROM \(columns.rows)
                \(days == nil ? "LEFT JOIN tandem.event e ON e.id = \(columns.expression(of: "event"))" : "")
                ORDER BY w.place
                \(ignoringKnown ? "ON CONFLICT (event, user_id, device, day) DO NOTHING RETURNING event, user_id, device" : "")
                """, columns.values))
        self.statements = statements
    }

    /// The pushes that were new, in order.
    func inserted(_ rows: PostgresRows?) -> [PushRecord] {
        guard let rows else { return [] }
        var new = Set(rows.map { Key(event: $0.text("event"), user: $0.text("user_id"), device: $0.text("device")) })
        return records.filter { new.remove(Key(event: $0.event, user: $0.user, device: DeviceColumn.text($0))) != nil }
    }
}
