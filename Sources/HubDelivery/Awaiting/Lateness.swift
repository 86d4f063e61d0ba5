/// When the hub itself was late: stretches of time that do not count against anybody's wait.
///
/// A busy hub is not an absent person. Whoever reads their socket cannot confirm an event before the hub has written it, let them in and
/// looked at their answer; so as long as the hub is behind with that, nobody's silence says anything. A plain value over a clock that is
/// passed in.
package struct Lateness: Sendable {
    /// Disjoint and ascending, in milliseconds.
    private var stretches: [(from: Int64, until: Int64)] = []

    /// A delay up to this is the ordinary pace of a machine that does several things, in milliseconds.
    package static let leastMilliseconds: Int64 = 50
    /// No wait is stretched by more than itself, nor by more than this, in milliseconds.
    package static let creditMax: Int64 = 5_000
    /// Stretches that are remembered; older ones count no more. Events that wait for longer have all they need.
    private static let countMax = 256

    package init() {}

    /// For tests: how many stretches are remembered.
    package var count: Int { stretches.count }

    /// Something took from one moment to the other that should have been done at once; short delays are none.
    /// - Parameters:
    ///   - from: in milliseconds on a clock that only grows, as all times here.
    ///   - least: what is no delay.
    package mutating func note(from: Int64, until: Int64, least: Int64 = Lateness.leastMilliseconds) {
        guard until - from > least else { return }
        // What is noted later ends later, or in the same turn: it can only swallow the last ones.
        var merged = (from: from, until: until)
        while let last = stretches.last, last.until >= merged.from {
            merged = (min(last.from, merged.from), max(last.until, merged.until))
            stretches.removeLast()
        }
        stretches.append(merged)
        if stretches.count > Self.countMax { stretches.removeFirst() }
    }

    /// Milliseconds of the time between two moments in which the hub was late.
    package func milliseconds(from: Int64, until: Int64) -> Int64 {
        var sum: Int64 = 0
        for stretch in stretches.reversed() {
            if stretch.until <= from { break }
            sum += max(0, min(stretch.until, until) - max(stretch.from, from))
        }
        return sum
    }

    /// By how much a wait that began at `from` is stretched.
    /// - Parameter wait: in milliseconds.
    func credit(for wait: Int64, from: Int64, until: Int64) -> Int64 {
        min(milliseconds(from: from, until: until), wait, Self.creditMax)
    }
}
