/// One reading of both clocks, for values that get the time passed in.
package struct Moment: Sendable, Hashable {
    /// Milliseconds on a clock that only grows; its zero has no meaning.
    package var monotonic: Int64
    /// Milliseconds since 1970.
    package var wall: Int64

    /// Both readings in milliseconds.
    package init(monotonic: Int64, wall: Int64) {
        self.monotonic = monotonic
        self.wall = wall
    }
}

extension TimeSource {
    /// Both clocks now. A pair of readings that lie far apart is read again, because the process stood still between them.
    package var moment: Moment {
        var before = monotonicNanoseconds
        for _ in 0..<3 {
            let wall = wallMilliseconds
            let after = monotonicNanoseconds
            if after - before <= ClockSteps.readingMax { return Moment(monotonic: Int64(clamping: after / 1_000_000), wall: wall) }
            before = after
        }
        return Moment(monotonic: Int64(clamping: before / 1_000_000), wall: wallMilliseconds)
    }
}
