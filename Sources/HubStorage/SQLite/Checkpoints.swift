import GRDB
import Synchronization

/// Moves committed pages from the log into the database file.
///
/// SQLite by default does so inside the commit that makes the log long, at the price of two more waits for the disk. A publisher would then
/// wait for earlier writes. Here it runs after the callers have their results. Committed data is durable in the log already.
final class Checkpoints: Sendable {
    /// Changed rows after which the log is emptied: some megabytes at most. Each checkpoint waits for the disk twice, and the next
    /// transaction waits for the checkpoint.
    static let changesMax = 2_000
    /// Log pages after which SQLite checkpoints inside a commit nevertheless: 64 MB, for rows with long bodies.
    static let logPagesMax = 16_384

    private struct State {
        /// Rows changed since the store was opened.
        var total = 0
        var emptiedAt = 0
        var isOver = false
    }

    private let state = Mutex(State())
    private let pool: DatabasePool

    init(pool: DatabasePool) {
        self.pool = pool
    }

    /// - Parameter total: rows that the writer has changed since it was opened.
    func noteChanges(total: Int) {
        state.withLock { state in
            assert(total >= state.total, "\(state.total) rows had changed, and now \(total)")
            state.total = total
        }
    }

    /// Begins no further checkpoint: the file is about to be closed.
    func end() { state.withLock { $0.isOver = true } }

    func runIfDue() async {
        let (total, emptiedAt) = state.withLock { ($0.total, $0.emptiedAt) }
        guard total - emptiedAt >= Self.changesMax else { return }
        do {
            // A passive checkpoint moves pages that no reader needs any more, and never blocks.
            _ = try await pool.writeWithoutTransaction { [self] db in
                // The file may have been closed since this was asked for.
                if !state.withLock({ $0.isOver }) { _ = try db.checkpoint(.passive) }
            }
            state.withLock { state in
                assert(state.emptiedAt == emptiedAt && total <= state.total, "two checkpoints ran at once")
                state.emptiedAt = total
            }
        } catch {
            // The log stays, and the next transaction's checkpoint tries again. A failing disk has failed that transaction too.
        }
    }
}
