/// What has arrived of one numbered sequence at one receiver: finds what is lost, comes twice, or comes out of order. Eight bytes.
package struct SequenceWindow: Sendable, Equatable {
    /// What one arrival says.
    package enum Finding: Sendable, Equatable {
        case inOrder
        /// So many before it have not come; they count as lost until they do.
        case gap(UInt32)
        /// One that counted as lost has come.
        case late
        /// It had come before; or it is late by more than `remembered`, which cannot be told from that.
        case duplicate
    }

    /// How far back a late arrival is recognised.
    package static let remembered: UInt32 = 31
    /// The sequence begins with whatever comes first: for receivers that join in its middle.
    package static let fromFirstArrival = SequenceWindow(next: .max)

    /// What would come next in order.
    package private(set) var next: UInt32
    /// Bit i: `next - 1 - i` has not come.
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
