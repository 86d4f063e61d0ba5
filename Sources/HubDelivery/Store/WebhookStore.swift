/// A batch as it is kept until it has been delivered or is too old.
package struct StoredWebhook: Sendable, Equatable {
    /// Its number: grows with every batch, and no number is given twice.
    package var row: Int64
    package var batch: WebhookBatch

    package init(row: Int64, batch: WebhookBatch) {
        self.row = row
        self.batch = batch
    }
}

/// The durable side of webhooks: the contract every store fulfils. Callable from any thread.
package protocol WebhookStore: Sendable {
    /// Adds batches and deletes the rows of ended ones, all of it or nothing; a row that is not there is passed over. Returns
    /// the rows of the added batches, in their order. When it returns, all of it survives a crash of the process.
    func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64]) async throws -> [Int64]
    /// The batches with higher row numbers than `row`, in the order of adding, at most `limit`. For start-up.
    func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook]
}
