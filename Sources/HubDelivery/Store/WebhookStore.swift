package import HubCore

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

/// The place in the stream between the nodes up to which an app's facts were told, stored with their batches for the next owner.
package struct WebhookMark: Sendable, Equatable {
    /// The app's id.
    package var app: String
    /// The last fact that was taken.
    package var told: StreamID
    /// The last removal that was told, or dropped because its member or channel came back. Later ones wait.
    package var settled: StreamID

    /// A mark as stored.
    package init(app: String, told: StreamID, settled: StreamID) {
        self.app = app
        self.told = told
        self.settled = settled
    }
}

/// The durable side of webhooks: a contract for every store. Callable from any thread.
package protocol WebhookStore: Sendable {
    /// Adds batches and deletes the rows of ended ones, all or nothing. Missing rows are ignored. On return all of it survives a crash of
    /// the process.
    /// - Parameter marks: of the batches' apps, beside other nodes. The call fails if another node owns one of these apps' webhooks.
    /// - Returns: the rows of the added batches, in their order.
    func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64], marks: [WebhookMark]) async throws -> [Int64]
    /// The app's mark as it was stored last; nil: none. A store of one process has none.
    func webhookMark(app: String) async throws -> WebhookMark?
    /// At most `limit` batches with higher row numbers than `row`, in row order. For start-up.
    func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook]
}

extension WebhookStore {
    /// The same on a single node.
    package func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64]) async throws -> [Int64] {
        try await updateWebhooks(adding: batches, removing: rows, marks: [])
    }

    /// A store of one process.
    package func webhookMark(app: String) async throws -> WebhookMark? { nil }
}
