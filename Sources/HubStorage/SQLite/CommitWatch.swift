import GRDB
import Synchronization

/// Derives the store's health from the results of its transactions.
final class CommitWatch: Sendable {
    private let state = Mutex(StoreHealth())

    var health: StoreHealth { state.withLock { $0 } }

    /// - Parameter transaction: returns each call's result, and whether anything was written.
    func watch(
        _ transaction: () async throws -> (results: [Result<Void, any Error>], hasWritten: Bool)
    ) async throws -> [Result<Void, any Error>] {
        do {
            let (results, hasWritten) = try await transaction()
            // A full disk may fail one call's statement while the remaining calls write nothing and so cannot fail.
            for case .failure(let error as DatabaseError) in results where Self.isOfTheDisk(error) {
                note(error)
                return results
            }
            // A transaction without writes says nothing about the disk.
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

    /// Distinguishes disk errors from errors of a single call.
    private static func isOfTheDisk(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CORRUPT, .SQLITE_CANTOPEN, .SQLITE_NOMEM: true
        default: false
        }
    }
}
