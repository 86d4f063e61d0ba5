/// The times and bounds of webhooks (docs/protocol.md, 6.3), in one place.
package enum WebhookLimits {
    // MARK: What is told

    /// How long a removal waits for its member or channel to return.
    package static let removalWaitNanoseconds: UInt64 = 3_000_000_000
    /// After a cache miss, further ones of the same channel are suppressed for this time.
    package static let cacheMissQuietNanoseconds: UInt64 = 3_000_000_000
    /// Maximum of waiting removals, and of channels with a recent cache miss. If exceeded, removals are reported at once and misses every
    /// time.
    package static let heldMax = 100_000

    // MARK: Several nodes

    /// How long, and up to which approximate size, every node keeps facts for a change of the owner. Receivers refuse older batches.
    static let recentNanoseconds: UInt64 = 300_000_000_000
    static let recentBytesMax = 32 << 20
    /// Time between two looks at who owns the webhooks of which app.
    static let ownersNanoseconds: UInt64 = 100_000_000
    /// Time for attempts under way, before a node hands its apps over.
    static let leaveNanoseconds: UInt64 = 1_000_000_000

    // MARK: Batches

    /// Maximum of events per request.
    package static let batchEventsMax = 20
    /// How long a batch's first event waits for further ones.
    package static let batchWaitNanoseconds: UInt64 = 250_000_000
    /// Maximum of bytes of the events in one request, unless a single one is longer: receivers commonly refuse bodies over 100 kB.
    package static let batchBytesMax = 64 << 10

    // MARK: Attempts

    /// From connecting to the end of the answer.
    package static let attemptTimeout = Duration.seconds(4)
    /// Counted from a batch's `time_ms`; receivers refuse older batches.
    package static let lifeMilliseconds: Int64 = 300_000
    /// Pause before the second attempt. Doubles with each failure up to `backoffMaxNanoseconds`; half of it is random.
    package static let backoffNanoseconds: UInt64 = 1_000_000_000
    /// The longest pause between two attempts.
    package static let backoffMaxNanoseconds: UInt64 = 30_000_000_000
    /// Refusals after which a batch no longer blocks later ones.
    package static let refusalsBeforePassing = 4

    // MARK: Queues

    /// Maximum of waiting batches per endpoint. If either bound is exceeded, the oldest batches are dropped.
    package static let queueBatchesMax = 2_000
    /// Maximum bytes of the waiting batches' bodies per endpoint.
    package static let queueBytesMax = 16 << 20
    /// Maximum size of unprocessed facts. If exceeded, the newest are dropped.
    package static let inboxBytesMax = 32 << 20
    /// Minimum time between two log messages about losses, per endpoint.
    package static let lossLogNanoseconds: UInt64 = 10_000_000_000

    // MARK: Storage

    /// Time between two looks whether a write has ended.
    static let writeLook = Duration.milliseconds(10)
    /// Maximum of batches per transaction.
    package static let writeBatchesMax = 64
    /// How long the rows of ended batches wait, so that several are deleted together.
    package static let removalGroupingNanoseconds: UInt64 = 100_000_000
    /// Pause after a failed write.
    package static let writePauseNanoseconds: UInt64 = 1_000_000_000
    /// Rows per read at the start.
    package static let resumePageRows = 200
}
