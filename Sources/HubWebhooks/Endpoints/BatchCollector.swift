package import HubDelivery

extension WebhookBatch {
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

    /// No events wait.
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
        assert(isConsistent, "\(count) events of \(events.count) bytes wait, due at \(dueAt ?? 0)")
        return full
    }

    /// Whether events wait exactly while a time is set for them, and fewer than fill a request.
    private var isConsistent: Bool {
        (count > 0) == (dueAt != nil) && count < WebhookLimits.batchEventsMax && events.count < WebhookLimits.batchBytesMax
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
