package import HubCore
internal import PusherProtocol

/// Proof that a client has read what it was sent: a PING behind it whose payload is a cursor, and the PONG that brings the
/// cursor back. In a page it is a `pusher:ping` event and the page's own `pusher:pong`, which are counted (`PingLog`).
///
/// RFC 6455 has every WebSocket stack echo a PING's payload, and frames keep their order; so a PONG says that the peer's process
/// has read everything written to that connection before its PING. Cursors only grow, one counter per loop: one PING is framed
/// once for all subscribers, and whoever answers only the newest one (which the RFC allows) has answered for all before it.
struct ReceiptCursor {
    private(set) var last: UInt64 = 0

    /// Tells receipts from the transport's own probes.
    private static let mark = UInt8(ascii: "r")

    /// The next cursor and its PING as a frame.
    mutating func next() -> (cursor: UInt64, ping: [UInt8]) {
        last += 1
        let digits = Array(String(last).utf8)
        return (last, [0x89, UInt8(digits.count + 1), Self.mark] + digits)
    }

    /// The cursor in a PONG; nil when the payload is none of ours or was never sent.
    func cursor(in payload: UnsafeRawBufferPointer) -> UInt64? {
        // As many digits as any cursor has: whoever sends more did not copy them from a PING.
        guard payload.count >= 2, payload.count <= 21, unsafe payload[0] == Self.mark else { return nil }
        var value: UInt64 = 0
        for index in 1..<payload.count {
            let digit = unsafe payload[index]
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            let (product, overflows) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = product.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
            if overflows || overflowsToo { return nil }
            value = sum
        }
        return value >= 1 && value <= last ? value : nil
    }
}

/// When a channel's next PING for receipts may go out on one loop.
///
/// A PING in the write of its event costs eleven bytes and a PONG; a page's `pusher:ping` costs 37 bytes and an event. One that follows
/// later costs every subscriber another write, and nobody's receipt can come before it. So each turn's events get theirs at once, until
/// `burst` of them have followed each other faster than `interval`: from there on, and as long as that lasts, they share one for each
/// `interval`. That bounds what a stream of events brings in, which is a frame from each subscriber for each PING.
struct ProbePace {
    /// In nanoseconds.
    static let interval: UInt64 = 250_000_000
    static let burst: UInt64 = 8

    private var bucket = TokenBucket()

    /// Whether a PING may go out now; if so, it counts.
    mutating func take(now: UInt64) -> Bool { bucket.take(burst: Self.burst, interval: Self.interval, now: now) }
}

/// Receipts of events that have a policy: asking for them, and telling delivery who gave them.
extension ChannelEngine {
    /// What a page is asked by. A browser answers PINGs for it while it is frozen.
    private static let pagePing = Frame.text(ServerEvent.ping())

    /// A PING has to follow this event to the channel's subscribers, at the end of the turn or, where events stream, a little later.
    func wantReceipt(_ event: UInt64, on channel: Channel) {
        if channel.unprobed.isEmpty { unprobedChannels.append(channel) }
        channel.unprobed.append(event)
    }

    /// Puts the PINGs that are due behind their events, into the same write.
    func sendProbes() {
        guard !unprobedChannels.isEmpty else { return }
        let now = time.monotonicNanoseconds
        unprobedChannels.removeAll { channel in
            guard channel.probePace.take(now: now) else { return false }
            let (cursor, ping) = receiptCursor.next()
            probe(channel, cursor, ping)
            reports.append(.probed(events: channel.unprobed, cursor: cursor))
            channel.unprobed.removeAll(keepingCapacity: true)
            return true
        }
    }

    private func probe(_ channel: Channel, _ cursor: UInt64, _ ping: [UInt8]) {
        if channel.count == 0 { return }
        if channel.pageCount == 0 { return unsafe fanOut.append(ping, to: channel, sink: sink) }
        channel.pings.append(cursor)
        if channel.pageCount == channel.count { return unsafe fanOut.append(Self.pagePing, to: channel, sink: sink) }
        let parts = channel.takeParts()
        unsafe fanOut.append(Self.pagePing, to: parts.pages, sink: sink)
        unsafe fanOut.append(ping, to: parts.others, sink: sink)
    }

    /// A PONG came back.
    package func receivedPong(_ payload: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = connection(id) else { return }
        // No page was sent one.
        let cursor = unsafe connection.isBrowser ? nil : receiptCursor.cursor(in: payload)
        if let cursor, cursor > connection.lastReceipt {
            connection.lastReceipt = cursor
        } else if !pays(connection) {
            return
        }
        guard connection.isWatched else { return }
        guard let cursor else { return countStrayReceipt() }
        reports.append(.receipt(id, cursor: cursor, byApplication: false))
    }

    /// A `pusher:pong` came.
    func receivedPagePong(_ connection: Connection) {
        guard connection.isBrowser, let cursor = connection.takeAnswer() else { return }
        connection.frames.giveBack(interval: connection.app.frameInterval)
        guard cursor > connection.lastReceipt else { return }
        connection.lastReceipt = cursor
        reports.append(.receipt(connection.id, cursor: cursor, byApplication: true))
    }

    /// Asks these connections once more whether they are alive; their answers have the cursor that is reported here.
    func prove(_ event: UInt64, by ids: [ConnectionID]) {
        let (cursor, ping) = receiptCursor.next()
        reports.append(.proving(event: event, cursor: cursor))
        // Cursors that are on their way have to be read first.
        unsafe fanOut.finish(sink: sink)
        var slots: ContiguousArray<UInt32> = []
        for id in ids {
            guard let connection = connection(id) else { continue }
            if connection.isBrowser {
                connection.pings.append(cursor)
                sink.send(Self.pagePing, to: id)
            } else {
                slots.append(UInt32(id.slot))
            }
        }
        if slots.isEmpty { return }
        unsafe ping.withUnsafeBytes { ping in
            unsafe slots.withUnsafeBufferPointer { unsafe sink.deliver(ping, to: $0, latestOnly: UnsafeBufferPointer(start: nil, count: 0)) }
        }
    }

    /// Writes missed events to one connection that is subscribed to their channel, with a PING behind them.
    func replay(_ frames: [UInt8], events: [UInt64], on channel: ChannelName, to id: ConnectionID) {
        guard let connection = connection(id), let subscription = connection.subscriptions[channel],
            case .active(let active) = subscription.phase
        else { return reports.append(.replayed(id, events: events, cursor: 0)) }
        unsafe fanOut.flush(active, sink: sink)
        unsafe fanOut.finish(sink: sink)
        let (cursor, ping) = receiptCursor.next()
        if connection.isBrowser { connection.pings.append(cursor) }
        sink.send(frames + (connection.isBrowser ? Self.pagePing : ping), to: id)
        reports.append(.replayed(id, events: events, cursor: cursor))
    }
}
