internal import HubCore
internal import PusherProtocol

/// The last event of each cache channel, for those who subscribe later (docs/protocol.md, 2.8).
///
/// Every loop keeps its own, filled by the publications it fans out anyway: so what a subscriber finds fits what it is sent
/// next, and nobody has to be asked. The frames are shared between the loops, not copied.
struct EventCache {
    private struct Entry {
        var order: UInt64
        var expiresAt: UInt64
        var frame: [UInt8]
    }

    private var entries: [ChannelKey: Entry] = [:]
    /// Keys in the order of caching, which is that of expiry too; an entry that was replaced since then is skipped.
    private var queue: [(key: ChannelKey, order: UInt64)] = []
    private var queueHead = 0
    private(set) var byteCount = 0
    var queuedCount: Int { queue.count }

    /// How long an event is kept.
    static let lifetimeSeconds: UInt64 = 30 * 60
    /// Bytes of frames kept at most; beyond it the oldest event goes, and its channel's next subscriber meets an empty cache.
    static let bytesMax = 64 << 20
    /// What an entry costs beside its frame, roughly; counted, so that tiny events in countless channels are bounded as well.
    private static let entryBytes = 256

    /// Remembers an event unless a newer one of the channel is known: two that were accepted at the same time on different
    /// loops arrive in different orders, and all loops have to end with the same one.
    mutating func store(_ frame: [UInt8], order: UInt64, for key: ChannelKey, now: UInt64) {
        if let known = entries[key] {
            guard known.order < order else { return }
            byteCount -= known.frame.count + Self.entryBytes
        }
        entries[key] = Entry(order: order, expiresAt: now + Self.lifetimeSeconds * 1_000_000_000, frame: frame)
        byteCount += frame.count + Self.entryBytes
        queue.append((key, order))
        dropOutdated(now: now)
    }

    /// The channel's event as a frame, and for how many nanoseconds it will be kept; nil when there is none, or no longer.
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
    }
}
