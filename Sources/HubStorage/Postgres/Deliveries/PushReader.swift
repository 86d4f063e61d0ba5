import HubCore
import HubDelivery
import HubJSON

/// A push as its rows tell it.
struct StoredPush {
    var record: PushRecord
    let number: Int64
    let day: Int32
    /// Attempts since the last replay, in the form of `AttemptLog`.
    let log: String
    /// The error if part of the push could not be read.
    var problem: StorageError?
    /// Provider of the device, if it was asked for.
    var provider: PushProvider?
}

/// Reads pushes: the row of `tandem.push p` with its last step, its attempts and its message.
struct PushReader {
    static let isClear = "starts_with(p.device, chr(31))"
    private static let openStates = PushState.open.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    /// For conditions on `state`.
    static let isOpen = "coalesce(s.state, p.state) IN (\(openStates))"

    private let tx: PostgresTransaction
    private let withMessages: Bool
    /// Parsed texts that several pushes share.
    private final class Texts { var known: [Int64: [String: JSONValue]] = [:] }
    private let texts = Texts()

    init(_ tx: PostgresTransaction, withMessages: Bool = true) {
        self.tx = tx
        self.withMessages = withMessages
    }

    /// - Parameters:
    ///   - condition: over `p`, the last step `s` and the event `e`; holds no value itself.
    ///   - tail: ORDER BY and LIMIT.
    ///   - from: further joins; it may define `provider`.
    ///   - pushes: relation `p` with the rows of `tandem.push` that are meant.
    func pushes(
        _ condition: String, _ values: [PostgresValue], tail: String = "ORDER BY p.user_id, \(isClear), p.device", from: String = "",
        provider: String = "NULL", pushes: String = "tandem.push p"
    ) throws -> [StoredPush] {
        let rows = try tx.query(
            """
            SELECT p.day, p.number, p.event, p.user_id, p.device, p.nid, p.app, p.reason, p.message_number, p.address,
              \(withMessages ? "p.message" : "NULL::text AS message"), \(withMessages ? "m.text" : "NULL::text") AS shared,
              coalesce(s.state, p.state) AS state, coalesce(s.due_at, p.due_at) AS due_at, coalesce(s.attempts, p.attempts) AS attempts,
              CASE WHEN s.number IS NULL THEN p.provider_id ELSE s.provider_id END AS provider_id,
              CASE WHEN s.number IS NULL THEN p.outcome ELSE s.outcome END AS outcome,
              l.log, l.expires_at, e.sequence, (\(provider))::text AS provider
            FROM \(pushes) JOIN tandem.event e ON e.id = p.event AND e.day = p.day
            LEFT JOIN LATERAL (
              SELECT * FROM tandem.push_step WHERE day = p.day AND push = p.number ORDER BY number DESC LIMIT 1) s ON true
            LEFT JOIN LATERAL (
              SELECT string_agg(t.log, '' ORDER BY t.number) AS log, max(t.expires_at) AS expires_at FROM tandem.push_step t
              WHERE t.day = p.day AND t.push = p.number AND t.number >= coalesce(
                (SELECT max(f.number) FROM tandem.push_step f WHERE f.day = p.day AND f.push = p.number AND f.is_fresh), 0)) l ON true
            \(withMessages ? "LEFT JOIN tandem.message m ON m.number = p.message_number AND m.day = p.day" : "")
            \(from)
            WHERE \(condition) \(tail)
            """, values)
        return try rows.map(push)
    }

    private func push(_ row: PostgresRow) throws -> StoredPush {
        let (device, purpose) = DeviceColumn.read(row.text("device"))
        var record = PushRecord(
            nid: row.text("nid"), event: row.text("event"), app: row.text("app"), user: row.text("user_id"), device: device,
            purpose: purpose, state: .failed, reason: row.text("reason"), dueAt: row.int("due_at"), attempts: Int(row.int("attempts")),
            providerID: row.textOrNil("provider_id"), outcome: row.textOrNil("outcome"))
        var problem: StorageError?
        do throws(StorageError) {
            try decode(row, into: &record)
        } catch {
            record.message = nil
            record.outcome = "unreadable row"
            problem = StorageError(error.code, "\(error.message) (event \(record.event), nid \(record.nid))")
        }
        return StoredPush(
            record: record, number: row.int("number"), day: Int32(clamping: row.int("day")), log: Self.bounded(row.textOrNil("log") ?? ""),
            problem: problem, provider: row.textOrNil("provider").flatMap(PushProvider.init(rawValue:)))
    }

    /// As many lines as an attempt log has at most.
    private static func bounded(_ log: String) -> String {
        guard log.utf8.count > AttemptLog.bytesMax else { return log }
        var kept = ""
        for line in log.split(separator: "\n") where kept.utf8.count < AttemptLog.bytesMax { kept += line + "\n" }
        return kept
    }

    /// Fills in what a version of Tandem may not be able to read. Every error is of the row.
    private func decode(_ row: PostgresRow, into record: inout PushRecord) throws(StorageError) {
        record.state = try row.value("state", of: "push")
        if let text = row.textOrNil("address") { record.address = try DirectAddressCoding.decode(text) }
        guard let text = row.textOrNil("message") else { return }
        record.message = try message(text, shared: row.textOrNil("shared"), number: row.intOrNil("message_number"), nid: record.nid)
        record.message?.sequence = row.int("sequence")
        if let expiresAt = row.intOrNil("expires_at") { record.message?.expiresAt = expiresAt }
    }

    private func message(_ own: String, shared: String?, number: Int64?, nid: String) throws(StorageError) -> PushMessage {
        guard let number else { return try PushMessageCoding.decode(Self.parse(own)) }
        guard let shared else { throw StorageError(.unreadableRow, "a stored notification has lost its text") }
        var members: [String: JSONValue]
        if let known = texts.known[number] {
            members = known
        } else {
            guard case .object(let parsed) = try Self.parse(shared) else { throw Self.noObject }
            texts.known[number] = parsed
            members = parsed
        }
        guard case .object(let ownMembers) = try Self.parse(own) else { throw Self.noObject }
        members["nid"] = .string(nid)
        members.merge(ownMembers) { _, own in own }
        return try PushMessageCoding.decode(.object(members))
    }

    private static let noObject = StorageError(.unreadableRow, "a stored notification is not a JSON object")

    private static func parse(_ text: String) throws(StorageError) -> JSONValue {
        guard let value = try? JSONValue(parsing: text) else { throw StorageError(.unreadableRow, "a stored notification is not JSON") }
        return value
    }
}
