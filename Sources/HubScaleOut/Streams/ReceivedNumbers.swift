/// The last number of every node whose entries were read. Numbers tell doubles and gaps, whatever the ids of a stream say.
package struct ReceivedNumbers: Sendable {
    /// Verdict on an entry.
    package enum Verdict: Sendable, Equatable {
        case new
        /// Read before: appended again after a lost reply, or in a new epoch.
        case known
        /// New, and so many entries before it are missing.
        case gap(missing: UInt64)
    }

    /// Nodes that are remembered; the one that was silent for longest goes first.
    package static let originsMax = 4_096

    private var last: [UInt64: (number: UInt64, heard: UInt64)] = [:]
    private var heard: UInt64 = 0

    package init() {}

    package var count: Int { last.count }

    /// Judges an entry and remembers its number. The first one of a node may have any number.
    package mutating func take(_ number: UInt64, of origin: UInt64) -> Verdict {
        heard += 1
        guard let known = last[origin] else {
            if last.count >= Self.originsMax, let oldest = last.min(by: { $0.value.heard < $1.value.heard })?.key { last[oldest] = nil }
            last[origin] = (number, heard)
            return .new
        }
        guard number > known.number else {
            last[origin]?.heard = heard
            return .known
        }
        last[origin] = (number, heard)
        return number == known.number + 1 ? .new : .gap(missing: number - known.number - 1)
    }

    /// Forgets a node that is over.
    package mutating func forget(_ origin: UInt64) { last[origin] = nil }
}
