package import HubCore
internal import PusherProtocol

/// Proof that a client has read its events: a PING with a cursor follows them, and the PONG returns the cursor.
/// For a page, a `pusher:ping` event and the page's own `pusher:pong` do the same by counting (`PingLog`).
///
/// Every WebSocket stack echoes a PING's payload (RFC 6455), and frames keep their order. So a PONG proves that the peer's process has read
/// everything before the PING. Cursors only grow, with one counter per loop, so a PING is framed once for all subscribers. An answer to the
/// newest PING alone, which the RFC allows, covers all earlier ones.
struct ReceiptCursor {
    private(set) var last: UInt64 = 0

    /// Distinguishes receipts from the transport's own PINGs.
    private static let mark = UInt8(ascii: "r")

    /// The next cursor and its PING as a frame.
    mutating func next() -> (cursor: UInt64, ping: [UInt8]) {
        last += 1
        let digits = Array(String(last).utf8)
        return (last, [0x89, UInt8(digits.count + 1), Self.mark] + digits)
    }

    /// The cursor in a PONG; nil if the payload has another format, or the cursor was never sent.
    func cursor(in payload: UnsafeRawBufferPointer) -> UInt64? {
        // Mark and at most 20 digits, the length of the largest `UInt64`.
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

/// Rate limit for a channel's receipt PINGs on one loop.
///
/// A PING in the write of its event costs eleven bytes and a PONG; a page's `pusher:ping` costs 37 bytes and an event. A later PING costs
/// another write per subscriber and delays the receipts. So each turn's events get their own PING, up to `burst` turns in quick succession.
/// A longer stream shares one PING per `interval`. This bounds inbound traffic, which is one frame per subscriber and PING.
struct ReceiptPingPace {
    /// Nanoseconds.
    static let interval: UInt64 = 250_000_000
    static let burst: UInt64 = 8

    private var bucket = TokenBucket()

    /// Takes a token for a PING; false if none is left.
    mutating func take(now: UInt64) -> Bool { bucket.take(burst: Self.burst, interval: Self.interval, now: now) }
}

/// Receipts of events with a policy: sends PINGs, and reports the answers to delivery.
extension ChannelEngine {
    /// Question for pages. A browser answers PINGs itself, even for a frozen page.
    private static let pagePing = Frame.text(ServerEvent.ping())

    /// Requests a PING after this event: at the end of the turn, or later while events stream.
    func wantReceipt(_ event: UInt64, on channel: Channel) {
        if channel.unpinged.isEmpty { unpingedChannels.append(channel) }
        channel.unpinged.append(event)
    }

    /// Appends due PINGs to the same write as their events.
    func sendReceiptPings() {
        guard !unpingedChannels.isEmpty else { return }
        let now = time.monotonicNanoseconds
        unpingedChannels.removeAll { channel in
            guard channel.pingPace.take(now: now) else { return false }
            let (cursor, ping) = receiptCursor.next()
            sendReceiptPing(channel, cursor, ping)
            reports.append(.pinged(events: channel.unpinged, cursor: cursor))
            channel.unpinged.removeAll(keepingCapacity: true)
            return true
        }
    }

    private func sendReceiptPing(_ channel: Channel, _ cursor: UInt64, _ ping: [UInt8]) {
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
        // Pages get no PING.
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

    /// Asks these connections again for a sign of life, and reports the cursor of the question.
    func prove(_ event: UInt64, by ids: [ConnectionID]) {
        let (cursor, ping) = receiptCursor.next()
        reports.append(.proving(event: event, cursor: cursor))
        // Earlier cursors must be read first.
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
            unsafe slots.withUnsafeBufferPointer {
                unsafe sink.deliver(ping, to: $0, latestOnly: UnsafeBufferPointer(start: nil, count: 0))
            }
        }
    }

    /// Writes missed events to one subscriber of their channel, followed by a PING.
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
