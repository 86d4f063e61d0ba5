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

    /// - Parameter isAsked: whether somebody wants to know which pushes were new.
    init(_ records: [PushRecord], numbers: TextNumbers, isAsked: Bool = true) {
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
        func column(_ value: (PushRecord) -> String?) -> PostgresValue { .texts(records.map(value)) }
        statements.append(
            PostgresStatement(
                """
                INSERT INTO tandem.push
                  (day, event, user_id, device, nid, app, state, reason, due_at, attempts, message, message_number, provider_id, outcome,
                   address)
                SELECT e.day, w.event, w.user_id, w.device, w.nid, w.app, w.state, w.reason, w.due_at, w.attempts, w.message,
                  w.message_number,
                  w.provider_id, w.outcome, w.address
                FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
                    $10::text[], $11::bigint[], $12::text[], $13::text[], $14::text[])
                  WITH ORDINALITY AS w
                    (event, user_id, device, nid, app, state, reason, due_at, attempts, message, message_number, provider_id,
                    outcome, address, place)
                LEFT JOIN tandem.event e ON e.id = w.event
                ORDER BY w.place
                ON CONFLICT (event, user_id, device, day) DO NOTHING
                \(isAsked ? "RETURNING event, user_id, device" : "")
                """,
                [
                    column(\.event), column(\.user), column(DeviceColumn.text), column(\.nid), column(\.app), column(\.state.rawValue),
                    column(\.reason),
                    .ints(records.map(\.dueAt)), .ints(records.map { Int64($0.attempts) }), .texts(own),
                    .ints(places.map { $0.flatMap { shared[$0] } }), column(\.providerID), column(\.outcome),
                    column { $0.address.map(DirectAddressCoding.text) },
                ]))
        self.statements = statements
    }

    /// The pushes that were new, in order.
    func inserted(_ rows: PostgresRows?) -> [PushRecord] {
        guard let rows else { return [] }
        var new = Set(rows.map { Key(event: $0.text("event"), user: $0.text("user_id"), device: $0.text("device")) })
        return records.filter { new.remove(Key(event: $0.event, user: $0.user, device: DeviceColumn.text($0))) != nil }
    }
}
