/// A kind of things that a store keeps, in the order in which they are copied: what is referred to comes first.
///
/// The columns are SQLite's. Leases are taken up when a store is opened. PostgreSQL's nodes and leases belong to processes. A list of
/// recipients travels with the events that use it.
enum CopyKind: String, CaseIterable {
    case app, session, participant, device, scheduled
    case once = "sent_once"
    case channel, event, fanout
    case push = "delivery"
    case answer, webhook
    case mark = "attendance_mark"
    case counter

    /// Type of a column.
    enum ColumnType { case int, text, bytes, flag }
    typealias Column = (name: String, type: ColumnType)

    /// Columns of one row in one table; empty for kinds with a form of their own.
    var columns: [Column] {
        switch self {
        case .app:
            [("id", .text), ("keys", .text), ("settings", .text), ("revision", .int), ("created_at", .int), ("removed_at", .int)]
        case .session:
            [
                ("number", .int), ("app", .text), ("id", .text), ("definition", .text), ("join_code", .text), ("attributes", .text),
                ("created_at", .int),
            ]
        case .participant:
            [
                ("number", .int), ("app", .text), ("session", .text), ("user", .text), ("name", .text), ("email", .text),
                ("email_key", .text), ("role", .text), ("device", .text), ("joined_at", .int), ("joined_by", .text),
            ]
        case .device:
            [
                ("app", .text), ("user", .text), ("id", .text), ("platform", .text), ("provider", .text), ("token", .text),
                ("environment", .text), ("locale", .text), ("notifications", .flag), ("registered_at", .int), ("form", .text),
                ("timezone", .text), ("app_version", .text), ("refreshed_at", .int), ("accepted_at", .int), ("origin", .text),
            ]
        case .scheduled:
            [
                ("id", .text), ("app", .text), ("deliver_at", .int), ("request", .bytes), ("idempotency_key", .text), ("created_at", .int),
                ("state", .text), ("ended_at", .int), ("outcome", .text),
            ]
        case .once: [("app", .text), ("key", .text), ("user", .text)]
        case .channel: [("app", .text), ("name", .text), ("sequence", .int)]
        case .event:
            [
                ("id", .text), ("app", .text), ("channel", .text), ("sequence", .int), ("name", .text), ("data", .bytes), ("policy", .text),
                ("committed_at", .int), ("expires_at", .int),
            ]
        case .answer:
            [
                ("app", .text), ("key", .text), ("request_digest", .bytes), ("status", .int), ("content_type", .text), ("body", .bytes),
                ("answered_at", .int),
            ]
        case .webhook:
            [
                ("number", .int), ("app", .text), ("url", .text), ("key", .text), ("signature", .text), ("time_ms", .int), ("body", .bytes),
            ]
        case .mark: [("id", .int), ("at", .int)]
        case .fanout, .push, .counter: []
        }
    }

    /// The column whose day PostgreSQL keeps the row in.
    var dayColumn: String? {
        switch self {
        case .event: "committed_at"
        case .answer: "answered_at"
        case .webhook: "time_ms"
        default: nil
        }
    }

    /// Columns that order the rows, alike in both stores.
    var order: [String] {
        switch self {
        case .app, .scheduled, .event, .mark: ["id"]
        case .session, .participant, .webhook: ["number"]
        case .device: ["app", "user", "id"]
        case .once: ["app", "key", "user"]
        case .channel: ["app", "name"]
        case .answer: ["app", "key"]
        case .fanout, .push, .counter: []
        }
    }

    /// Tables whose numbers clients know, so that a number is never given again. SQLite's name and PostgreSQL's sequence.
    static let counters = [
        (table: "session", sequence: "tandem.session_number_seq"), (table: "participant", sequence: "tandem.participant_number_seq"),
        (table: "fanout", sequence: "tandem.fanout_number"), (table: "webhook", sequence: "tandem.webhook_number"),
    ]
}
