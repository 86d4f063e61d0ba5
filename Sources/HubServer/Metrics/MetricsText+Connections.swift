internal import HubChannels
internal import HubCore
internal import HubTransport
internal import PusherProtocol

/// Counters of the loops, as sums unless one loop's share is of interest.
extension MetricsText {
    mutating func connections(_ loops: [LoopReading], accepted: Acceptor.Counts) {
        func sum(_ number: (Loop.Counters) -> UInt64) -> UInt64 { loops.reduce(0) { $0 + number($1.loop.counters) } }

        gauge(
            "tandem_connections", "WebSocket connections that are open.",
            loops.enumerated().map { Sample($1.loop.connections, Self.loop($0)) })
        counter(
            "tandem_connections_opened_total", "WebSocket connections that began, those that were then refused included.", sum(\.opened))
        counter(
            "tandem_connections_closed_total",
            "WebSocket connections that ended: the client closed, the hub closed, or the socket was lost without a close frame.",
            [
                Sample(sum(\.closedByPeer), [("by", "client")]), Sample(sum(\.closedByServer), [("by", "hub")]),
                Sample(sum(\.lost), [("by", "nobody")]),
            ])
        let closes = loops.reduce(into: [UInt16: UInt64]()) { $0.merge($1.engine.counters.closes) { $0 + $1 } }
        counter(
            "tandem_closes_total", "WebSocket connections that the hub refused or closed with a pusher:error, by its code.",
            closes.sorted { $0.key < $1.key }.map { Sample($0.value, [("code", "\($0.key)")]) })
        counter(
            "tandem_slow_consumer_closes_total", "Connections closed with 4100 because they did not read what was sent to them.",
            sum(\.slowConsumers))
        gauge(
            "tandem_backlog_connections", "Connections that have not read yet what was sent to them.",
            loops.reduce(0) { $0 + $1.loop.behind })
        gauge(
            "tandem_backlog_bytes", "Memory that what waits for connections that do not read takes.",
            loops.reduce(0) { $0 + $1.loop.backlogBytes })
        counter("tandem_accepted_sockets_total", "Sockets accepted, of WebSockets and of HTTP requests.", accepted.acceptedCount)
        gauge(
            "tandem_newcomers", "Sockets that are accepted and have said nothing yet, or wait for their turn on a loop.",
            loops.reduce(accepted.waitingCount) { $0 + $1.loop.newcomers })
        counter(
            "tandem_accept_refusals_total", "Sockets cut off because the process has no file descriptor or memory left.",
            accepted.refusedCount)
        let handshakes = loops.map(\.loop.handshakes)
        counter(
            "tandem_tls_handshakes_begun_total", "TLS handshakes that began. Those not completed failed, or are under way.",
            handshakes.reduce(0) { $0 + $1.begun })
        counter("tandem_tls_handshakes_completed_total", "TLS handshakes that were completed.", handshakes.reduce(0) { $0 + $1.completed })
        counter(
            "tandem_tls_sessions_resumed_total", "TLS handshakes completed with a session of before.",
            handshakes.reduce(0) { $0 + $1.resumed })
        let classes = loops.reduce(into: [UInt64](repeating: 0, count: 6)) { sums, reading in
            for (index, count) in reading.loop.counters.responses.enumerated() { sums[index] += count }
        }
        counter(
            "tandem_http_responses_total", "Answers to HTTP requests, by the class of their status.",
            (2...5).map { Sample(classes[$0], [("class", "\($0)xx")]) })
    }

    /// - Parameter stored: publishes that went through delivery.
    mutating func messages(_ loops: [LoopReading], stored: UInt64) {
        func sum(_ number: (ChannelEngine.Counters) -> UInt64) -> UInt64 { loops.reduce(0) { $0 + number($1.engine.counters) } }
        func wire(_ number: (Loop.Counters) -> UInt64) -> UInt64 { loops.reduce(0) { $0 + number($1.loop.counters) } }

        gauge("tandem_subscriptions", "Subscriptions in force.", loops.reduce(0) { $0 + $1.engine.counters.subscriptions })
        gauge("tandem_channels", "Channels with subscribers.", loops.reduce(0) { $0 + $1.engine.channels })
        let clientEvents = sum(\.clientEvents)
        counter(
            "tandem_publishes_total",
            "Events let out: direct (no definition), stored (decided and committed before) or client (by a client).",
            [
                Sample(sum(\.published) - clientEvents, [("way", Publication.Way.direct.rawValue)]),
                Sample(stored, [("way", Publication.Way.stored.rawValue)]),
                Sample(clientEvents, [("way", Publication.Way.client.rawValue)]),
            ])
        counter("tandem_deliveries_total", "Events handed over to subscribers, one for each of them.", sum(\.deliveries))
        counter(
            "tandem_frames_total", "WebSocket frames handed over for connections, events and all others.",
            wire(\.deliveries) + loops.reduce(0) { $0 + $1.engine.joinedFrames })
        counter(
            "tandem_writes_total", "Writes to sockets, those of what had to wait not counted. Frames by writes is how many share one.",
            wire(\.writes))
        counter("tandem_cut_writes_total", "Of these, those that the kernel took in part only, or not at all.", wire(\.cutWrites))
        counter("tandem_sent_bytes_total", "Bytes of frames handed over for connections, TLS not counted.", wire(\.bytes))
        counter("tandem_received_messages_total", "WebSocket messages that clients sent.", wire(\.received))
        counter("tandem_received_bytes_total", "Bytes of the messages that clients sent.", wire(\.receivedBytes))
        counter("tandem_pings_total", "PINGs sent because of silence; those for receipts are not among them.", wire(\.pings))
        counter("tandem_client_errors_total", "Times a client was answered with an error.", sum(\.refusals))
        counter("tandem_stray_receipts_total", "PONGs with a cursor that was never sent.", sum(\.strayReceipts))
        let latencies = Publication.Way.allCases.enumerated().map { index, way in
            (
                [(name: "way", value: way.rawValue)],
                loops.reduce(into: Histogram()) { if index < $1.engine.latencies.count { $0.add($1.engine.latencies[index]) } }
            )
        }
        histogram(
            "tandem_publish_write_seconds",
            "From the arrival of a publish to the end of the write to all subscribers of a loop: once for each loop that has some.",
            latencies)
    }

    mutating func loops(_ loops: [LoopReading]) {
        histogram(
            "tandem_loop_turn_seconds", "What a loop does between two waits for something to happen.",
            loops.enumerated().map { (Self.loop($0), $1.loop.turns) })
        counter(
            "tandem_loop_cpu_seconds_total", "What a loop's thread has used of a core.",
            loops.enumerated().map { Sample(Double($1.loop.cpuNanoseconds) / 1_000_000_000, Self.loop($0)) })
    }

    private static func loop(_ index: Int) -> [(name: String, value: String)] { [("loop", "\(index)")] }
}
