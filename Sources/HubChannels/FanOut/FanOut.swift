internal import HubCore
internal import PusherProtocol

/// Publish path of one loop: collects the publications of one turn, and writes each connection once at its end.
///
/// Coalescing is the one big lever of fan-out (`docs/fan-out.md`). It costs a lone publisher nothing, because the flush comes at the end of
/// the same turn. A frame is copied once, into the bytes of the turn. A connection in several of the turn's channels gets their frames
/// joined, in the order of publishing. The steady state allocates nothing.
///
/// A turn with many connections goes out in pieces, so that the loop can serve other sockets in between. Publications that arrive
/// meanwhile belong to the next turn and wait until this one is written. Changes of subscriptions or roles first write the rest.
/// So the order and the receivers are the same as with one piece.
struct FanOut: ~Copyable {
    private var waiting = Turn()
    private var outgoing = Turn()
    private var gathering = Gathering()
    /// Position in `outgoing`: the group, and the number of its members already written to.
    private var group = 0
    private var member = 0
    private var heads = Scratch<UInt32>()
    private var joined = Scratch<UInt8>()
    private var latestOnly = Scratch<LatestOnlyFrame>()
    private var chosen: ContiguousArray<UInt32> = []
    /// Set during a flush. The engine's accesses are not checked for exclusivity, because no write calls back into the fan-out.
    private var isWriting = false
    /// Frames appended to turns, counted per receiver, and the batches that carried them.
    private var frameCount: UInt64 = 0
    private var batchCount: UInt64 = 0
    /// Frames that shared a batch with an earlier frame.
    var joinedFrames: UInt64 { frameCount - batchCount }

    /// Bytes per channel that trigger a flush, so that a batch fits into one write of the transport.
    static let batchBytesMax = 64 * 1024
    /// Bytes of all channels of a turn that trigger a flush; exceeded by one frame at most.
    static let turnBytesMax = 256 * 1024
    /// Connections written to before the loop serves other sockets: 1 to 2 ms. Serving them costs a few thousand instructions.
    /// Publishers answered in between have their next events joined.
    static let writesPerPieceMax = 250
    /// Connections with frames that wait, from which on it pays to let further publications share the writes.
    static let writesWorthSharingMin = 16

    /// The publications of one turn.
    private struct Turn: ~Copyable {
        var bytes = Scratch<UInt8>(capacity: 4096)
        var frames = Scratch<WaitingFrame>()
        var channels = HeldChannels()
        /// First frame of each channel.
        var firsts = Scratch<UInt32>()
        /// Subscribers of these channels; who is in several counts for each.
        var writes = 0
        var hasExclusions = false

        var isEmpty: Bool { channels.count == 0 }

        mutating func clear() {
            channels.removeAll()
            firsts.count = 0
            frames.count = 0
            bytes.count = 0
            writes = 0
            hasExclusions = false
        }
    }

    /// A turn is partly written.
    var isGoingOut: Bool { !outgoing.isEmpty }
    var isEmpty: Bool { waiting.isEmpty && outgoing.isEmpty }
    /// So few connections are to be written to that further publications need not share the writes.
    var hasFewWrites: Bool { !isGoingOut && waiting.writes > 0 && waiting.writes < Self.writesWorthSharingMin }

    /// Prepares the slot of a future subscriber.
    mutating func makeRoom(forSlot slot: Int) { gathering.makeRoom(forSlot: slot) }

    /// Appends the frame to the waiting turn.
    /// - Parameters:
    ///   - excluded: slot of a subscriber to skip.
    ///   - line: not 0 if the channel's next frame supersedes this one.
    mutating func append(
        _ frame: [UInt8], to channel: Channel, excluding excluded: UInt32? = nil, line: UInt32 = 0, sink: any DeliverySink
    ) {
        assert(!isWriting, "a write called back into the fan-out with a frame for \(channel.name)")
        let index = UInt32(waiting.frames.count)
        var place = channel.waiting
        assert(
            place.isEmpty || place.place < waiting.channels.count && waiting.channels.with(place.place) { $0 === channel },
            "\(channel.name) has place \(place.place) in a turn of \(waiting.channels.count) channels")
        if place.isEmpty {
            place = Channel.Waiting(place: waiting.channels.count, last: index, byteCount: 0)
            waiting.channels.append(channel)
            waiting.firsts.append(index)
            waiting.writes += channel.count
        } else {
            unsafe waiting.frames.base[Int(place.last)].next = index
            place.last = index
        }
        place.byteCount += frame.count
        channel.waiting = place
        if excluded != nil { waiting.hasExclusions = true }
        frameCount += UInt64(channel.count - (excluded == nil ? 0 : 1))
        let start = waiting.bytes.count
        unsafe frame.withUnsafeBufferPointer { frame in
            if let base = frame.baseAddress { unsafe waiting.bytes.append(from: base, count: frame.count) }
        }
        waiting.frames.append(WaitingFrame(start: start, end: waiting.bytes.count, excluded: excluded ?? Gathering.nobody, line: line))
        if place.byteCount >= Self.batchBytesMax || waiting.bytes.count >= Self.turnBytesMax { flushAll(sink: sink) }
    }

    /// Writes all waiting frames if the channel has any: a publisher's order holds across channels. Precedes every change of receivers.
    mutating func flush(_ channel: Channel, sink: any DeliverySink) {
        assert(!isWriting, "a write called back with a change of the subscribers of \(channel.name)")
        if channel.isInTurn { flushAll(sink: sink) }
    }

    /// Writes the rest of a turn that is partly written.
    mutating func finish(sink: any DeliverySink) {
        if isGoingOut { flush(writesMax: .max, sink: sink) }
    }

    /// Writes everything that waits.
    mutating func flushAll(sink: any DeliverySink) {
        while !isEmpty { flush(writesMax: .max, sink: sink) }
    }

    /// Continues the outgoing turn, or begins with the waiting one.
    /// - Parameter writesMax: connections to write to at most; positive. `isGoingOut` is true afterwards if some are left.
    mutating func flush(writesMax: Int, sink: any DeliverySink) {
        assert(!isWriting && writesMax > 0, "a write called back into the fan-out, or \(writesMax) writes were allowed")
        isWriting = true
        defer { isWriting = false }
        let isFirst = outgoing.isEmpty
        if isFirst {
            if waiting.isEmpty { return }
            begin()
        }
        var left = writesMax
        while group < gathering.groups.count, left > 0 {
            let current = unsafe gathering.groups.base[group]
            let end = member + min(left, Int(current.count) - member)
            left -= end - member
            if end > member { write(current, member..<end, sink: sink) }
            member = end
            if end == Int(current.count) { (group, member) = (group + 1, 0) }
        }
        assert(group <= gathering.groups.count, "group \(group) of \(gathering.groups.count) is written to")
        let isDone = group == gathering.groups.count
        // Most turns go out in one piece, and their channels are spared the mark.
        if isFirst != isDone { outgoing.channels.forEach { $0.isGoingOut = !isDone } }
        if isDone { outgoing.clear() }
    }

    private mutating func begin() {
        swap(&waiting, &outgoing)
        outgoing.channels.forEach { $0.waiting = Channel.Waiting() }
        // The first group is of those who get nothing.
        (group, member) = (1, 0)
        if outgoing.channels.count == 1, !outgoing.hasExclusions {
            gathering.takeWhole(outgoing.channels.with(0) { $0.count })
        } else {
            gather()
        }
    }

    /// Groups the connections that get the same frames.
    private mutating func gather() {
        gathering.begin()
        for place in 0..<outgoing.channels.count {
            outgoing.channels.with(place) { unsafe gathering.divide(by: place, $0.slots) }
        }
        if outgoing.hasExclusions {
            for index in 0..<outgoing.frames.count {
                let excluded = unsafe outgoing.frames.base[index].excluded
                if excluded != Gathering.nobody { gathering.isolate(excluded) }
            }
        }
        if gathering.layOut(subscribers: { outgoing.channels.with($0) { $0.count } }) == 0 { return }
        for place in 0..<outgoing.channels.count {
            outgoing.channels.with(place) { unsafe gathering.list(place, $0.slots) }
        }
    }

    /// Writes the frames of the group's channels, in the order of publishing.
    private mutating func write(_ group: Gathering.Group, _ members: Range<Int>, sink: any DeliverySink) {
        // Fast path: one channel with one event, the usual case with many small channels.
        let first = unsafe outgoing.frames.base[Int(outgoing.firsts.base[Int(group.channel)])]
        if group.depth == 1, first.next == Gathering.nobody, first.line == 0, group.loner == Gathering.nobody {
            return hand(first.start, first.end, to: group, members, sink: sink)
        }
        assert(group.depth > 0, "a group without channels is written to")
        heads.count = 0
        var ancestor = group
        while ancestor.depth > 0 {
            heads.append(unsafe outgoing.firsts.base[Int(ancestor.channel)])
            ancestor = unsafe gathering.groups.base[Int(ancestor.parent)]
        }
        // Adjacent frames are written from their place, without copying.
        var (start, end) = (0, 0)
        joined.count = 0
        latestOnly.count = 0
        while case let index = takeHead(), index != Gathering.nobody {
            let frame = unsafe outgoing.frames.base[Int(index)]
            if frame.excluded != Gathering.nobody, frame.excluded == group.loner { continue }
            if joined.isEmpty, start == end || end == frame.start {
                if start == end { start = frame.start }
                end = frame.end
            } else {
                if joined.isEmpty { unsafe joined.append(from: outgoing.bytes.base + start, count: end - start) }
                unsafe joined.append(from: outgoing.bytes.base + frame.start, count: frame.end - frame.start)
            }
            let byteCount = joined.isEmpty ? end - start : joined.count
            if frame.line != 0 {
                latestOnly.append(
                    LatestOnlyFrame(start: byteCount - (frame.end - frame.start), end: byteCount, line: frame.line))
            }
            if byteCount >= Self.batchBytesMax {
                hand(start, end, to: group, members, sink: sink)
                (start, end) = (0, 0)
            }
        }
        if start < end { hand(start, end, to: group, members, sink: sink) }
    }

    /// The next frame in the order of publishing; `nobody` after the last.
    private mutating func takeHead() -> UInt32 {
        var place = 0
        var first = Gathering.nobody
        for index in 0..<heads.count where unsafe heads.base[index] < first {
            (place, first) = (index, unsafe heads.base[index])
        }
        if first != Gathering.nobody {
            assert(Int(first) < outgoing.frames.count, "frame \(first) of \(outgoing.frames.count)")
            assert(unsafe outgoing.frames.base[Int(first)].next > first, "a channel's frame \(first) is followed by an earlier one")
            unsafe heads.base[place] = unsafe outgoing.frames.base[Int(first)].next
        }
        return first
    }

    private mutating func hand(_ start: Int, _ end: Int, to group: Gathering.Group, _ members: Range<Int>, sink: any DeliverySink) {
        let frames =
            joined.isEmpty
            ? unsafe UnsafeRawBufferPointer(start: outgoing.bytes.base + start, count: end - start)
            : unsafe UnsafeRawBufferPointer(start: joined.base, count: joined.count)
        let lines = unsafe latestOnly.buffer
        assert(start <= end && end <= outgoing.bytes.count && frames.count > 0, "bytes \(start) to \(end) of \(outgoing.bytes.count)")
        batchCount += UInt64(members.count)
        assert(batchCount <= frameCount, "\(frameCount) frames went out in \(batchCount) writes")
        if group.loner != Gathering.nobody {
            var slot = group.loner
            unsafe withUnsafePointer(to: &slot) {
                unsafe sink.deliver(frames, to: UnsafeBufferPointer(start: $0, count: 1), latestOnly: lines)
            }
        } else if group.start == Gathering.nobody {
            outgoing.channels.with(Int(group.channel)) {
                unsafe sink.deliver(frames, to: UnsafeBufferPointer(rebasing: $0.slots[members]), latestOnly: lines)
            }
        } else {
            let slots = unsafe UnsafeBufferPointer(
                start: gathering.members.base + Int(group.start) + members.lowerBound, count: members.count)
            unsafe sink.deliver(frames, to: slots, latestOnly: lines)
        }
        joined.count = 0
        latestOnly.count = 0
    }

    /// Writes a frame for only some of the subscribers at once, after all waiting frames.
    /// - Returns: the number of receivers.
    mutating func deliver(
        _ frame: [UInt8], of publication: Publication, attendedUpTo cutoff: UInt64, to channel: Channel, sink: any DeliverySink
    ) -> UInt64 {
        flushAll(sink: sink)
        assert(isEmpty && !isWriting, "frames for \(channel.name) overtake others")
        chosen.removeAll(keepingCapacity: true)
        for (position, subscription) in channel.subscriptions.enumerated()
        where subscription.connection != publication.excluded && subscription.ticket <= cutoff
            && !publication.audience.isDisjoint(with: subscription.audience)
        {
            chosen.append(unsafe channel.slots[position])
        }
        if chosen.isEmpty { return 0 }
        unsafe frame.withUnsafeBytes { frames in
            unsafe chosen.withUnsafeBufferPointer {
                unsafe sink.deliver(frames, to: $0, latestOnly: UnsafeBufferPointer(start: nil, count: 0))
            }
        }
        return UInt64(chosen.count)
    }
}

/// A frame that waits for the end of the turn.
struct WaitingFrame: BitwiseCopyable {
    /// Bytes of the turn from `start` to `end`.
    let start: Int
    let end: Int
    /// Slot to skip.
    let excluded: UInt32
    /// See `LatestOnlyFrame`; 0: none.
    let line: UInt32
    /// The channel's next frame.
    var next = Gathering.nobody
}
