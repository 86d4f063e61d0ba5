import HubDelivery
import Testing

extension StoreContract {
    static let webhooks: [StoreContract] = [
        StoreContract("webhooks are read as they were added, byte for byte, in order and page by page") { store in
            #expect(try await store.webhooks(after: 0, limit: 10) == [])
            let batches = [WebhookBatch.sample([0, 255, 10, 34]), .sample([]), .sample(Array("{\"ä\":1}".utf8), app: "2")]
            var rows = try await store.updateWebhooks(adding: Array(batches.prefix(1)), removing: [])
            rows += try await store.updateWebhooks(adding: Array(batches.dropFirst()), removing: [])
            #expect(rows == rows.sorted() && Set(rows).count == 3 && rows.allSatisfy { $0 > 0 })
            let stored = zip(rows, batches).map { StoredWebhook(row: $0, batch: $1) }
            #expect(try await store.webhooks(after: 0, limit: 10) == stored)
            #expect(try await store.webhooks(after: 0, limit: 2) == Array(stored.prefix(2)))
            #expect(try await store.webhooks(after: rows[1], limit: 2) == Array(stored.suffix(1)))
            #expect(try await store.webhooks(after: rows[2], limit: 2) == [])
        },
        StoreContract("ended webhooks go in the transaction that adds others, and unknown rows are passed over") { store in
            let first = try await store.updateWebhooks(adding: [.sample([1]), .sample([2])], removing: [])
            let second = try await store.updateWebhooks(adding: [.sample([3])], removing: [first[0], 999_999])
            #expect(try await store.webhooks(after: 0, limit: 10).map(\.batch.body) == [[2], [3]])
            #expect(try await store.updateWebhooks(adding: [], removing: first + second) == [])
            #expect(try await store.webhooks(after: 0, limit: 10) == [])
            #expect(try await store.updateWebhooks(adding: [], removing: []) == [])
        },
        StoreContract("a webhook's row number is never given again") { store in
            let rows = try await store.updateWebhooks(adding: [.sample([1])], removing: [])
            _ = try await store.updateWebhooks(adding: [], removing: rows)
            let next = try await store.updateWebhooks(adding: [.sample([2])], removing: [])
            #expect(next[0] > rows[0])
        },
    ]
}

extension WebhookBatch {
    package static func sample(_ body: [UInt8], app: String = "1") -> WebhookBatch {
        WebhookBatch(
            app: app, url: "https://h.example/x?y=ä", key: "k", signature: "00ff", timeMilliseconds: 1_767_920_400_123, body: body)
    }
}
