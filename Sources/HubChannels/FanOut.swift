internal import HubCore
internal import PusherProtocol

/// The publish path of one loop: what is published in one turn goes out at its end, in one write to each connection.
///
/// Coalescing is the one big lever of fan-out (`docs/architecture.md`); a publisher that is alone in a turn pays nothing for
/// it, because the flush comes at the end of that same turn. A frame is copied once, into the bytes of the turn; a connection that is in
/// several of the turn's channels gets their frames joined, in the order of publishing. In the steady state nothing here allocates.
struct FanOut: ~Copyable {
    private var bytes = Scratch<UInt8>(capacity: 4096)
    private var frames = Scratch<WaitingFrame>()
    private var dirty: [Channel] = []
    private var hasExclusions = false
    private var gathering = Gathering()
    private var heads = Scratch<UInt32>()
    private var joined = Scratch<UInt8>()
    private var latestOnly = Scratch<LatestOnlyFrame>()
    private var chosen: ContiguousArray<UInt32> = []
    /// Of what waited for the end of its turn: frames, one for each who gets them, and the batches that they went out in.
    private var frameCount: UInt64 = 0
    private var batchCount: UInt64 = 0
    /// Frames that went out behind others in one batch: with the batches, all frames.
    var joinedFrames: UInt64 { frameCount - batchCount }

    /// A channel with this many bytes waiting goes out at once, so that a batch stays within one write of the transport.
    static let batchBytesMax = 64 * 1024
    /// All the channels of a turn together have at most this many bytes waiting, and one frame.
    static let turnBytesMax = 256 * 1024

    /// Joins the frame to what waits for the end of the turn.
    /// - Parameters:
    ///   - excluded: the slot of a subscriber that must not get it.
    ///   - line: not 0 for a frame that the channel's next one makes needless.
    mutating func append(
        _ frame: [UInt8], to channel: Channel, excluding excluded: UInt32? = nil, line: UInt32 = 0, sink: any DeliverySink
    ) {
        let index = UInt32(frames.count)
        var waiting = channel.waiting
        if waiting.isEmpty {
            waiting = Channel.Waiting(place: dirty.count, first: index, last: index, byteCount: 0)
            dirty.append(channel)
        } else {
            unsafe frames.base[Int(waiting.last)].next = index
            waiting.last = index
        }
        waiting.byteCount += frame.count
        channel.waiting = waiting
        if excluded != nil { hasExclusions = true }
        frameCount += UInt64(channel.slots.count - (excluded == nil ? 0 : 1))
        let start = bytes.count
        unsafe frame.withUnsafeBufferPointer { frame in
            if let base = frame.baseAddress { unsafe bytes.append(from: base, count: frame.count) }
        }
        frames.append(WaitingFrame(start: start, end: bytes.count, excluded: excluded ?? Gathering.nobody, line: line))
        if waiting.byteCount >= Self.batchBytesMax || bytes.count >= Self.turnBytesMax { flushAll(sink: sink) }
    }

    /// Writes what the channel has waiting, and so that a publisher's order holds across channels, what the others have. Comes before
    /// everything that changes who receives what.
    mutating func flush(_ channel: Channel, sink: any DeliverySink) {
        if !channel.waiting.isEmpty { flushAll(sink: sink) }
    }

    /// Writes everything that waits: once per turn.
    mutating func flushAll(sink: any DeliverySink) {
        guard !dirty.isEmpty else { return }
        if dirty.count == 1, !hasExclusions {
            collect(dirty[0].waiting.first, sink: sink)
        } else {
            gather(sink: sink)
        }
        for channel in dirty { channel.waiting = Channel.Waiting() }
        dirty.removeAll(keepingCapacity: true)
        frames.count = 0
        bytes.count = 0
        hasExclusions = false
    }

    /// The usual turn: one channel, whose frames are the bytes of the turn.
    private mutating func collect(_ first: UInt32, sink: any DeliverySink) {
        latestOnly.count = 0
        for index in 0..<frames.count {
            let frame = unsafe frames.base[index]
            if frame.line != 0 { latestOnly.append(LatestOnlyFrame(start: frame.start, end: frame.end, line: frame.line)) }
        }
        batchCount += UInt64(dirty[0].slots.count)
        let whole = unsafe UnsafeRawBufferPointer(start: bytes.base, count: bytes.count)
        unsafe dirty[0].withSlots { unsafe sink.deliver(whole, to: $0, latestOnly: latestOnly.buffer) }
    }

    /// Several channels: connections that get the same frames are written to together.
    private mutating func gather(sink: any DeliverySink) {
        gathering.begin()
        for (place, channel) in dirty.enumerated() {
            unsafe channel.withSlots { unsafe gathering.divide(by: place, $0) }
        }
        if hasExclusions {
            for index in 0..<frames.count {
                let excluded = unsafe frames.base[index].excluded
                if excluded != Gathering.nobody { gathering.isolate(excluded) }
            }
        }
        gathering.layOut { [dirty] in dirty[$0].slots.count }
        for (place, channel) in dirty.enumerated() {
            unsafe channel.withSlots { unsafe gathering.list(place, $0) }
        }
        for index in 1..<gathering.groups.count {
            let group = unsafe gathering.groups.base[index]
            if group.count > 0 { write(group, sink: sink) }
        }
    }

    /// Writes the frames of the group's channels, in the order of publishing.
    private mutating func write(_ group: Gathering.Group, sink: any DeliverySink) {
        // A small channel with one event, as most are when there are many.
        let first = unsafe frames.base[Int(dirty[Int(group.channel)].waiting.first)]
        if group.depth == 1, first.next == Gathering.nobody, first.line == 0, group.loner == Gathering.nobody {
            return hand(first.start, first.end, to: group, sink: sink)
        }
        heads.count = 0
        var ancestor = group
        while ancestor.depth > 0 {
            heads.append(dirty[Int(ancestor.channel)].waiting.first)
            ancestor = unsafe gathering.groups.base[Int(ancestor.parent)]
        }
        // As long as its frames lie side by side they are written from where they are.
        var (start, end) = (0, 0)
        joined.count = 0
        latestOnly.count = 0
        while case let index = takeHead(), index != Gathering.nobody {
            let frame = unsafe frames.base[Int(index)]
            if frame.excluded != Gathering.nobody, frame.excluded == group.loner { continue }
            if joined.isEmpty, start == end || end == frame.start {
                if start == end { start = frame.start }
                end = frame.end
            } else {
                if joined.isEmpty { unsafe joined.append(from: bytes.base + start, count: end - start) }
                unsafe joined.append(from: bytes.base + frame.start, count: frame.end - frame.start)
            }
            let byteCount = joined.isEmpty ? end - start : joined.count
            if frame.line != 0 {
                latestOnly.append(
                    LatestOnlyFrame(start: byteCount - (frame.end - frame.start), end: byteCount, line: frame.line))
            }
            if byteCount >= Self.batchBytesMax {
                hand(start, end, to: group, sink: sink)
                (start, end) = (0, 0)
            }
        }
        if start < end { hand(start, end, to: group, sink: sink) }
    }

    /// The next frame in the order of publishing; `nobody` behind the last.
    private mutating func takeHead() -> UInt32 {
        var place = 0
        var first = Gathering.nobody
        for index in 0..<heads.count where unsafe heads.base[index] < first {
            (place, first) = (index, unsafe heads.base[index])
        }
        if first != Gathering.nobody { unsafe heads.base[place] = unsafe frames.base[Int(first)].next }
        return first
    }

    private mutating func hand(_ start: Int, _ end: Int, to group: Gathering.Group, sink: any DeliverySink) {
        let frames =
            joined.isEmpty
            ? unsafe UnsafeRawBufferPointer(start: bytes.base + start, count: end - start)
            : unsafe UnsafeRawBufferPointer(start: joined.base, count: joined.count)
        let lines = unsafe latestOnly.buffer
        batchCount += UInt64(group.count)
        if group.loner != Gathering.nobody {
            var slot = group.loner
            unsafe withUnsafePointer(to: &slot) {
                unsafe sink.deliver(frames, to: UnsafeBufferPointer(start: $0, count: 1), latestOnly: lines)
            }
        } else if group.start == Gathering.nobody {
            unsafe dirty[Int(group.channel)].withSlots { unsafe sink.deliver(frames, to: $0, latestOnly: lines) }
        } else {
            let slots = unsafe UnsafeBufferPointer(start: gathering.members.base + Int(group.start), count: Int(group.count))
            unsafe sink.deliver(frames, to: slots, latestOnly: lines)
        }
        joined.count = 0
        latestOnly.count = 0
    }

    /// Writes a frame that not every subscriber gets, at once and behind what waits.
    /// - Returns: how many get it.
    mutating func deliver(
        _ frame: [UInt8], of publication: Publication, attendedUpTo cutoff: UInt64, to channel: Channel, sink: any DeliverySink
    ) -> UInt64 {
        flushAll(sink: sink)
        chosen.removeAll(keepingCapacity: true)
        for (slot, subscription) in zip(channel.slots, channel.subscriptions)
        where subscription.connection != publication.excluded && subscription.ticket <= cutoff
            && !publication.audience.isDisjoint(with: subscription.audience)
        {
            chosen.append(slot)
        }
        if chosen.isEmpty { return 0 }
        unsafe frame.withUnsafeBytes { frames in
            unsafe chosen.withUnsafeBufferPointer { unsafe sink.deliver(frames, to: $0, latestOnly: UnsafeBufferPointer(start: nil, count: 0)) }
        }
        return UInt64(chosen.count)
    }
}

/// A frame that waits for the end of the turn.
struct WaitingFrame: BitwiseCopyable {
    /// Its place among the bytes of the turn.
    let start: Int
    let end: Int
    /// The slot that does not get it.
    let excluded: UInt32
    /// See `LatestOnlyFrame`; 0: none.
    let line: UInt32
    /// The channel's next frame.
    var next = Gathering.nobody
}
