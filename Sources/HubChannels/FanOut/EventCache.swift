internal import HubCore
internal import PusherProtocol

/// The last event of each cache channel, for those who subscribe later (docs/protocol.md, 2.8).
///
/// Every loop has its own cache, filled by the publications that it fans out. So a new subscriber's cached event and the following
/// events fit together without a question to another loop. Loops share the frames without copying.
struct EventCache {
    private struct Entry {
        var order: UInt64
        var expiresAt: UInt64
        var frame: [UInt8]
    }

    private var entries: [ChannelKey: Entry] = [:]
    /// Keys in the order of caching, which is also the order of expiry. Replaced entries are skipped.
    private var queue: [(key: ChannelKey, order: UInt64)] = []
    private var queueHead = 0
    private(set) var byteCount = 0
    var queuedCount: Int { queue.count }

    /// Lifetime of an event.
    static let lifetimeSeconds: UInt64 = 30 * 60
    /// Maximum bytes of frames. If exceeded, the oldest event is dropped, and the next subscriber of its channel gets a cache miss.
    static let bytesMax = 64 << 20
    /// Approximate cost of an entry in addition to its frame, so that tiny events in countless channels are bounded as well.
    private static let entryBytes = 256

    /// Stores an event unless a newer one of the channel is known. Two events accepted on different loops at the same time may
    /// arrive in different orders, but all loops must keep the same one.
    mutating func store(_ frame: [UInt8], order: UInt64, for key: ChannelKey, now: UInt64) {
        if let known = entries[key] {
            guard known.order < order else { return }
            byteCount -= known.frame.count + Self.entryBytes
        }
        let expiresAt = now + Self.lifetimeSeconds * 1_000_000_000
        assert(queue.last.flatMap { entries[$0.key] }.map { $0.expiresAt <= expiresAt } ?? true, "\(key.name) expires too early")
        entries[key] = Entry(order: order, expiresAt: expiresAt, frame: frame)
        byteCount += frame.count + Self.entryBytes
        queue.append((key, order))
        dropOutdated(now: now)
    }

    /// The channel's event as a frame, with its remaining lifetime in nanoseconds; nil if none or expired.
    mutating func event(for key: ChannelKey, now: UInt64) -> (frame: [UInt8], remaining: UInt64)? {
        dropOutdated(now: now)
        guard let entry = entries[key], entry.expiresAt > now else { return nil }
        return (entry.frame, entry.expiresAt - now)
    }

    private mutating func dropOutdated(now: UInt64) {
        while queueHead < queue.count {
            let oldest = queue[queueHead]
            if let entry = entries[oldest.key], entry.order == oldest.order {
                guard entry.expiresAt <= now || byteCount > Self.bytesMax else { break }
                byteCount -= entry.frame.count + Self.entryBytes
                entries[oldest.key] = nil
            }
            queueHead += 1
        }
        // A channel that publishes often leaves a trail of replaced entries.
        if queue.count > 2 * entries.count + 1024 {
            queue = queue[queueHead...].filter { entries[$0.key]?.order == $0.order }
            queueHead = 0
        }
        assert(isConsistent, "\(byteCount) bytes of \(entries.count) events, \(queue.count - queueHead) places from \(queueHead) on")
    }

    /// Whether the bytes are within their bound and every event has a place in the queue. Adds up small caches only.
    private var isConsistent: Bool {
        guard (0...Self.bytesMax).contains(byteCount), queueHead <= queue.count, entries.count <= queue.count - queueHead else { return false }
        return entries.count > 64 || entries.values.reduce(0) { $0 + $1.frame.count + Self.entryBytes } == byteCount
    }
}
