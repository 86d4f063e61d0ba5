/// The arrivals of one numbered sequence at one receiver. Finds lost, duplicated and reordered events. Eight bytes.
package struct SequenceWindow: Sendable, Equatable {
    /// The classification of one arrival.
    package enum Finding: Sendable, Equatable {
        case inOrder
        /// The number of missing ones before it; they count as lost until they arrive.
        case gap(UInt32)
        /// It had counted as lost.
        case late
        /// It had arrived before, or it is late by more than `remembered`, which looks the same.
        case duplicate
    }

    /// How far back a late arrival is recognised.
    package static let remembered: UInt32 = 31
    /// The sequence begins with its first arrival: for receivers that join in its middle.
    package static let fromFirstArrival = SequenceWindow(next: .max)

    /// The next sequence in order.
    package private(set) var next: UInt32
    /// Bit i: `next - 1 - i` is missing.
    private var missing: UInt32 = 0

    package init(next: UInt32 = 0) {
        self.next = next
    }

    package var hasBegun: Bool { next != .max }

    package mutating func take(_ sequence: UInt32) -> Finding {
        if sequence == next {
            next &+= 1
            missing <<= 1
            return .inOrder
        }
        guard hasBegun else {
            next = sequence &+ 1
            missing = 0
            return .inOrder
        }
        if sequence > next {
            let gap = sequence - next
            let shift = gap + 1
            missing = shift > Self.remembered ? .max << 1 : (missing << shift) | ((1 << shift) - 2)
            next = sequence &+ 1
            return .gap(gap)
        }
        let back = next - 1 - sequence
        guard back <= Self.remembered, missing >> back & 1 == 1 else { return .duplicate }
        missing &= ~(1 << back)
        return .late
    }
}
