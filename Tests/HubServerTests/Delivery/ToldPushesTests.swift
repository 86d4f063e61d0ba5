import HubCore
import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubServer

@Suite("Pushes that other nodes tell of")
struct ToldPushesTests {
    private struct Failure: Error {}

    /// A store that fails at first, and notes what it is asked for.
    private final class Store: Sendable {
        private let state: Mutex<(failures: Int, reads: [ToldPushes.Share])>

        init(failures: Int) { state = Mutex((failures, [])) }

        var reads: [ToldPushes.Share] { state.withLock(\.reads) }
        var isRead: Bool { state.withLock { $0.failures < 0 } }

        func mend() { state.withLock { $0.failures = 0 } }

        func read(_ share: ToldPushes.Share) throws {
            let fails = state.withLock { state in
                state.reads.append(share)
                state.failures -= 1
                return state.failures >= 0
            }
            if fails { throw Failure() }
        }
    }

    private static func sorted(_ share: ToldPushes.Share) -> [String]? {
        if case .events(let events) = share { events.sorted() } else { nil }
    }

    @Test("an event that is told again and again while the store fails is read once for each try, and once when it answers")
    func again() async throws {
        let store = Store(failures: .max)
        let retryEvery = Duration.milliseconds(20)
        let told = ToldPushes(retryEvery: retryEvery, logger: Logger(label: "test")) { try store.read($0) }
        let began = ContinuousClock.now
        for _ in 0..<1_000 { told.take(["a", "b"]) }
        #expect(await eventually { store.reads.count >= 3 })
        store.mend()
        #expect(await eventually { store.isRead })
        let tries = Int((ContinuousClock.now - began) / retryEvery) + 2
        let reads = store.reads.compactMap(Self.sorted)
        #expect(reads.count <= tries && reads.allSatisfy { $0 == ["a", "b"] }, "told a thousand times, read \(reads.count) times")
    }

    @Test("unknown events, and more events than can wait, become one read of everything, which outlives a failure")
    func everything() async throws {
        let store = Store(failures: 1)
        let told = ToldPushes(retryEvery: .milliseconds(20), logger: Logger(label: "test")) { try store.read($0) }
        told.take([])
        #expect(await eventually { store.reads.count == 2 })
        let everything = ToldPushes.Share.everything(leasedOf: PartitionSet())
        #expect(store.reads == [everything, everything])
        let many = ToldPushes(retryEvery: .milliseconds(20), logger: Logger(label: "test")) { try store.read($0) }
        many.take((0...ToldPushes.waitingMax).map(String.init))
        #expect(await eventually { store.reads.count == 3 })
        #expect(store.reads.last == everything)
    }

    @Test("looks through all pushes that come together are one, which covers the leased ones of every partition that was asked for")
    func together() async throws {
        let store = Store(failures: .max)
        let told = ToldPushes(retryEvery: .milliseconds(20), logger: Logger(label: "test")) { try store.read($0) }
        let returned = Guarded(0)
        await withTaskGroup { group in
            for partition in Int32(0)..<20 {
                group.addTask {
                    await told.takeAll(leasedOf: PartitionSet([partition]))
                    returned.withLock { $0 += 1 }
                }
            }
            #expect(await eventually { store.reads.last == .everything(leasedOf: PartitionSet(0..<20)) })
            #expect(returned.withLock { $0 } == 0, "nobody goes on before everything is read")
            store.mend()
        }
        #expect(returned.withLock { $0 } == 20)
    }
}
