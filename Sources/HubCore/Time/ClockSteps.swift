/// Tells when somebody has set the wall clock: it and the monotonic clock have then not moved by the same.
///
/// A value without I/O. An owner of wall-clock times in memory looks before reading them, and moves them by the step. So a push that was to
/// wait for ten minutes waits for ten minutes. Only `Outbox` logs a step.
package struct ClockSteps: Equatable, Sendable {
    /// One setting of the wall clock, as two readings of the same moment.
    package struct Step: Equatable, Sendable {
        /// How the wall clock would stand without the step, in milliseconds since 1970.
        package let from: Int64
        /// How it stands.
        package let to: Int64

        /// Both in milliseconds since 1970.
        package init(from: Int64, to: Int64) {
            self.from = from
            self.to = to
        }

        /// Milliseconds by which it was set; negative: back.
        package var milliseconds: Int64 { to - from }
    }

    /// Less is none: clocks are slewed, and a machine is busy between two readings.
    package static let leastMilliseconds: Int64 = 2_000
    /// Readings that lie further apart than this say nothing, in nanoseconds: the process stood still between them.
    static let readingMax: UInt64 = 100_000_000

    /// How far the wall clock is ahead of the monotonic one, at the last look.
    private var lead: Int64?

    /// No look yet.
    package init() {}

    /// How the wall clock would stand since the last look if nobody had set it, in milliseconds since 1970; nil before the first look.
    package func wall(at monotonic: UInt64) -> Int64? { lead.map { $0 + Int64(clamping: monotonic / 1_000_000) } }

    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - monotonic: nanoseconds of the monotonic clock.
    /// - Returns: the step since the last look; nil: there was none, or this is the first look.
    package mutating func look(wall: Int64, monotonic: UInt64) -> Step? {
        let lead = wall - Int64(clamping: monotonic / 1_000_000)
        defer { self.lead = lead }
        guard let last = self.lead, abs(lead - last) >= Self.leastMilliseconds else { return nil }
        return Step(from: wall - (lead - last), to: wall)
    }

    /// Looks at the clocks as they are.
    package mutating func look(_ time: any TimeSource) -> Step? {
        let before = time.monotonicNanoseconds
        let wall = time.wallMilliseconds
        let after = time.monotonicNanoseconds
        assert(after >= before, "the monotonic clock went back from \(before) to \(after) ns")
        return after - before > Self.readingMax ? nil : look(wall: wall, monotonic: after)
    }
}
