import GRDB
import HubCore
import HubDelivery
import HubJSON

/// A delivery's message in its stored form.
///
/// A text common to several rows of an event is a row of `message`, named by `delivery.message_number`. A delivery's row is written several
/// times, and the text is longer than the rest of it. `delivery.message` then holds a JSON object with the row's own members, mostly empty.
/// For a text of one row only, and in rows of earlier versions, `delivery.message` holds the whole message.
struct StoredMessage {
    private let text: PushMessageCoding.Text
    private let nid: String
    /// Number of the row of `message`; nil if the delivery's row holds the text.
    let number: Int64?

    init(_ text: PushMessageCoding.Text, nid: String, number: Int64?) {
        self.text = text
        self.nid = nid
        self.number = number
    }

    /// Appends the column `message`, in UTF-8.
    /// - Parameter nid: the notification's id of the row.
    func appendOwn(to output: inout [UInt8], nid: String) {
        guard number != nil else { return text.append(to: &output, nid: self.nid) }
        if self.nid == nid { output += "{}".utf8 } else { output += JSONValue.object(["nid": .string(self.nid)]).text.utf8 }
    }
}

/// Deliveries with their encoded texts.
struct WrittenPushes: Sendable {
    let records: [PushRecord]
    private let texts: [PushMessageCoding.Text]
    /// Index of each record's text; nil: no message.
    private let places: [Int?]

    init(_ records: [PushRecord]) {
        var writer = PushMessageCoding.Writer()
        self.records = records
        places = records.map { record in record.message.map { writer.write($0, event: record.event) } }
        texts = writer.texts
        assert(texts.reduce(0) { $0 + $1.uses } == places.count { $0 != nil }, "\(texts.count) texts have other uses than messages")
    }

    /// - Parameter ignoringKnown: true keeps existing rows as they are; false fails the call on them.
    /// - Returns: the deliveries that were new.
    @discardableResult
    func insert(ignoringKnown: Bool = false, _ db: Database) throws -> [PushRecord] {
        if records.isEmpty { return [] }
        let numbers = try texts.map { $0.uses > 1 ? try Self.insert($0, db) : nil }
        var insertion = try PushInsertion(ignoringKnown: ignoringKnown, db)
        return try records.indices.filter { index in
            let message = places[index].map { StoredMessage(texts[$0], nid: records[index].message?.nid ?? "", number: numbers[$0]) }
            return try insertion.insert(records[index], message)
        }.map { records[$0] }
    }

    private static func insert(_ text: PushMessageCoding.Text, _ db: Database) throws -> Int64 {
        try db.cachedStatement(sql: "INSERT INTO message (event, text) VALUES (?, ?)").execute(arguments: [text.event, text.json])
        return db.lastInsertedRowID
    }
}

/// Reads the messages of one query's rows. Each text is read and decoded once, and shared by its deliveries.
struct MessageReader {
    private struct Key: Hashable {
        let number: Int64
        let own: String
    }

    private let db: Database
    private var known: [Key: PushMessage] = [:]

    init(_ db: Database) {
        self.db = db
    }

    /// - Parameters:
    ///   - own: the column `message`.
    ///   - number: the column `message_number`.
    ///   - nid: the notification's id of the row.
    /// - Throws: `StorageError.Code.unreadableRow` if the message cannot be read, or SQLite's error.
    mutating func message(_ own: String, number: Int64?, nid: String) throws -> PushMessage {
        guard let number else { return try PushMessageCoding.decode(Self.parse(own)) }
        let key = Key(number: number, own: own)
        if var message = known[key] {
            message.nid = nid
            return message
        }
        let text = try String.fetchOne(db.cachedStatement(sql: "SELECT text FROM message WHERE number = ?"), arguments: [number])
        guard let text else { throw StorageError(.unreadableRow, "a stored notification has lost its text") }
        guard case .object(var members) = try Self.parse(text), case .object(let ownMembers) = try Self.parse(own) else {
            throw StorageError(.unreadableRow, "a stored notification is not a JSON object")
        }
        members["nid"] = .string(nid)
        members.merge(ownMembers) { _, own in own }
        let message = try PushMessageCoding.decode(.object(members))
        if ownMembers["nid"] == nil { known[key] = message }
        return message
    }

    private static func parse(_ text: String) throws(StorageError) -> JSONValue {
        guard let value = try? JSONValue(parsing: text) else {
            throw StorageError(.unreadableRow, "a stored notification is not JSON")
        }
        return value
    }
}
