import Foundation
import GRDB
import HubDelivery
import Synchronization

/// The table of lists of recipients: each is written once, read as a whole, and deleted with the last event that has it.
///
/// A session mostly grows at its end. A long list that is a known one with people added is therefore written as a reference to
/// that one and the people added.
final class RecipientLists: Sendable {
    private struct Written {
        let number: Int64
        let depth: Int
        let snapshot: RecipientSnapshot
    }

    /// Long lists that a next one may continue; the sessions that grow at the same time are few.
    static let recentMax = 16
    /// Rows that a list is read from at most, besides its own.
    static let depthMax = 32
    private let recent = Mutex<[Written]>([])

    /// The number of a list, which is written when no event has had it before. In the writer's transaction.
    func number(of snapshot: RecipientSnapshot, _ db: Database) throws -> Int64 {
        if let known = try Self.number(key: snapshot.key, db) { return known }
        guard FanoutColumns.isLarge(snapshot) else {
            let number = try Self.insert(snapshot, users: snapshot.encoded, base: nil, depth: 0, db)
            let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO snapshot_user (user, snapshot) VALUES (?, ?)")
            for user in snapshot.users { try statement.execute(arguments: [user, number]) }
            return number
        }
        let base = recent.withLock { recent in
            recent.last { $0.depth < Self.depthMax && snapshot.continues($0.snapshot) }
        }
        let written: Written
        // The transaction that wrote the other list may have failed, and it may have been pruned.
        if let base, try Self.number(key: base.snapshot.key, db) == base.number {
            let added = Array(snapshot.encoded.dropFirst(base.snapshot.encoded.count))
            let number = try Self.insert(snapshot, users: added, base: base.number, depth: base.depth + 1, db)
            written = Written(number: number, depth: base.depth + 1, snapshot: snapshot)
        } else {
            let number = try Self.insert(snapshot, users: snapshot.encoded, base: nil, depth: 0, db)
            written = Written(number: number, depth: 0, snapshot: snapshot)
        }
        recent.withLock { recent in
            // A session goes on from its newest list.
            recent.removeAll { $0.number == base?.number || $0.number == written.number }
            recent.append(written)
            if recent.count > Self.recentMax { recent.removeFirst() }
        }
        return written.number
    }

    /// Nil when the list cannot be read, or is not what was written.
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

    /// Deletes those of the lists that no event has any more and no list continues, and then what they continued.
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
                // Rows of a list that cannot be read stay; they lead to nothing, because its number is never given again.
                guard row["count"] <= FanoutColumns.smallUsersMax,
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
        try db.cachedStatement(sql: "INSERT INTO snapshot (key, count, users, base, depth) VALUES (?, ?, ?, ?, ?)")
            .execute(arguments: [Data(snapshot.key), snapshot.users.count, Data(users), base, depth])
        return db.lastInsertedRowID
    }
}

extension RecipientSnapshot {
    /// Whether this is the other list with people added at the end.
    fileprivate func continues(_ other: RecipientSnapshot) -> Bool {
        other.users.count < users.count && encoded.starts(with: other.encoded)
    }
}
