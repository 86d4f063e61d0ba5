/// Counters of the work of this process with PostgreSQL, since the store was opened.
package struct PostgresFigures: Sendable, Equatable {
    /// Number of this process among all that used the database.
    package var process: Int64 = 0
    /// Epochs of the partitions that this process owns, by the number of the partition.
    package var owned: [Int32: Int64] = [:]
    /// Other processes whose beats have not stood still for long.
    package var others = 0
    /// Partitions that this process took from a dead owner.
    package var takeovers: UInt64 = 0
    /// Beats that the server answered in time, and those that it did not.
    package var beats: UInt64 = 0
    package var failedBeats: UInt64 = 0
    /// Time since the last answered beat was sent, in milliseconds; nil before the first one.
    package var sinceBeat: Int64?
    /// Counters of the links.
    package var calls = PostgresCallFigures()
    /// Whether the server takes no writes.
    package var isFailing = false

    /// All zero.
    package init() {}
}

/// Counters of the links to PostgreSQL.
package struct PostgresCallFigures: Sendable, Equatable {
    /// Connections that were made.
    package var connections: UInt64 = 0
    /// Calls that got no answer, or one that says that the server takes no writes.
    package var failed: UInt64 = 0
    /// Calls that failed at once, because the server did not answer a moment before.
    package var refused: UInt64 = 0
    /// Round trips of the writer, and of all other links.
    package var writerRoundTrips: UInt64 = 0
    package var otherRoundTrips: UInt64 = 0

    /// All zero.
    package init() {}
}
