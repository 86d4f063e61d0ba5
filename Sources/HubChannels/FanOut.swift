internal import HubCore
internal import PusherProtocol

/// The publish path of one loop: frames are joined per channel, and each subscriber gets one write per channel and turn.
///
/// Coalescing is the one big lever of fan-out (`docs/architecture.md`); a publisher that is alone in a turn pays nothing for
/// it, because the flush comes at the end of that same turn. In the steady state nothing here allocates: frames are copied
/// into buffers that are used again.
struct FanOut {
    private var dirty: [Channel] = []
    private var spareBuffers: [[UInt8]] = []
    private var scratch: ContiguousArray<UInt32> = []

    /// A channel with this many bytes waiting is flushed at once, so that a batch stays within one write of the transport.
    static let batchBytesMax = 64 * 1024

    /// Joins the frame to the channel's batch of this turn.
    mutating func append(_ frame: [UInt8], to channel: Channel, sink: any DeliverySink) {
        if !channel.isDirty {
            channel.isDirty = true
            channel.pending = spareBuffers.popLast() ?? []
            dirty.append(channel)
        }
        channel.pending += frame
        if channel.pending.count >= Self.batchBytesMax { flush(channel, sink: sink) }
    }

    /// Writes what the channel has waiting. Comes before everything that changes who receives what.
    func flush(_ channel: Channel, sink: any DeliverySink) {
        guard channel.isDirty, !channel.pending.isEmpty else { return }
        unsafe channel.pending.withUnsafeBytes { frames in
            unsafe channel.slots.withUnsafeBufferPointer { unsafe sink.deliver(frames, to: $0) }
        }
        channel.pending.removeAll(keepingCapacity: true)
    }

    /// Writes everything that waits: once per turn.
    mutating func flushAll(sink: any DeliverySink) {
        guard !dirty.isEmpty else { return }
        for channel in dirty {
            flush(channel, sink: sink)
            channel.isDirty = false
            spareBuffers.append(channel.pending)
            channel.pending = []
        }
        dirty.removeAll(keepingCapacity: true)
    }

    /// Writes a frame that not every subscriber gets, at once and behind what waits.
    mutating func deliver(
        _ frame: [UInt8], of publication: Publication, attendedUpTo cutoff: UInt64, to channel: Channel, sink: any DeliverySink
    ) {
        flush(channel, sink: sink)
        scratch.removeAll(keepingCapacity: true)
        for (slot, subscription) in zip(channel.slots, channel.subscriptions)
        where subscription.connection != publication.excluded && subscription.ticket <= cutoff
            && !publication.audience.isDisjoint(with: subscription.audience)
        {
            scratch.append(slot)
        }
        if scratch.isEmpty { return }
        unsafe frame.withUnsafeBytes { frames in
            unsafe scratch.withUnsafeBufferPointer { unsafe sink.deliver(frames, to: $0) }
        }
    }
}
