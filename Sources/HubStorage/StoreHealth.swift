/// Whether what is committed reaches the disk, judged by the commits that were made.
package struct StoreHealth: Sendable, Equatable {
    /// Failed commits in a row from which the store counts as failing. A full disk counts at once.
    static let failuresMax = 3

    private var failuresInARow = 0
    private var isFull = false
    /// The error of the last commit that failed.
    package private(set) var error: StorageError?

    /// A write cannot be expected to succeed. Small ones may while the last pages fill up, so that only a large one ends it.
    package var isFailing: Bool { isFull || failuresInARow >= Self.failuresMax }

    /// Something was written, and is durable.
    mutating func committed() { if !isFailing { self = StoreHealth() } }

    /// A probe was written.
    mutating func recovered() { self = StoreHealth() }

    /// The disk did not take what was to be written.
    mutating func failed(_ error: StorageError, isFull: Bool) {
        failuresInARow += 1
        self.isFull = self.isFull || isFull
        self.error = error
    }
}
