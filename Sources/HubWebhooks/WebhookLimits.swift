/// The times and bounds of webhooks (docs/protocol.md, 6.3), in one place.
package enum WebhookLimits {
    // MARK: What is told

    /// A removal waits so long for whoever left to come back.
    package static let removalWaitNanoseconds: UInt64 = 3_000_000_000
    /// After a cache miss, further ones of the same channel are the same news for so long.
    package static let cacheMissQuietNanoseconds: UInt64 = 3_000_000_000
    /// Removals that wait, and as many channels with a recent cache miss. Beyond it a removal is told at once, a miss every time.
    package static let heldMax = 100_000

    // MARK: Batches

    /// Events of one request.
    package static let batchEventsMax = 20
    /// The first event of a batch waits so long for company.
    package static let batchWaitNanoseconds: UInt64 = 250_000_000
    /// Of the events in one request, unless a single one has more: receivers commonly refuse bodies beyond 100 kB.
    package static let batchBytesMax = 64 << 10

    // MARK: Attempts

    /// From connecting to the end of the answer.
    package static let attemptTimeout = Duration.seconds(4)
    /// Counted from a batch's `time_ms`; receivers refuse what is older.
    package static let lifeMilliseconds: Int64 = 300_000
    /// Before the second attempt; doubles with each failure up to `backoffMaxNanoseconds`. Half of it is drawn.
    package static let backoffNanoseconds: UInt64 = 1_000_000_000
    package static let backoffMaxNanoseconds: UInt64 = 30_000_000_000
    /// A batch that was refused so often no longer holds up those behind it.
    package static let refusalsBeforePassing = 4

    // MARK: Queues

    /// What an endpoint may have waiting; beyond either bound its oldest batches are dropped.
    package static let queueBatchesMax = 2_000
    package static let queueBytesMax = 16 << 20
    /// Facts that wait to be looked at; beyond it the newest are dropped.
    package static let inboxBytesMax = 32 << 20
    /// Losses are logged at most this often for each endpoint.
    package static let lossLogNanoseconds: UInt64 = 10_000_000_000

    // MARK: Storage

    /// Batches of one transaction.
    package static let writeBatchesMax = 64
    /// Rows of ended batches wait so long for others to be deleted with.
    package static let removalGroupingNanoseconds: UInt64 = 100_000_000
    /// After a failed write, before the next one.
    package static let writePauseNanoseconds: UInt64 = 1_000_000_000
    /// Rows read at once at the start.
    package static let resumePageRows = 200
}
