package import HubCore
import Synchronization

/// Gathers the writes of many callers into few transactions.
///
/// One transaction costs one wait for the disk, however much it writes. Calls that arrive meanwhile queue up, and the next transaction
/// takes them together. No call waits for company: the first call of a quiet moment starts at once, and under load the disk sets the
/// rhythm.
///
/// Calls run in the order of arrival, each isolated from the rest of its transaction. An accepted call is carried out even if its task is
/// cancelled.
///
/// `Transaction` is the handle that a call writes to; the store's `Writer` opens and commits it.
package final class GroupCommit<Transaction>: Sendable {
    /// Makes one transaction of several calls. Runs each call's `perform` in order, undoes the writes of a throwing one, commits, and
    /// returns one result per call. Throws if nothing was committed, which fails every call.
    package typealias Writer = @Sendable (_ calls: [Call]) async throws -> [Result<Void, any Error>]

    /// One caller's work.
    package struct Call: Sendable {
        /// Rows that the call announced.
        let rows: Int
        /// Writes inside the transaction. Run it exactly once.
        package let perform: @Sendable (Transaction) throws -> Void
        fileprivate let settle: @Sendable (Result<Void, any Error>) -> Void
    }

    private struct State {
        var waiting: [Call] = []
        var waitingRows = 0
        var isWriting = false
        var figures = GroupCommitCounters()

        /// Whether somebody writes while calls wait, and the rows are those of the calls. Adds up short queues only.
        var isConsistent: Bool {
            guard waiting.isEmpty == (waitingRows == 0), waiting.isEmpty || isWriting else { return false }
            return waiting.count > 64 || waiting.reduce(0) { $0 + $1.rows } == waitingRows
        }
    }

    private enum Admission {
        case wait, start
        case refuse(waitingRows: Int)
    }

    private let state = Mutex(State())
    private let limits: GroupCommitLimits
    private let writer: Writer
    private let tidyUp: @Sendable () async -> Void

    /// - Parameter tidyUp: runs after every transaction, once its callers have their results; the next transaction waits for it.
    package init(
        limits: GroupCommitLimits = GroupCommitLimits(), tidyUp: @escaping @Sendable () async -> Void = {}, writer: @escaping Writer
    ) {
        self.limits = limits
        self.tidyUp = tidyUp
        self.writer = writer
    }

    /// For metrics.
    package var figures: GroupCommitCounters {
        state.withLock { state in
            var figures = state.figures
            figures.waitingRows = state.waitingRows
            return figures
        }
    }

    /// Runs `work` in one of the next transactions and returns its value once that is committed.
    /// - Parameter rows: approximate number of rows that the work writes, for the limits.
    /// - Throws: `StorageError.Code.queueFull` before anything was done; the error of `work`, after its writes were undone; or the error
    ///   that kept the transaction from being committed.
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
            // A call larger than the whole queue is accepted when the queue is empty.
            guard state.waiting.isEmpty || state.waitingRows + call.rows <= limits.waitingRowsMax else {
                return .refuse(waitingRows: state.waitingRows)
            }
            state.waiting.append(call)
            state.waitingRows += call.rows
            let isFirst = !state.isWriting
            state.isWriting = true
            assert(state.isConsistent, "\(state.waitingRows) rows of \(state.waiting.count) calls wait")
            return isFirst ? .start : .wait
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

    /// The calls of the next transaction: at least one, then as many as the limits allow. Nil ends the writing.
    private func takeNext() -> [Call]? {
        state.withLock { state in
            assert(state.isWriting && state.isConsistent, "\(state.waitingRows) rows of \(state.waiting.count) calls wait for nobody")
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
            assert(state.isConsistent, "\(state.waitingRows) rows of \(state.waiting.count) calls wait behind \(count) calls")
            return calls
        }
    }
}

/// Counters of a `GroupCommit` since it was made, and its queue.
package struct GroupCommitCounters: Sendable, Equatable {
    /// Transactions that were tried.
    package var transactions: UInt64 = 0
    /// Transactions that could not be committed, included in `transactions`.
    package var failed: UInt64 = 0
    /// Calls in these transactions, failed ones included.
    package var calls: UInt64 = 0
    /// Sum of the `rows` that the calls declared.
    package var rows: UInt64 = 0
    /// Duration of each transaction, the wait for the disk included.
    package var durations = Histogram()
    /// Rows waiting for a transaction, without those being written.
    package var waitingRows = 0

    /// All zero.
    package init() {}
}

/// The bounds of a `GroupCommit`.
package struct GroupCommitLimits: Sendable {
    /// Maximum of calls per transaction: bounds how many calls one disk failure fails.
    package var transactionCallsMax: Int
    /// Maximum of rows per transaction, unless a single call has more: bounds how long a call waits for its neighbours.
    package var transactionRowsMax: Int
    /// Maximum of waiting rows. If exceeded, calls are refused, so memory stays bounded.
    package var waitingRowsMax: Int

    /// All at least 1; the queue holds at least one full transaction.
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
        content.withLock { content in
            assert(content == nil, "a call ran twice")
            content = value
        }
    }

    var value: Value {
        guard let value = content.withLock({ $0 }) else { preconditionFailure("a call succeeded without having run") }
        return value
    }
}
