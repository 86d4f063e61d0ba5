import GRDB
import Synchronization

/// Keeps the store's health by what becomes of its transactions.
final class CommitWatch: Sendable {
    private let state = Mutex(StoreHealth())

    var health: StoreHealth { state.withLock { $0 } }

    /// - Parameter transaction: returns what became of each call, and whether anything was written.
    func watch(
        _ transaction: () async throws -> (results: [Result<Void, any Error>], hasWritten: Bool)
    ) async throws -> [Result<Void, any Error>] {
        do {
            let (results, hasWritten) = try await transaction()
            // A full disk may fail the statement of one call, and leave the others nothing to fail at.
            for case .failure(let error as DatabaseError) in results where Self.isOfTheDisk(error) {
                note(error)
                return results
            }
            // One that had nothing to write says nothing of the disk.
            if hasWritten { state.withLock { $0.committed() } }
            return results
        } catch let error as DatabaseError {
            note(error)
            throw error
        }
    }

    func recovered() { state.withLock { $0.recovered() } }

    private func note(_ error: DatabaseError) {
        state.withLock { $0.failed(StorageError(error), isFull: error.resultCode == .SQLITE_FULL) }
    }

    /// As opposed to what is wrong with one call.
    private static func isOfTheDisk(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CORRUPT, .SQLITE_CANTOPEN, .SQLITE_NOMEM: true
        default: false
        }
    }
}
