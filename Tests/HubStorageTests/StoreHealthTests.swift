import GRDB
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

@Suite("The store's health")
struct StoreHealthTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Fails writes as a full disk does.
    private func limitPages(of store: SQLiteStore, isFull: Bool) async throws {
        try await store.pool.writeWithoutTransaction { db in
            let count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(isFull ? count : 1_000_000)")
        }
    }

    private func commit(_ id: String, bytes: Int = 100_000, to store: SQLiteStore) async throws {
        var event = EventRecord.sample(id)
        event.data = String(repeating: "x", count: bytes)
        _ = try await store.commit([.init(event)])
    }

    @Test("three failed commits in a row are a failing store, one that finds the disk full is, and only a probe ends it")
    func rules() {
        let error = StorageError(.database, "no")
        var health = StoreHealth()
        for count in 1...3 {
            #expect(!health.isFailing)
            health.failed(error, isFull: false)
            #expect(health.isFailing == (count == 3))
        }
        health.committed()
        #expect(health.isFailing && health.error == error, "a small one fits where a large one does not")
        health.recovered()
        #expect(!health.isFailing && health.error == nil)
        for _ in 0..<9 {
            health.failed(error, isFull: false)
            health.committed()
        }
        #expect(!health.isFailing, "never three in a row")
        health.failed(error, isFull: true)
        #expect(health.isFailing)
    }

    @Test(
        "a full disk is seen by the first commit it fails; a probe finds it full, and then that it is not; nothing that was committed is missing"
    )
    func fullDisk() async throws {
        let store = try SQLiteStore(path: folder.file(), time: TestClock())
        try await commit("e1", to: store)
        try await limitPages(of: store, isFull: true)
        #expect(!store.health.isFailing)
        let error = await #expect(throws: StorageError.self) { try await commit("e2", to: store) }
        #expect(error?.message.contains("disk is full") == true)
        #expect(store.health.isFailing && store.health.error == error)
        // It has nothing to write.
        try await store.update([])
        _ = try await store.prune(before: 0, limit: 10)
        #expect(store.health.isFailing)
        await #expect(throws: StorageError.self) { try await store.probe() }
        #expect(store.health.isFailing)
        try await limitPages(of: store, isFull: false)
        try await commit("e3", bytes: 10, to: store)
        #expect(store.health.isFailing)
        try await store.probe()
        #expect(!store.health.isFailing)
        #expect(try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM lease") } == 0)
        #expect(try await store.event(id: "e1")?.sequence == 1)
        #expect(try await store.event(id: "e2") == nil)
        #expect(try await store.event(id: "e3")?.sequence == 2)
    }

    @Test("a call that is wrong by itself says nothing of the disk")
    func wrongCall() async throws {
        let store = try SQLiteStore(path: folder.file(), time: TestClock())
        try await commit("e1", to: store)
        for _ in 0..<5 { await #expect(throws: StorageError.self) { try await commit("e1", to: store) } }
        #expect(!store.health.isFailing)
    }
}
