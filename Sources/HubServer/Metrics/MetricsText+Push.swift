internal import HubCore
internal import HubDelivery
internal import HubOutbox
internal import HubPush
internal import HubStorage
internal import HubWebhooks

/// Counters of pushes, webhooks and every store.
extension MetricsText {
    mutating func pushes(_ counts: [PushProvider: PushCounts], alarms: [PushAlarm: Int]) {
        counter(
            "tandem_pushes_total", "Answers to pushes by provider, outcome and reason; a push that is tried again has several.",
            PushProvider.allCases.flatMap { provider in
                (counts[provider]?.causes ?? [:]).sorted { ($0.key.outcome, $0.key.reason) < ($1.key.outcome, $1.key.reason) }.map {
                    cause, count in
                    Sample(count, [("provider", provider.rawValue), ("outcome", cause.outcome), ("reason", cause.reason)])
                }
            })
        counter(
            "tandem_push_alarms_total", "Times a push alarm was raised: docs/operations.md says what each one means.",
            PushAlarm.allCases.map { Sample(alarms[$0, default: 0], [("alarm", $0.rawValue)]) })
    }

    mutating func outbox(_ figures: OutboxCounters) {
        let ends = PushState.allCases.filter { !PushState.open.contains($0) && $0 != .socket }
        counter(
            "tandem_pushes_ended_total", "Pushes that ended, by their last state; those that failed are dead letters.",
            ends.map { Sample(figures.counts.ended[$0, default: 0], [("state", $0.rawValue)]) })
        histogram(
            "tandem_push_attempt_seconds", "From handing a push over to its provider's lane to the answer.",
            PushProvider.allCases.compactMap { provider in
                figures.counts.attempts[provider].map { ([(name: "provider", value: provider.rawValue)], $0) }
            })
        let parked = figures.parked.values.reduce(0, +)
        gauge("tandem_outbox_waiting", "Pushes in memory that wait for their time.", figures.queued - parked)
        gauge(
            "tandem_outbox_parked", "Pushes in memory that are due and wait for their lane.",
            [
                Sample(
                    figures.parked[.init(provider: .apns, environment: .production), default: 0],
                    [("provider", "apns"), ("environment", "production")]),
                Sample(
                    figures.parked[.init(provider: .apns, environment: .sandbox), default: 0],
                    [("provider", "apns"), ("environment", "sandbox")]),
                Sample(figures.parked[.init(provider: .fcm, environment: nil), default: 0], [("provider", "fcm"), ("environment", "")]),
            ])
        gauge("tandem_outbox_in_flight", "Pushes that are being sent.", figures.inFlight)
        gauge(
            "tandem_outbox_oldest_seconds", "How long the push has been due that has been due for the longest.",
            [Sample(Double(figures.oldestDueMilliseconds) / 1000)])
        gauge("tandem_outbox_overflowed", "1 while the store holds pushes for which memory has no room.", figures.hasOverflowed ? 1 : 0)
    }

    mutating func lanes(_ figures: [LaneCounters]) {
        let lanes = Self.named(figures)
        gauge(
            "tandem_push_lane_state", "1 for the state that a lane is in: open, stopped (credentials) or outage (its gateway).",
            lanes.flatMap { labels, lane in
                LaneCounters.State.allCases.map { Sample(lane.state == $0 ? 1 : 0, labels + [("state", $0.rawValue)]) }
            })
        gauge("tandem_push_lane_stopped_topics", "Topics that are stopped by themselves.", lanes.map { Sample($1.stoppedTopics, $0) })
        gauge(
            "tandem_push_lane_in_flight", "Pushes that a lane has been handed and that are not answered.",
            lanes.map { Sample($1.inFlight, $0) })
        gauge("tandem_push_lane_queued", "Of these, those that wait in front of the HTTP client.", lanes.map { Sample($1.queued, $0) })
        gauge("tandem_push_lane_window", "Requests that may be under way at once.", lanes.map { Sample($1.window, $0) })
        gauge(
            "tandem_push_lane_rate", "Pushes a second that a lane may take now; +Inf without a limit.",
            lanes.map { Sample($1.rate ?? .infinity, $0) })
        counter("tandem_push_lane_connections_total", "Connections that a lane has opened.", lanes.map { Sample($1.connectionsOpened, $0) })
        counter("tandem_push_lane_renewals_total", "Times a lane gave up all its connections.", lanes.map { Sample($1.renewals, $0) })
        counter(
            "tandem_push_lane_repeated_total", "Requests that libcurl began to send more than once.",
            lanes.map { Sample($1.repeatedByLibcurl, $0) })
        counter(
            "tandem_push_lane_http1_answers_total", "Answers that did not come over HTTP/2.", lanes.map { Sample($1.answeredOverHTTP1, $0) }
        )
        counter(
            "tandem_push_lane_refused_total", "Pushes that a lane did not take because its queue was full.",
            lanes.map { Sample($1.refused, $0) })
    }

    /// Lanes with distinct labels: two accounts of one Firebase project share a name, but series must differ.
    private static func named(_ figures: [LaneCounters]) -> [(labels: [(name: String, value: String)], LaneCounters)] {
        var seen: [String: Int] = [:]
        return figures.sorted { $0.name < $1.name }.map { lane in
            let number = seen[lane.name, default: 0] + 1
            seen[lane.name] = number
            return ([("lane", number == 1 ? lane.name : "\(lane.name) (\(number))"), ("provider", lane.provider.rawValue)], lane)
        }
    }

    mutating func webhooks(_ counters: WebhookCounters, queues: [WebhookQueueCounters]) {
        counter(
            "tandem_webhook_batches_total",
            "Webhook requests that ended: delivered, expired (five minutes old), dropped (their queue was full).",
            [
                Sample(counters.batchesDelivered, [("outcome", "delivered")]), Sample(counters.batchesExpired, [("outcome", "expired")]),
                Sample(counters.batchesDropped, [("outcome", "dropped")]),
            ])
        counter("tandem_webhook_attempts_total", "Attempts to deliver a webhook request.", counters.attempts)
        counter("tandem_webhook_failures_total", "Of these, those that failed.", counters.attemptsFailed)
        counter(
            "tandem_webhook_facts_dropped_total", "Events for webhooks that came in faster than requests can be made of them.",
            counters.factsDropped)
        let endpoints = queues.enumerated().map { index, queue in
            (labels: [(name: "app", value: queue.app), (name: "endpoint", value: "\(index)")], queue)
        }
        gauge(
            "tandem_webhook_queue", "Webhook requests that wait, by app and by the endpoint's place in the configuration.",
            endpoints.map { Sample($1.batches, $0) })
        gauge("tandem_webhook_queue_bytes", "Bytes of the webhook requests that wait.", endpoints.map { Sample($1.bytes, $0) })
    }

    mutating func store(_ figures: GroupCommitCounters) {
        counter("tandem_store_transactions_total", "Transactions of the store's writer.", figures.transactions)
        counter("tandem_store_failures_total", "Of these, those that could not be committed.", figures.failed)
        counter("tandem_store_calls_total", "Calls that shared these transactions.", figures.calls)
        counter("tandem_store_rows_total", "Rows written by them, about.", figures.rows)
        gauge("tandem_store_waiting_rows", "Rows that wait for a transaction.", figures.waitingRows)
        histogram("tandem_store_transaction_seconds", "What a transaction took, the wait for the disk included.", [([], figures.durations)])
    }
}
