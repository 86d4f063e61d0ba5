import Foundation
import GRDB
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

@Suite("Leases")
struct LeaseTests {
    let folder: TemporaryFolder
    let clock = TestClock()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() throws -> SQLiteStore { try SQLiteStore(path: folder.file(), time: clock) }

    /// Rows of the table, as another process would see them.
    private func batches() async throws -> Int {
        try await DatabaseQueue(path: folder.file()).read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM lease") ?? -1 }
    }

    private func commit(_ users: [String], to store: SQLiteStore) async throws -> [PushRecord] {
        let deliveries = users.map { PushRecord.sample(event: "e", user: $0, message: .sample(event: "e")) }
        _ = try await store.commit([.init(.sample("e"), deliveries)])
        return deliveries
    }

    private func leased(_ deliveries: [PushRecord], attempts: Int = 1) -> [PushRecord] {
        deliveries.map { delivery in
            var delivery = delivery
            (delivery.state, delivery.attempts, delivery.dueAt) = (.leased, attempts, 77)
            return delivery
        }
    }

    @Test("the next process finds leased what was leased at a crash, with its attempts, and nothing else")
    func crash() async throws {
        let store = try open()
        let deliveries = try await commit(["a", "b", "c"], to: store)
        var sent = try await store.lease(leased([deliveries[0], deliveries[1]], attempts: 3))
        sent[0].state = .accepted
        try await store.update([sent[0]])
        // The first one is never closed: it stands for the process that crashed.
        let next = try open()
        let rows = try await next.deliveries(event: "e")
        #expect(rows.map(\.state) == [.accepted, .leased, .waiting])
        #expect(rows[1].attempts == 3 && rows[1].dueAt == 77 && rows[2].attempts == 0)
        #expect(try await next.openDeliveries(limit: 9).map(\.user).sorted() == ["b", "c"])
        #expect(try await batches() == 0)
        try await next.close()
    }

    @Test("the next process does not repeat an attempt that a receipt came to before the crash")
    func crashAfterReceipt() async throws {
        let store = try open()
        let deliveries = try await commit(["a", "b"], to: store)
        _ = try await store.lease(leased(deliveries))
        #expect(try await store.cancelDeliveries(event: "e", [PushCancellation(user: "a")]) == [])
        let next = try open()
        #expect(try await next.deliveries(event: "e").map(\.state) == [.cancelled, .leased])
        #expect(try await next.openDeliveries(limit: 9).map(\.user) == ["b"])
        // Taken up, and not sent again yet: a receipt ends it.
        let withdrawn = try await next.cancelDeliveries(event: "e", [PushCancellation(user: "b")])
        #expect(withdrawn.map(\.user) == ["b"] && withdrawn.first?.state == .cancelled && withdrawn.first?.outcome == "receipt")
        #expect(try await next.lease(leased([deliveries[1]], attempts: 2)) == [])
        #expect(try await next.deliveries(event: "e").map(\.state) == [.cancelled, .cancelled])
        try await next.close()
    }

    @Test("a lease is one row for all that were leased together, which goes with the last outcome")
    func ends() async throws {
        let store = try open()
        let deliveries = try await commit(["a", "b", "c"], to: store)
        var sent = try await store.lease(leased(deliveries))
        #expect(try await batches() == 1)
        for index in sent.indices { sent[index].state = index == 0 ? .retry : .accepted }
        try await store.update(Array(sent[1...]))
        #expect(try await batches() == 1)
        #expect(try await store.deliveries(event: "e").map(\.state) == [.leased, .accepted, .accepted])
        #expect(try await store.update([sent[0]]) == [])
        #expect(try await batches() == 0)
        #expect(try await store.deliveries(event: "e").map(\.state) == [.retry, .accepted, .accepted])
        #expect(try await store.trail(event: "e")?.recipients.first?.deliveries.first?.record.state == .retry)
        try await store.close()
    }

    @Test("what is leased again before its outcome belongs to the new lease")
    func again() async throws {
        let store = try open()
        let deliveries = try await commit(["a", "b"], to: store)
        _ = try await store.lease(leased(deliveries))
        var sent = try await store.lease(leased([deliveries[0]], attempts: 2))
        #expect(try await batches() == 2)
        sent[0].state = .accepted
        try await store.update(sent)
        #expect(try await batches() == 1)
        #expect(try await store.deliveries(event: "e").map(\.state) == [.accepted, .leased])
        try await store.close()
    }

    @Test("a lease whose outcome cannot be written stays")
    func refused() async throws {
        let store = try open()
        var sent = try await store.lease(leased(try await commit(["a"], to: store)))
        let raw = try DatabaseQueue(path: folder.file())
        try await raw.write { try $0.execute(sql: "CREATE TRIGGER refuse BEFORE UPDATE ON delivery BEGIN SELECT RAISE(ABORT, 'no'); END") }
        sent[0].state = .accepted
        await #expect(throws: (any Error).self) { try await store.update(sent) }
        #expect(try await store.deliveries(event: "e").map(\.state) == [.leased])
        #expect(try await batches() == 1)
        try await raw.write { try $0.execute(sql: "DROP TRIGGER refuse") }
        try await store.update(sent)
        #expect(try await store.deliveries(event: "e").map(\.state) == [.accepted])
        #expect(try await batches() == 0)
        try await store.close()
    }

    @Test("a lease that cannot be written is none")
    func notLeased() async throws {
        let store = try open()
        let deliveries = try await commit(["a"], to: store)
        let raw = try DatabaseQueue(path: folder.file())
        try await raw.write { try $0.execute(sql: "CREATE TRIGGER refuse AFTER INSERT ON lease BEGIN SELECT RAISE(ABORT, 'no'); END") }
        await #expect(throws: (any Error).self) { _ = try await store.lease(leased(deliveries)) }
        #expect(try await store.deliveries(event: "e").map(\.state) == [.waiting])
        #expect(try await store.cancelDeliveries(event: "e", [PushCancellation(user: "a")]).count == 1)
        try await store.close()
    }

    @Test("a lease that was undone takes nothing from the next one, although it is forgotten later")
    func undone() throws {
        struct Undone: Error {}
        let leases = PushLeases()
        let raw = try DatabaseQueue()
        try raw.write { try $0.execute(sql: "CREATE TABLE lease (number INTEGER PRIMARY KEY, deliveries BLOB NOT NULL) STRICT") }
        func rows() throws -> Int? { try raw.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM lease") } }
        let deliveries = (1...3).map { row in
            var delivery = PushRecord.sample(event: "e", user: "u\(row)")
            delivery.row = Int64(row)
            return delivery
        }
        #expect(throws: Undone.self) {
            try raw.write { db in
                try leases.begin([deliveries[0]], db)
                throw Undone()
            }
        }
        try raw.write { try leases.begin(Array(deliveries[1...]), $0) }
        leases.forget([1])
        _ = try raw.write { try leases.end([2], $0) }
        #expect(leases.current.keys.sorted() == [3])
        let left = try rows()
        #expect(left == 1, "a crash now would forget that the third one was sent")
        _ = try raw.write { try leases.end([3], $0) }
        let none = try rows()
        #expect(none == 0 && leases.current.isEmpty)
    }

    @Test("an outcome reaches its row when somebody has numbered the rows anew, and no other row")
    func renumbered() async throws {
        let store = try open()
        var sent = try await store.lease(leased(try await commit(["a", "b"], to: store)))
        sent[0].row = sent[1].row
        sent[0].state = .accepted
        try await store.update([sent[0]])
        #expect(try await store.deliveries(event: "e").map(\.state) == [.accepted, .leased])
        try await store.close()
        // The lease of a number that is another row's by now.
        let raw = try DatabaseQueue(path: folder.file())
        try await raw.write { try $0.execute(sql: "UPDATE delivery SET nid = 'another'") }
        let next = try open()
        #expect(try await next.deliveries(event: "e").map(\.state) == [.accepted, .waiting])
        try await next.close()
    }

    @Test("what is stored of a lease is read as it was written, and of damaged bytes what is whole")
    func coding() {
        let entries = [
            LeaseCoding.Entry(row: .max, dueAt: 1_700_000_000_123, attempts: 7, check: LeaseCoding.check(nid: "nid")),
            LeaseCoding.Entry(row: 1, dueAt: -1, attempts: .max, check: .max),
        ]
        let bytes = LeaseCoding.encode(entries)
        #expect(LeaseCoding.decode(bytes) == entries)
        #expect(LeaseCoding.decode(Array(bytes.dropLast())) == [entries[0]] && LeaseCoding.decode([]) == [])
        #expect(LeaseCoding.check(nid: "a") != LeaseCoding.check(nid: "b"))
    }
}
