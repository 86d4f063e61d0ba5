import Foundation
import GRDB
import HubDelivery
import Synchronization

/// The table of recipient lists. A list is written once, read as a whole, and deleted with its last event.
///
/// Sessions mostly grow at the end. A long list that extends a known one is therefore written as a reference to the known list, plus the
/// added people.
final class RecipientLists: Sendable {
    private struct Written {
        let number: Int64
        let depth: Int
        let snapshot: RecipientSnapshot
    }

    /// Recent long lists that a new one may extend. Few sessions grow at the same time.
    static let recentMax = 16
    /// Maximum of base rows per list.
    static let depthMax = 32
    private let recent = Mutex<[Written]>([])

    /// Returns the list's number, and writes the list if it is new. Call in the writer's transaction.
    func number(of snapshot: RecipientSnapshot, _ db: Database) throws -> Int64 {
        if let known = try Self.number(key: snapshot.key, db) { return known }
        guard RecipientColumns.isLarge(snapshot) else {
            let number = try Self.insert(snapshot, users: snapshot.encoded, base: nil, depth: 0, db)
            let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO snapshot_user (user, snapshot) VALUES (?, ?)")
            for user in snapshot.users { try statement.execute(arguments: [user, number]) }
            return number
        }
        let base = recent.withLock { recent in
            recent.last { $0.depth < Self.depthMax && snapshot.continues($0.snapshot) }
        }
        let written: Written
        // The base must still exist: its transaction may have failed, or pruning may have deleted it.
        if let base, try Self.number(key: base.snapshot.key, db) == base.number {
            let added = Array(snapshot.encoded.dropFirst(base.snapshot.encoded.count))
            assert(!added.isEmpty, "a list of \(snapshot.users.count) extends one of \(base.snapshot.users.count) by nobody")
            let number = try Self.insert(snapshot, users: added, base: base.number, depth: base.depth + 1, db)
            written = Written(number: number, depth: base.depth + 1, snapshot: snapshot)
        } else {
            let number = try Self.insert(snapshot, users: snapshot.encoded, base: nil, depth: 0, db)
            written = Written(number: number, depth: 0, snapshot: snapshot)
        }
        recent.withLock { recent in
            // A session grows from its newest list only.
            recent.removeAll { $0.number == base?.number || $0.number == written.number }
            recent.append(written)
            if recent.count > Self.recentMax { recent.removeFirst() }
        }
        return written.number
    }

    /// Nil if the list cannot be read or does not match its key.
    static func read(_ number: Int64, _ db: Database) throws -> RecipientSnapshot? {
        let statement = try db.cachedStatement(sql: "SELECT key, users, base FROM snapshot WHERE number = ?")
        var key: [UInt8]?
        var parts: [Data] = []
        var next: Int64? = number
        while let number = next {
            guard parts.count <= depthMax, let row = try Row.fetchOne(statement, arguments: [number]) else { return nil }
            key = key ?? [UInt8](row["key"] as Data)
            parts.append(row["users"])
            next = row["base"]
        }
        return key.flatMap { RecipientSnapshot(encoded: [UInt8](parts.reversed().joined()), key: $0) }
    }

    static func numbers(ofEvents ids: [String], _ db: Database) throws -> Set<Int64> {
        let statement = try db.cachedStatement(sql: "SELECT snapshot FROM fanout WHERE event = ?")
        return Set(try ids.compactMap { try Int64.fetchOne(statement, arguments: [$0]) })
    }

    /// Deletes lists that no event refers to and no list extends, then their bases on the same condition.
    static func deleteUnused(_ numbers: Set<Int64>, _ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                DELETE FROM snapshot WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM fanout WHERE snapshot = ?1)
                AND NOT EXISTS (SELECT 1 FROM snapshot WHERE base = ?1)
                RETURNING key, users, count, base
                """)
        for number in numbers {
            var next: Int64? = number
            while let number = next, let row = try Row.fetchOne(statement, arguments: [number]) {
                next = row["base"]
                // `snapshot_user` rows of an unreadable list stay. They are harmless, because its number is never reused.
                guard row["count"] <= RecipientColumns.smallUsersMax,
                    let snapshot = RecipientSnapshot(encoded: [UInt8](row["users"] as Data), key: [UInt8](row["key"] as Data))
                else { continue }
                let statement = try db.cachedStatement(sql: "DELETE FROM snapshot_user WHERE user = ? AND snapshot = ?")
                for user in snapshot.users { try statement.execute(arguments: [user, number]) }
            }
        }
    }

    private static func number(key: [UInt8], _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT number FROM snapshot WHERE key = ?"), arguments: [Data(key)])
    }

    private static func insert(_ snapshot: RecipientSnapshot, users: [UInt8], base: Int64?, depth: Int, _ db: Database) throws -> Int64 {
        assert((base == nil) == (depth == 0) && depth <= depthMax, "a list at depth \(depth) with base \(base.map(String.init) ?? "none")")
        try db.cachedStatement(sql: "INSERT INTO snapshot (key, count, users, base, depth) VALUES (?, ?, ?, ?, ?)")
            .execute(arguments: [Data(snapshot.key), snapshot.users.count, Data(users), base, depth])
        return db.lastInsertedRowID
    }
}

extension RecipientSnapshot {
    /// Whether this list is the other one with people added at the end.
    fileprivate func continues(_ other: RecipientSnapshot) -> Bool {
        other.users.count < users.count && encoded.starts(with: other.encoded)
    }
}
