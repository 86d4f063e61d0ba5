package import HubCore
import Synchronization

/// Gathers the writes of many callers into few transactions.
///
/// Making a transaction durable costs one wait for the disk, however much is in it. While one is under way, further
/// calls queue up; the next transaction takes them together. Nobody waits for company: the first call of a quiet moment
/// starts at once, and under load the disk itself sets the rhythm.
///
/// Calls run in the order they arrived, each isolated from the others of its transaction. A call that was accepted is
/// carried out even when the task that made it is cancelled.
///
/// `Transaction` is what a work item writes to; the store says in `init` how one is opened and committed.
package final class GroupCommit<Transaction>: Sendable {
    /// How one transaction is made of calls: runs each call's `perform` in order, undoing what a throwing one wrote,
    /// commits, and returns one result per call. Throws when nothing was committed, which then fails every call.
    package typealias Writer = @Sendable (_ calls: [Call]) async throws -> [Result<Void, any Error>]

    /// One caller's work.
    package struct Call: Sendable {
        fileprivate let rows: Int
        /// Writes; to be run once, inside the transaction.
        package let perform: @Sendable (Transaction) throws -> Void
        fileprivate let settle: @Sendable (Result<Void, any Error>) -> Void
    }

    private struct State {
        var waiting: [Call] = []
        var waitingRows = 0
        var isWriting = false
        var figures = GroupCommitFigures()
    }

    private enum Admission {
        case wait, start
        case refuse(waitingRows: Int)
    }

    private let state = Mutex(State())
    private let limits: GroupCommitLimits
    private let writer: Writer
    private let tidyUp: @Sendable () async -> Void

    /// - Parameter tidyUp: runs behind every transaction, once its callers have their results; the next one waits for it.
    package init(
        limits: GroupCommitLimits = GroupCommitLimits(), tidyUp: @escaping @Sendable () async -> Void = {}, writer: @escaping Writer
    ) {
        self.limits = limits
        self.tidyUp = tidyUp
        self.writer = writer
    }

    /// For metrics.
    package var figures: GroupCommitFigures {
        state.withLock { state in
            var figures = state.figures
            figures.waitingRows = state.waitingRows
            return figures
        }
    }

    /// Runs `work` in one of the next transactions and returns its value once that is committed.
    /// - Parameter rows: about how many rows the work writes; what the limits count.
    /// - Throws: `StorageError.Code.queueFull` before anything was done; what `work` threw, after its writes were undone;
    ///   or what kept the transaction from being committed.
    package func run<Value: Sendable>(
        rows: Int = 1, _ work: @escaping @Sendable (Transaction) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            let slot = Slot<Value>()
            let call = Call(
                rows: max(rows, 1),
                perform: { transaction in slot.fill(try work(transaction)) },
                settle: { result in continuation.resume(with: result.map { slot.value }) })
            if let refusal = enqueue(call) { continuation.resume(throwing: refusal) }
        }
    }

    private func enqueue(_ call: Call) -> StorageError? {
        let next = state.withLock { state -> Admission in
            // A call that is larger than the whole queue still gets through once the queue is empty.
            guard state.waiting.isEmpty || state.waitingRows + call.rows <= limits.waitingRowsMax else {
                return .refuse(waitingRows: state.waitingRows)
            }
            state.waiting.append(call)
            state.waitingRows += call.rows
            if state.isWriting { return .wait }
            state.isWriting = true
            return .start
        }
        switch next {
        case .wait: break
        case .start: Task { await self.writeUntilEmpty() }
        case .refuse(let waitingRows):
            return StorageError(
                .queueFull,
                "the store's write queue is full: \(waitingRows) rows wait, \(limits.waitingRowsMax) may; "
                    + "publish more slowly or give the store a faster disk")
        }
        return nil
    }

    private func writeUntilEmpty() async {
        while let calls = takeNext() {
            let began = ContinuousClock.now
            do {
                let results = try await writer(calls)
                precondition(results.count == calls.count, "\(results.count) results for \(calls.count) calls")
                note(calls, began, hasFailed: false)
                for (call, result) in zip(calls, results) { call.settle(result) }
            } catch {
                note(calls, began, hasFailed: true)
                for call in calls { call.settle(.failure(error)) }
            }
            await tidyUp()
        }
    }

    private func note(_ calls: [Call], _ began: ContinuousClock.Instant, hasFailed: Bool) {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        state.withLock { state in
            state.figures.transactions += 1
            state.figures.failed += hasFailed ? 1 : 0
            state.figures.calls += UInt64(calls.count)
            state.figures.rows += UInt64(calls.reduce(0) { $0 + $1.rows })
            state.figures.durations.note(nanoseconds: UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000))
        }
    }

    /// The calls of the next transaction: at least one, further ones as the limits allow. Nil ends the writing.
    private func takeNext() -> [Call]? {
        state.withLock { state in
            guard let first = state.waiting.first else {
                state.isWriting = false
                return nil
            }
            var count = 1
            var rows = first.rows
            while count < min(state.waiting.count, limits.transactionCallsMax) {
                rows += state.waiting[count].rows
                if rows > limits.transactionRowsMax { break }
                count += 1
            }
            let calls = Array(state.waiting.prefix(count))
            state.waiting.removeFirst(count)
            state.waitingRows -= calls.reduce(0) { $0 + $1.rows }
            return calls
        }
    }
}

/// What a `GroupCommit` has done since it was made, and what waits.
package struct GroupCommitFigures: Sendable, Equatable {
    package var transactions: UInt64 = 0
    /// Of these, those that could not be committed.
    package var failed: UInt64 = 0
    package var calls: UInt64 = 0
    /// About as many as the calls said.
    package var rows: UInt64 = 0
    /// Of the transactions, the wait for the disk included.
    package var durations = Histogram()
    /// Rows that wait for a transaction. Those being written are not among them.
    package var waitingRows = 0

    package init() {}
}

/// The bounds of a `GroupCommit`.
package struct GroupCommitLimits: Sendable {
    /// Calls that share one transaction at most: bounds what a failing disk fails at once.
    package var transactionCallsMax: Int
    /// Rows of one transaction at most, unless a single call has more: bounds how long a call waits for its neighbours.
    package var transactionRowsMax: Int
    /// Rows that may wait for a transaction: beyond it calls are refused instead of piling up in memory.
    package var waitingRowsMax: Int

    package init(transactionCallsMax: Int = 256, transactionRowsMax: Int = 4_096, waitingRowsMax: Int = 262_144) {
        precondition(transactionCallsMax > 0 && transactionRowsMax > 0, "\(transactionCallsMax), \(transactionRowsMax)")
        precondition(waitingRowsMax >= transactionRowsMax, "\(waitingRowsMax) < \(transactionRowsMax)")
        self.transactionCallsMax = transactionCallsMax
        self.transactionRowsMax = transactionRowsMax
        self.waitingRowsMax = waitingRowsMax
    }
}

/// Carries a work item's value from the writer's thread to the caller that waits for the commit.
private final class Slot<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    func fill(_ value: Value) {
        content.withLock { $0 = value }
    }

    var value: Value {
        guard let value = content.withLock({ $0 }) else { preconditionFailure("a call succeeded without having run") }
        return value
    }
}
