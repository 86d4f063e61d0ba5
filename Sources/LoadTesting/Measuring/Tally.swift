/// A sort of event or duration that a scenario distinguishes.
package struct MeasuredKind: Sendable {
    /// Name in the report.
    package var name: String
    /// Number of sequences of this kind (publishers' connections, senders); 0: order and completeness are not checked.
    package var streams: Int

    package init(_ name: String, streams: Int = 0) {
        self.name = name
        self.streams = streams
    }
}

/// Counts of one kind.
package struct KindCounts: Sendable {
    /// All events received, warm-up included.
    package var received: UInt64 = 0
    /// Events due within the measured time, included in `received`.
    package var measured: UInt64 = 0
    /// Sequence numbers skipped, including those that arrived late.
    package var skipped: UInt64 = 0
    package var late: UInt64 = 0
    package var duplicated: UInt64 = 0
    /// Events of a sequence that does not exist.
    package var foreign: UInt64 = 0

    package init() {}

    /// Events that never arrived, as far as later ones show.
    package var lost: UInt64 { skipped - late }

    package mutating func add(_ other: KindCounts) {
        received += other.received
        measured += other.measured
        skipped += other.skipped
        late += other.late
        duplicated += other.duplicated
        foreign += other.foreign
    }
}

/// One worker's receptions by kind: counts, latencies, and every connection's place in every sequence.
@safe struct Tally {
    private(set) var counts: [KindCounts]
    /// Latencies since the last `takeLatencies`.
    private var latencies: [Latencies]
    /// Where there are several addresses, their own events received, and latencies since the last `takeApart`: kinds of the first, then of
    /// the next. They lack what belongs to no address.
    private(set) var receivedApart: [UInt64]
    private var latenciesApart: [Latencies]
    private let firstSequence: [Int]
    private let streams: [Int]
    /// Number of sequences per connection.
    private let perLink: Int
    private var windows: UnsafeMutablePointer<SequenceWindow>
    private var slots: Int
    /// Due times that count into the latencies, in nanoseconds.
    var measured: Range<UInt64> = .max ..< .max

    init(kinds: [MeasuredKind], slots: Int, nodes: Int = 1) {
        let apart = nodes > 1 ? nodes * kinds.count : 0
        receivedApart = Array(repeating: 0, count: apart)
        latenciesApart = Array(repeating: Latencies(), count: apart)
        counts = kinds.map { _ in KindCounts() }
        latencies = kinds.map { _ in Latencies() }
        streams = kinds.map(\.streams)
        var first: [Int] = []
        var total = 0
        for kind in kinds {
            first.append(total)
            total += kind.streams
        }
        firstSequence = first
        perLink = total
        self.slots = slots
        unsafe windows = .allocate(capacity: max(1, slots * total))
        unsafe windows.initialize(repeating: SequenceWindow(), count: slots * total)
    }

    mutating func free() {
        unsafe windows.deallocate()
    }

    mutating func grow(slots: Int) {
        let larger = UnsafeMutablePointer<SequenceWindow>.allocate(capacity: max(1, slots * perLink))
        unsafe larger.moveInitialize(from: windows, count: self.slots * perLink)
        unsafe (larger + self.slots * perLink).initialize(repeating: SequenceWindow(), count: (slots - self.slots) * perLink)
        unsafe windows.deallocate()
        unsafe windows = larger
        self.slots = slots
    }

    /// Resets a slot for a new connection.
    mutating func begin(_ slot: Int, hearsAll: Bool) {
        for place in slot * perLink..<(slot + 1) * perLink {
            unsafe windows[place] = hearsAll ? SequenceWindow() : .fromFirstArrival
        }
    }

    @inline(__always)
    mutating func take(_ mark: EventMark, slot: Int, now: UInt64, node: Int = 0) {
        let kind = mark.kind
        guard kind < counts.count else { return }
        counts[kind].received += 1
        if measured.contains(mark.due) {
            counts[kind].measured += 1
            latencies[kind].record(from: mark.due, to: now)
        }
        if !receivedApart.isEmpty { takeApart(kind, from: mark.due, to: now, node: node) }
        guard streams[kind] > 0 else { return }
        guard mark.stream < streams[kind] else {
            counts[kind].foreign += 1
            return
        }
        switch unsafe windows[slot * perLink + firstSequence[kind] + mark.stream].take(mark.sequence) {
        case .inOrder: break
        case .gap(let count): counts[kind].skipped += UInt64(count)
        case .late: counts[kind].late += 1
        case .duplicate: counts[kind].duplicated += 1
        }
    }

    private mutating func takeApart(_ kind: Int, from due: UInt64, to end: UInt64, node: Int) {
        let place = node * counts.count + kind
        receivedApart[place] += 1
        if measured.contains(due) { latenciesApart[place].record(from: due, to: end) }
    }

    /// Records a duration that did not come from a mark.
    /// - Parameter node: its address; nil: it belongs to none.
    mutating func record(_ kind: Int, from due: UInt64, to end: UInt64, node: Int? = nil) {
        counts[kind].received += 1
        if let node, !receivedApart.isEmpty { takeApart(kind, from: due, to: end, node: node) }
        guard measured.contains(due) else { return }
        counts[kind].measured += 1
        latencies[kind].record(from: due, to: end)
    }

    /// Events missing at the ends of a connection's sequences. A sequence that never began counts none.
    /// - Parameter ends: next sequence by stream, from `firstStream` on.
    func missing(_ slot: Int, kind: Int, ends: [UInt32], firstStream: Int) -> UInt64 {
        var missing: UInt64 = 0
        for (place, end) in ends.enumerated() where firstStream + place < streams[kind] {
            let window = unsafe windows[slot * perLink + firstSequence[kind] + firstStream + place]
            if window.hasBegun, end > window.next { missing += UInt64(end - window.next) }
        }
        return missing
    }

    mutating func takeLatencies() -> [Latencies] {
        let taken = latencies
        for kind in latencies.indices { latencies[kind].reset() }
        return taken
    }

    mutating func takeApart() -> [Latencies] {
        let taken = latenciesApart
        for place in latenciesApart.indices { latenciesApart[place].reset() }
        return taken
    }
}
