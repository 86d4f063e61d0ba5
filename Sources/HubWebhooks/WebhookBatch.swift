/// One request to an endpoint: built and signed once, then stored and sent unchanged on every attempt.
package struct WebhookBatch: Sendable, Equatable {
    /// The app's id.
    package var app: String
    package var url: String
    /// The header `X-Pusher-Key`.
    package var key: String
    /// The header `X-Pusher-Signature`: HMAC-SHA256 of `body` in lower-case hexadecimal.
    package var signature: String
    /// Time of creation, as in the body: milliseconds since 1970.
    package var timeMilliseconds: Int64
    package var body: [UInt8]

    package init(app: String, url: String, key: String, signature: String, timeMilliseconds: Int64, body: [UInt8]) {
        self.app = app
        self.url = url
        self.key = key
        self.signature = signature
        self.timeMilliseconds = timeMilliseconds
        self.body = body
    }

    /// Whether receivers refuse the batch because of its age.
    package func hasExpired(at wallMilliseconds: Int64) -> Bool {
        wallMilliseconds >= timeMilliseconds + WebhookLimits.lifeMilliseconds
    }
}

/// Gathers the events of one endpoint until the request is full or its first event has waited long enough. Pure.
package struct BatchCollector {
    private var events: [UInt8] = []
    private var count = 0
    /// When `take` is due; nil if nothing waits.
    package private(set) var dueAt: UInt64?

    package init() {}

    /// Adds an event; returns the events of each completed request, comma-separated. There are two if the event did not fit and fills a
    /// request alone.
    package mutating func add(_ event: [UInt8], now: UInt64) -> [[UInt8]] {
        var full: [[UInt8]] = []
        if count > 0, events.count + 1 + event.count > WebhookLimits.batchBytesMax, let before = take() { full.append(before) }
        if count > 0 { events.append(UInt8(ascii: ",")) } else { dueAt = now + WebhookLimits.batchWaitNanoseconds }
        events += event
        count += 1
        if count == WebhookLimits.batchEventsMax || events.count >= WebhookLimits.batchBytesMax, let whole = take() {
            full.append(whole)
        }
        return full
    }

    /// The waiting events, whatever their age; nil: none.
    package mutating func take() -> [UInt8]? {
        guard count > 0 else { return nil }
        defer {
            events = []
            count = 0
            dueAt = nil
        }
        return events
    }
}
