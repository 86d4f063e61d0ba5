import Foundation
import HubCore
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

/// Several processes on one database: who owns what, and what a former owner can still do.
@Suite("Owners of partitions", .enabled(if: TestDatabase.direct != nil)) struct PostgresOwnershipTests {
    @Test("a second hub without a backplane is refused, and the first goes on")
    func alone() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let first = try await PostgresStore(address: address, time: TestClock())
            let error = await #expect(throws: StorageError.self) { _ = try await PostgresStore(address: address, time: TestClock()) }
            #expect(error?.code == .inUse)
            #expect(first.node.owned.count == 64)
            #expect(try await first.commit([EventCommit(.sample("e"))]).count == 1)
            try await first.close()
            // A successor takes what was given back without a wait.
            let next = try await PostgresStore(address: address, time: TestClock())
            try await next.close()
        }
    }

    @Test("a hub that is closed beats no more and takes nothing")
    func closed() async throws {
        try await TestDatabase.direct?.withTurn { address in
            for _ in 0..<5 {
                let store = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
                try await store.close()
            }
            // The look that waited when the store was closed would have come by now.
            try await Task.sleep(for: .milliseconds(2 * LeaseBook.lookEvery))
            let rows = try TestDatabase.run(
                ["SELECT count(*) AS nodes FROM tandem.node", "SELECT count(*) AS taken FROM tandem.lease WHERE owner <> 0"], at: address)
            #expect(rows[0].first?.int("nodes") == 0 && rows[1].first?.int("taken") == 0)
        }
    }

    @Test("a database with other partitions is refused, by the start and by the check")
    func otherPartitions() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let clock = TestClock()
            let first = try await PostgresStore(address: address, time: clock)
            try await first.close()
            #expect(first.database?.identity?.isEmpty == false)
            _ = try TestDatabase.run(["DELETE FROM tandem.lease WHERE partition >= 32"], at: address)
            let error = await #expect(throws: StorageError.self) { _ = try await PostgresStore(address: address, time: clock) }
            #expect(error?.code == .otherPartitions && error?.message.contains("32 partitions and this Tandem has 64") == true)
            let asked = await #expect(throws: StorageError.self) { _ = try await PostgresCheck.ask(address) { clock.wallMilliseconds } }
            #expect(asked == error)
        }
    }

    @Test("a clock that differs by minutes from the server's is warned of")
    func clocks() async throws {
        try await TestDatabase.direct?.withTurn { address in
            for (ahead, isWarned) in [(0, false), (200_000, true), (-200_000, true)] as [(Int64, Bool)] {
                let answer = try await PostgresCheck.ask(address) { Int64(Date().timeIntervalSince1970 * 1000) + ahead }
                #expect(answer.warnings.contains { $0.contains("that of PostgreSQL") } == isWarned, "\(ahead): \(answer.warnings)")
            }
        }
    }

    @Test("who was told is read again where it was added to, and after a minute where the database has lost it")
    func toldElsewhere() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let clock = TestClock()
            let writer = try await PostgresStore(address: address, time: clock, isAlone: false)
            let reader = try await PostgresStore(address: address, time: clock, isAlone: false)
            let people = RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b"]), note: .awaited)
            _ = try await writer.commit(["e", "f"].map { EventCommit(.sample($0), recipients: people) })
            func missed() async throws -> [[String]] {
                let channel = EventRecord.sample("e").channel
                return try await reader.missed(app: "1", channel: channel, users: ["a", "b"], now: 0, limit: 5).map { $0.map(\.event.id) }
            }
            #expect(try await missed() == [["e", "f"], ["e", "f"]])
            try await writer.settle([RecipientSettlement(event: "e", confirmed: [0], at: 1_000)])
            #expect(try await missed() == [["f"], ["e", "f"]])
            try await writer.settle([RecipientSettlement(event: "e", confirmed: [1], at: 1_000)])
            #expect(try await missed() == [["f"], ["f"]])
            #expect(try await reader.openFanouts(after: 0, limit: 5).map(\.confirmed.bytes) == [[3], [0]])
            _ = try TestDatabase.run(["DELETE FROM tandem.settlement"], at: address)
            clock.advance(milliseconds: 59_999)
            #expect(try await missed() == [["f"], ["f"]])
            clock.advance(milliseconds: 1)
            #expect(try await missed() == [["e", "f"], ["e", "f"]])
            try await reader.close()
            try await writer.close()
        }
    }

    @Test("hubs share the partitions, and what one gives back the others take")
    func shares() async throws {
        try await TestDatabase.direct?.withTurn { address in
            var stores: [PostgresStore] = []
            for count in 1...3 {
                stores.append(try await PostgresStore(address: address, time: TestClock(), isAlone: false))
                let all = stores
                #expect(
                    await eventually { all.allSatisfy { (64 / count...64 / count + 1).contains($0.node.owned.count) } },
                    "\(count): \(all.map { $0.node.owned.count })")
            }
            let last = stores.removeLast()
            try await last.close()
            let rest = stores
            #expect(await eventually { rest.allSatisfy { $0.node.owned.count == 32 } })
            for store in rest { try await store.close() }
        }
    }

    @Test("a hub that hands over returns when others have everything, decides nothing more, and still stores people")
    func handOver() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let alone = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            #expect(await eventually { alone.node.owned.count == 64 })
            try await alone.handOver()
            #expect(alone.ownedPartitions.count == 64, "without another hub everything stays")
            let other = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            let listener = Task { await other.listen {} }
            #expect(await eventually { alone.node.owned.count == 32 && other.node.owned.count == 32 })
            try await alone.handOver()
            #expect(alone.ownedPartitions.isEmpty)
            #expect(await eventually { other.node.owned.count == 64 })
            let error = await #expect(throws: StorageError.self) { _ = try await alone.commit([EventCommit(.sample("late"))]) }
            #expect(error?.code == .unavailable)
            #expect(try await other.commit([EventCommit(.sample("next"))]).count == 1)
            try await alone.probe()
            try await alone.close()
            try await other.close()
            await listener.value
        }
    }

    @Test("an event comes into the store by the owner of its channel alone")
    func channels() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let one = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            let other = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            #expect(await eventually { one.node.owned.count == 32 && other.node.owned.count == 32 })
            for number in 0..<20 {
                var event = EventRecord.sample("e\(number)")
                event.channel = "channel-\(number)"
                let owns = one.owns(Partition.of(MemberPlace(app: event.app, channel: event.channel)))
                let (owner, stranger) = owns ? (one, other) : (other, one)
                let error = await #expect(throws: StorageError.self) { _ = try await stranger.commit([EventCommit(event)]) }
                #expect(error?.code == .unavailable)
                #expect(try await owner.commit([EventCommit(event)]).first?.sequence == 1)
            }
            try await one.close()
            try await other.close()
        }
    }

    @Test("a hub that was cut off commits nothing when it is back, also in the middle of commits")
    func zombie() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let way = try FaultyWay(to: TestDatabase.port(of: address))
            defer { way.close() }
            let old = try await PostgresStore(address: TestDatabase.address(address, port: way.port), time: TestClock(), isAlone: false)
            #expect(await eventually { old.node.owned.count == 64 })
            _ = try await old.commit([EventCommit(.sample("before"))])
            way.set(.hangs)
            let next = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            #expect(await eventually { next.node.owned.count == 64 })
            way.set(.passes)
            // A look may have come before the commit, and given it a part of what the other one has.
            let late = try? await old.commit([EventCommit(.sample("late"))])
            #expect(late == nil || old.node.owned.isEmpty == false && late?.first?.sequence == 2)
            #expect(try await next.commit([EventCommit(.sample("after"))]).first?.sequence ?? 0 >= 2)
            try await next.close()
            try await old.close()
        }
    }

    @Test("the fence refuses a transaction whose partition has a later epoch")
    func fence() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let store = try await PostgresStore(address: address, time: TestClock())
            _ = try await store.commit([EventCommit(.sample("before"))])
            _ = try TestDatabase.run(["UPDATE tandem.lease SET epoch = epoch + 1 WHERE partition = 7"], at: address)
            let error = await #expect(throws: StorageError.self) { _ = try await store.commit([EventCommit(.sample("late"))]) }
            #expect(error?.code == .unavailable)
            #expect(try await store.event(id: "late") == nil)
            // The next look learns the epoch.
            #expect(await eventually { (try? await store.commit([EventCommit(.sample("after"))])) != nil })
            try await store.close()
        }
    }

    @Test("two hubs may migrate at once")
    func migrations() async throws {
        try await TestDatabase.direct?.withTurn { address in
            async let first = PostgresStore(address: address, time: TestClock(), isAlone: false)
            async let second = PostgresStore(address: address, time: TestClock(), isAlone: false)
            for store in try await [first, second] { try await store.close() }
        }
    }
}
