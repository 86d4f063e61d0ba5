/// Stretches of time in which the hub itself was late, and which no wait counts.
///
/// A busy hub is not an absent participant. A client cannot confirm an event before the hub has let the client in, written the event and
/// read the answer. While the hub is behind with that work, silence proves nothing.
///
/// A plain value without a clock of its own.
package struct Lateness: Sendable {
    /// Disjoint and ascending, in milliseconds.
    private var stretches: [(from: Int64, until: Int64)] = []

    /// Milliseconds of a delay that is normal on a machine that does several things.
    package static let leastMilliseconds: Int64 = 50
    /// Most milliseconds by which a wait is stretched; no wait is stretched by more than itself either.
    package static let creditMax: Int64 = 5_000
    /// Most stretches that are kept; older ones no longer count. An event that waits for so long has its full credit already.
    private static let countMax = 256

    /// Without any delay.
    package init() {}

    /// For tests: number of kept stretches.
    package var count: Int { stretches.count }

    /// Notes that work which should have been immediate took from one moment to the other. Only what exceeds the normal delay counts:
    /// a hub whose every turn takes a little long is not late all the time.
    /// - Parameters:
    ///   - from: milliseconds on a clock that only grows, as all times here.
    ///   - least: normal delay, which is not counted, in milliseconds.
    package mutating func note(from: Int64, until: Int64, least: Int64 = Lateness.leastMilliseconds) {
        guard until - from > least else { return }
        // A later note ends later, or in the same turn, so it can only swallow the last stretches.
        var merged = (from: from + least, until: until)
        while let last = stretches.last, last.until >= merged.from {
            merged = (min(last.from, merged.from), max(last.until, merged.until))
            stretches.removeLast()
        }
        stretches.append(merged)
        if stretches.count > Self.countMax { stretches.removeFirst() }
    }

    /// Milliseconds of lateness between two moments.
    package func milliseconds(from: Int64, until: Int64) -> Int64 {
        var sum: Int64 = 0
        for stretch in stretches.reversed() {
            if stretch.until <= from { break }
            sum += max(0, min(stretch.until, until) - max(stretch.from, from))
        }
        return sum
    }

    /// Milliseconds by which a wait that began at `from` is stretched.
    /// - Parameter wait: in milliseconds.
    func credit(for wait: Int64, from: Int64, until: Int64) -> Int64 {
        min(milliseconds(from: from, until: until), wait, Self.creditMax)
    }
}
