import Foundation
import GRDB
import HubDelivery
import HubStorage
import HubTesting
import StoreTesting
import Testing

/// Tests may run as root, whom no permission stops: places are used that nobody can write.
@Suite("SQLiteStore's file")
struct SQLiteFileTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func refusal(_ path: String) throws -> StorageError {
        let error = #expect(throws: StorageError.self) { _ = try SQLiteStore(path: path, time: TestClock()) }
        let refusal = try #require(error)
        #expect(refusal.description.contains(path) || refusal.code == .notWritable, "\(refusal)")
        return refusal
    }

    private func permissions(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber).intValue
    }

    @Test("a missing folder is created, and only the owner may read what is in it")
    func createsFolder() async throws {
        let path = folder.file("a/b/tandem.db")
        let store = try SQLiteStore(path: path, time: TestClock())
        _ = try await store.makeSession()
        #expect(try permissions(folder.file("a/b")) == 0o700)
        for suffix in ["", "-wal", "-shm"] { #expect(try permissions(path + suffix) == 0o600) }
    }

    @Test("what was committed moves from the log into the file, behind the answers")
    func emptiesLog() async throws {
        let path = folder.file()
        let store = try SQLiteStore(path: path, time: TestClock())
        let before = try size(path)
        let event = EventRecord.sample("e1")
        // Fewer pages than SQLite moves by itself.
        let deliveries = (0..<2_000).map { PushRecord.sample(event: event.id, user: "\($0)") }
        _ = try await store.commit([EventCommit(event, deliveries)])
        let isMoved = await eventually { (try? size(path)).map { $0 > before + 100_000 } ?? false }
        #expect(isMoved)
        #expect(try await store.deliveries(event: event.id).count == deliveries.count)
    }

    private func size(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber).intValue
    }

    @Test("a file in the place of the folder is refused")
    func folderIsFile() throws {
        try Data().write(to: URL(fileURLWithPath: folder.file("plain")))
        let error = try refusal(folder.file("plain/tandem.db"))
        #expect(error.code == .notWritable)
        #expect(error.message.contains(folder.file("plain")))
    }

    @Test("a place that cannot be written is refused with the system's reason")
    func notWritable() throws {
        let error = try refusal("/proc/tandem.db")
        #expect(error.code == .notWritable)
        #expect(error.message.contains("/proc/tandem.db") && error.message.contains("writable"))
        #expect(try refusal(folder.path).code == .notWritable)
    }

    @Test("a file that is no database is refused and left alone")
    func notADatabase() throws {
        let path = folder.file("notes.txt")
        let notes = Data(String(repeating: "These are my notes. ", count: 100).utf8)
        try notes.write(to: URL(fileURLWithPath: path))
        #expect(try refusal(path).code == .notADatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == notes)
    }

    @Test("another program's database is refused and left alone")
    func foreignDatabase() throws {
        let path = folder.file("other.db")
        try DatabaseQueue(path: path).write { db in try db.execute(sql: "CREATE TABLE photo (id INTEGER)") }
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(try refusal(path).code == .foreignDatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test("a database of the version before webhooks gets their table and keeps its rows")
    func olderSchema() async throws {
        let path = folder.file()
        let first = try SQLiteStore(path: path, time: TestClock())
        _ = try await first.commit([EventCommit(.sample("e1"))])
        try await first.close()
        let queue = try DatabaseQueue(path: path)
        try await queue.write { db in
            try db.execute(sql: "DROP TABLE webhook; DELETE FROM grdb_migrations WHERE identifier = 'webhooks'")
        }
        try queue.close()
        let second = try SQLiteStore(path: path, time: TestClock())
        #expect(try await second.updateWebhooks(adding: [.sample([1])], removing: []) == [1])
        #expect(try await second.event(id: "e1")?.id == "e1")
    }

    @Test("a database of a newer version is refused")
    func newerSchema() async throws {
        let path = folder.file()
        try await SQLiteStore(path: path, time: TestClock()).close()
        try await SQLiteStore(path: path, time: TestClock()).close()
        try await DatabaseQueue(path: path).write { db in
            try db.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('9999')")
        }
        let error = try refusal(path)
        #expect(error.code == .newerSchema)
        #expect(error.message.contains("newer version of Tandem"))
    }
}
