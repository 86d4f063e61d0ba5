internal import HubCore
package import HubDelivery

/// All that a hub keeps, in one place: what `SQLiteStore` and `PostgresStore` have in common. Callable from any thread.
package protocol HubStore: PeopleStore, DeliveryStore, WebhookStore, AppStore {
    /// The writer's counters and queue, for metrics.
    var figures: GroupCommitCounters { get }
    /// Whether commits reach the disk.
    var health: StoreHealth { get }
    /// Counters of the work with PostgreSQL, for metrics; nil for another store.
    var postgres: PostgresFigures? { get }
    /// Facts of the database that nodes share; nil for another store.
    var database: DatabaseFacts? { get }
    /// Whether this process owns the partition. A store of one process owns all.
    func owns(_ partition: Int32) -> Bool
    /// Partitions that this process owns, as was confirmed lately. A store of one process owns all.
    var ownedPartitions: Set<Int32> { get }
    /// Whether this process has given its partitions to others, because it hears nothing through the backplane and they do.
    var isCutOff: Bool { get }
    /// Names the question whether this process hears itself through the backplane. It is asked twice a second, from any thread.
    func noteHearing(_ hears: @escaping @Sendable () -> Bool)
    /// Number of this process among all that use the store: above 0 in a store that several use.
    var processNumber: Int64 { get }
    /// Tests whether the store takes writes; leaves nothing behind.
    func probe() async throws
    /// Latest time stored anywhere, in milliseconds since 1970 by the clock of that moment; nil if nothing is stored.
    func newestTime() async throws -> Int64?
    /// Calls `wake` whenever another program may have stored a publish or changed an app, until the store is closed. Returns at once if
    /// no other program can.
    func listen(_ wake: @escaping @Sendable () -> Void) async
    /// Waits for all accepted writes, then gives all partitions to the other processes, which take them at once. Does nothing alone.
    /// - Throws: the store's error, if it does not say that they are given back.
    func handOver() async throws
    /// Waits for all accepted writes, then ends all connections. Every later call fails.
    func close() async throws
}

extension HubStore {
    /// A store that is not PostgreSQL.
    package func owns(_ partition: Int32) -> Bool { true }
    package var ownedPartitions: Set<Int32> { Set(0..<Partition.count) }
    package var isCutOff: Bool { false }
    package func noteHearing(_ hears: @escaping @Sendable () -> Bool) {}
    package var processNumber: Int64 { 0 }
    package func handOver() async throws {}
    package var postgres: PostgresFigures? { nil }
    package var database: DatabaseFacts? { nil }
}
