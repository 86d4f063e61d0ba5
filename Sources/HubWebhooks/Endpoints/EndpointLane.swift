internal import HubCore
internal import HubDelivery
internal import HubHTTPClient
internal import Logging
internal import PusherProtocol

/// One endpoint's state: its open batches, its queue and its log.
struct EndpointLane {
    let endpoint: WebhookEndpoint
    private var collector = BatchCollector()
    /// Events of encrypted channels get separate requests: pusher-http-go and -php refuse a whole request if one of these events lacks
    /// encrypted data. Only client events have it.
    private var encrypted = BatchCollector()
    var queue = EndpointQueue()
    var losses: LossLog
    /// Whether the last attempt failed.
    private var isFailing = false
    private let logger: Logger

    init(_ endpoint: WebhookEndpoint, logger: Logger) {
        self.endpoint = endpoint
        // The address may hold a secret in its path or query. App and host suffice to find the endpoint in the configuration.
        var logger = logger
        logger[metadataKey: "webhook.app"] = "\(endpoint.appID)"
        logger[metadataKey: "webhook.host"] = "\(URLParts(endpoint.url)?.host ?? "?")"
        self.logger = logger
        losses = LossLog(logger: logger)
    }

    /// Adds an event; returns the events of each request that it completed.
    mutating func add(_ event: [UInt8], isEncrypted: Bool, now: UInt64) -> [[UInt8]] {
        isEncrypted ? encrypted.add(event, now: now) : collector.add(event, now: now)
    }

    /// Returns the events of each request whose first event has waited long enough.
    mutating func takeDue(now: UInt64) -> [[UInt8]] {
        var due: [[UInt8]] = []
        if let at = collector.dueAt, at <= now, let events = collector.take() { due.append(events) }
        if let at = encrypted.dueAt, at <= now, let events = encrypted.take() { due.append(events) }
        return due
    }

    /// Forgets everything: another node sends it.
    /// - Returns: the batch in flight, whose end is still to be stored.
    mutating func leave() -> (number: Int, row: Int64)? {
        (collector, encrypted) = (BatchCollector(), BatchCollector())
        return queue.leave()
    }

    /// When `takeDue` next has something to return; nil: never.
    var batchDue: UInt64? { [collector.dueAt, encrypted.dueAt].compactMap { $0 }.min() }

    /// The request, the same for every attempt.
    static func call(_ batch: WebhookBatch) -> HTTPCall {
        HTTPCall(
            method: "POST", url: batch.url,
            headers: [
                ("Content-Type", "application/json"), ("X-Pusher-Key", batch.key), ("X-Pusher-Signature", batch.signature),
            ], body: batch.body)
    }

    /// Logs once when the endpoint begins to fail, and once when it works again.
    mutating func note(_ outcome: AttemptOutcome, failures: Int) {
        guard let reason = outcome.reason else {
            if isFailing { logger.info("webhook endpoint works again") }
            isFailing = false
            return
        }
        logger.debug("webhook attempt failed", metadata: ["webhook.outcome": "\(reason)", "webhook.failures": "\(failures)"])
        if !isFailing {
            logger.info(
                "webhook endpoint fails; its batches are tried again for five minutes", metadata: ["webhook.outcome": "\(reason)"])
        }
        isFailing = true
    }

    func noteTakenUp(_ count: Int) {
        logger.info("taking up webhooks left open", metadata: ["webhook.batches": "\(count)"])
    }
}

/// Counts losses and logs them at most once per period, so that a dead endpoint cannot fill the log. Pure except for the log.
struct LossLog {
    enum Loss: String, CaseIterable {
        case expired = "webhook batches given up: five minutes old and not delivered"
        case queueFull = "webhook batches dropped: the endpoint's queue is full"
        case inboxFull = "channel facts dropped: more come in than webhooks can be made of"
    }

    private var counts: [Loss: Int] = [:]
    private var quietUntil: UInt64 = 0
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    mutating func add(_ loss: Loss, _ count: Int) {
        assert(count >= 0, "\(count) losses: \(loss)")
        if count > 0 { counts[loss, default: 0] += count }
    }

    /// When `flush` next has something to log; nil: never.
    var nextDue: UInt64? { counts.isEmpty ? nil : quietUntil }

    /// - Parameter isLast: logs at once, because no later chance follows.
    mutating func flush(now: UInt64, isLast: Bool = false) {
        guard !counts.isEmpty, quietUntil <= now || isLast else { return }
        for loss in Loss.allCases {
            guard let count = counts[loss] else { continue }
            logger.info("\(loss.rawValue)", metadata: ["webhook.lost": "\(count)"])
        }
        counts = [:]
        quietUntil = now + WebhookLimits.lossLogNanoseconds
    }
}
