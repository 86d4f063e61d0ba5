/// A stored batch, kept until delivered or expired.
package struct StoredWebhook: Sendable, Equatable {
    /// Row number: grows with every batch, and is never reused.
    package var row: Int64
    /// The request.
    package var batch: WebhookBatch

    /// A batch as stored.
    package init(row: Int64, batch: WebhookBatch) {
        self.row = row
        self.batch = batch
    }
}

/// The durable side of webhooks: a contract for every store. Callable from any thread.
package protocol WebhookStore: Sendable {
    /// Adds batches and deletes the rows of ended ones, all or nothing. Missing rows are ignored. On return all of it survives a crash of
    /// the process.
    /// - Returns: the rows of the added batches, in their order.
    func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64]) async throws -> [Int64]
    /// At most `limit` batches with higher row numbers than `row`, in row order. For start-up.
    func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook]
}
