/// Whether commits reach the disk, judged by the recent ones.
package struct StoreHealth: Sendable, Equatable {
    /// Consecutive failed commits after which the store counts as failing. A full disk counts at once.
    static let failuresMax = 3

    private var failuresInARow = 0
    private var isFull = false
    /// The error of the last commit that failed.
    package private(set) var error: StorageError?

    /// Whether the next write is expected to fail. On a full disk small writes may still succeed in the last pages, so only a probe clears
    /// this state.
    package var isFailing: Bool { isFull || failuresInARow >= Self.failuresMax }

    /// A transaction was written and is durable.
    mutating func committed() { if !isFailing { self = StoreHealth() } }

    /// A probe was written.
    mutating func recovered() { self = StoreHealth() }

    /// A transaction or probe failed at the disk.
    mutating func failed(_ error: StorageError, isFull: Bool) {
        failuresInARow += 1
        self.isFull = self.isFull || isFull
        self.error = error
    }
}
