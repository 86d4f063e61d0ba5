import HubStorage
import HubTesting
import Synchronization
import Testing

/// The transaction that calls write to: a list of the written values.
private final class Ledger {
    var written: [Int] = []
}

private struct Refused: Error, Equatable { let value: Int }

/// A store made of an array: the first transaction waits until it is let go, so that a test decides what gathers behind it.
private final class FakeStore: Sendable {
    private struct State {
        var committed: [[Int]] = []
        var isHeld = false
        var isStarted = false
        var failsNextCommit = false
    }
    private let state: Mutex<State>

    init(held: Bool = false) {
        state = Mutex(State(isHeld: held))
    }

    var committed: [[Int]] { state.withLock { $0.committed } }
    var isStarted: Bool { state.withLock { $0.isStarted } }
    func letGo() { state.withLock { $0.isHeld = false } }
    func failNextCommit() { state.withLock { $0.failsNextCommit = true } }

    func groupCommit(
        _ limits: GroupCommitLimits = GroupCommitLimits(), tidyUp: @escaping @Sendable () async -> Void = {}
    ) -> GroupCommit<Ledger> {
        GroupCommit(limits: limits, tidyUp: tidyUp) { calls in
            self.state.withLock { $0.isStarted = true }
            while self.state.withLock({ $0.isHeld }) { try await Task.sleep(for: .milliseconds(1)) }
            let ledger = Ledger()
            let results = calls.map { call in
                let before = ledger.written
                return Result { try call.perform(ledger) }.mapError { error in
                    ledger.written = before
                    return error
                }
            }
            try self.state.withLock { state in
                if state.failsNextCommit {
                    state.failsNextCommit = false
                    throw Refused(value: -1)
                }
                state.committed.append(ledger.written)
            }
            return results
        }
    }
}

@Suite("GroupCommit")
struct GroupCommitTests {
    /// Starts calls one after the other, each writing its number, so that their order is known.
    private func start(
        _ values: Range<Int>, on writes: GroupCommit<Ledger>, rows: Int = 1
    ) async throws -> [Task<Int, any Error>] {
        var tasks: [Task<Int, any Error>] = []
        for value in values {
            let before = writes.figures.waitingRows
            tasks.append(
                Task {
                    try await writes.run(rows: rows) { ledger in
                        ledger.written.append(value)
                        return value * 10
                    }
                })
            try await waitUntil { writes.figures.waitingRows == before + rows }
        }
        return tasks
    }

    /// A first call that is being written and held there.
    private func startHeld(_ store: FakeStore, _ writes: GroupCommit<Ledger>) async throws -> Task<Void, any Error> {
        let first = Task { try await writes.run { $0.written.append(0) } }
        try await waitUntil { store.isStarted && writes.figures.waitingRows == 0 }
        return first
    }

    @Test("what was written is counted, and what could not be as well")
    func figures() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit()
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<5, on: writes, rows: 3)
        #expect(writes.figures.waitingRows == 12 && writes.figures.transactions == 0)
        store.letGo()
        try await first.value
        for task in tasks { _ = try await task.value }
        store.failNextCommit()
        await #expect(throws: Refused(value: -1)) { try await writes.run { $0.written.append(9) } }
        let figures = writes.figures
        #expect(figures.transactions == 3 && figures.failed == 1 && figures.calls == 6 && figures.rows == 14 && figures.waitingRows == 0)
        #expect(figures.durations.count == 3 && figures.durations.sum > 0)
    }

    @Test("calls that arrive during a transaction share the next one, in their order, each with its own value")
    func gathers() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit()
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<6, on: writes)
        store.letGo()
        try await first.value
        for (index, task) in tasks.enumerated() { #expect(try await task.value == (index + 1) * 10) }
        #expect(store.committed == [[0], [1, 2, 3, 4, 5]])
    }

    @Test("a lone call does not wait for company")
    func lone() async throws {
        let store = FakeStore()
        let writes = store.groupCommit()
        for value in 0..<3 {
            #expect(
                try await writes.run {
                    $0.written.append(value)
                    return value
                } == value)
        }
        #expect(store.committed == [[0], [1], [2]])
    }

    @Test("a call does not wait for the tidying up behind its transaction, and the next transaction does")
    func tidiesUp() async throws {
        let store = FakeStore()
        let isTidy = Mutex(false)
        let writes = store.groupCommit(tidyUp: { _ = await eventually { isTidy.withLock { $0 } } })
        #expect(
            try await writes.run {
                $0.written.append(0)
                return 0
            } == 0)
        let next = Task { try await writes.run { $0.written.append(1) } }
        try await waitUntil { writes.figures.waitingRows == 1 }
        #expect(store.committed == [[0]])
        isTidy.withLock { $0 = true }
        try await next.value
        #expect(store.committed == [[0], [1]])
    }

    @Test("a transaction takes no more calls than its limit")
    func boundsCalls() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit(GroupCommitLimits(transactionCallsMax: 2, transactionRowsMax: 100, waitingRowsMax: 100))
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<6, on: writes)
        store.letGo()
        try await first.value
        for task in tasks { _ = try await task.value }
        #expect(store.committed == [[0], [1, 2], [3, 4], [5]])
    }

    @Test("a transaction takes no more rows than its limit, except for a single larger call")
    func boundsRows() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit(GroupCommitLimits(transactionCallsMax: 100, transactionRowsMax: 10, waitingRowsMax: 100))
        let first = try await startHeld(store, writes)
        let tasks =
            try await start(1..<4, on: writes, rows: 4) + start(4..<5, on: writes, rows: 30) + start(5..<6, on: writes, rows: 1)
        store.letGo()
        try await first.value
        for task in tasks { _ = try await task.value }
        #expect(store.committed == [[0], [1, 2], [3], [4], [5]])
    }

    @Test("a full queue refuses by name and takes calls again when it has room")
    func refuses() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit(GroupCommitLimits(transactionCallsMax: 8, transactionRowsMax: 8, waitingRowsMax: 8))
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<3, on: writes, rows: 4)
        let refusal = await #expect(throws: StorageError.self) {
            try await writes.run { $0.written.append(99) }
        }
        #expect(refusal?.code == .queueFull)
        store.letGo()
        try await first.value
        for task in tasks { _ = try await task.value }
        // Larger than the whole queue, and alone.
        try await writes.run(rows: 1_000) { $0.written.append(3) }
        #expect(store.committed == [[0], [1, 2], [3]])
    }

    @Test("a throwing call fails alone; its neighbours of the same transaction are written")
    func isolates() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit()
        let first = try await startHeld(store, writes)
        let before = try await start(1..<2, on: writes)
        let bad = Task {
            try await writes.run { ledger in
                ledger.written.append(99)
                throw Refused(value: 2)
            }
        }
        try await waitUntil { writes.figures.waitingRows == 2 }
        let after = try await start(3..<4, on: writes)
        store.letGo()
        try await first.value
        await #expect(throws: Refused(value: 2)) { try await bad.value }
        #expect(try await before[0].value == 10)
        #expect(try await after[0].value == 30)
        #expect(store.committed == [[0], [1, 3]])
    }

    @Test("a failing commit fails every call of its transaction, and the next one goes on")
    func failsTogether() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit()
        store.failNextCommit()
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<3, on: writes)
        store.letGo()
        await #expect(throws: Refused(value: -1)) { try await first.value }
        for task in tasks { _ = try await task.value }
        #expect(store.committed == [[1, 2]])
    }

    @Test("an accepted call is written although its task was cancelled")
    func outlivesCancellation() async throws {
        let store = FakeStore(held: true)
        let writes = store.groupCommit()
        let first = try await startHeld(store, writes)
        let tasks = try await start(1..<2, on: writes)
        first.cancel()
        tasks[0].cancel()
        store.letGo()
        try await first.value
        #expect(try await tasks[0].value == 10)
        #expect(store.committed == [[0], [1]])
    }
}
