import GRDB
import Synchronization

/// Moves what was committed from the log into the database file.
///
/// Left to itself, SQLite does so inside the commit that makes the log long, with two more waits for the disk: the event that is
/// told to thousands, whose answer is waited for, would pay for all that was written before it. Here it runs behind the answers.
/// What is committed is durable in the log already, so no promise depends on it.
final class Checkpoints: Sendable {
    /// Changed rows from which the log is emptied: some megabytes at most. Each emptying waits for the disk twice, and the next
    /// transaction waits for the emptying.
    static let changesMax = 2_000
    /// Pages of the log from which SQLite does it inside a commit all the same: 64 MB, for rows with long bodies.
    static let logPagesMax = 16_384

    private struct State {
        /// Rows changed since the store was opened.
        var total = 0
        var emptiedAt = 0
    }

    private let state = Mutex(State())
    private let pool: DatabasePool

    init(pool: DatabasePool) {
        self.pool = pool
    }

    /// - Parameter total: rows that the writer has changed since it was opened.
    func noteChanges(total: Int) {
        state.withLock { $0.total = total }
    }

    func runIfDue() async {
        let (total, emptiedAt) = state.withLock { ($0.total, $0.emptiedAt) }
        guard total - emptiedAt >= Self.changesMax else { return }
        do {
            // Takes what no reader needs any more, and waits for nobody.
            _ = try await pool.writeWithoutTransaction { db in try db.checkpoint(.passive) }
            state.withLock { $0.emptiedAt = total }
        } catch {
            // The log stays, and is tried again behind the next transaction; a disk that fails has failed that one too.
        }
    }
}
