internal import HubCore

/// Tells when somebody has set the wall clock: it and the monotonic clock have then not moved by the same.
///
/// A value without I/O. Whoever keeps moments of the wall clock in memory owns one, looks before reading them, and moves them by what it
/// tells: a push that was to wait for ten minutes then waits for ten minutes. `Outbox` logs a step, and nobody else does.
struct ClockSteps: Equatable {
    struct Step: Equatable {
        /// How the wall clock would stand without the step, in milliseconds since 1970.
        let from: Int64
        /// How it stands.
        let to: Int64
        /// Milliseconds by which it was set; negative: back.
        var milliseconds: Int64 { to - from }
    }

    /// Less is none: clocks are slewed, and a machine is busy between two readings.
    static let leastMilliseconds: Int64 = 2_000
    /// Readings that lie further apart than this say nothing, in nanoseconds: the process stood still between them.
    private static let readingMax: UInt64 = 100_000_000

    /// How far the wall clock is ahead of the monotonic one, at the last look.
    private var lead: Int64?

    /// How the wall clock would stand since the last look if nobody had set it, in milliseconds since 1970; nil before the first look.
    func wall(at monotonic: UInt64) -> Int64? { lead.map { $0 + Int64(clamping: monotonic / 1_000_000) } }

    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - monotonic: nanoseconds of the monotonic clock.
    /// - Returns: the step since the last look; nil: there was none, or this is the first look.
    mutating func look(wall: Int64, monotonic: UInt64) -> Step? {
        let lead = wall - Int64(clamping: monotonic / 1_000_000)
        defer { self.lead = lead }
        guard let last = self.lead, abs(lead - last) >= Self.leastMilliseconds else { return nil }
        return Step(from: wall - (lead - last), to: wall)
    }

    /// Looks at the clocks as they are.
    mutating func look(_ time: any TimeSource) -> Step? {
        let before = time.monotonicNanoseconds
        let wall = time.wallMilliseconds
        let after = time.monotonicNanoseconds
        return after - before > Self.readingMax ? nil : look(wall: wall, monotonic: after)
    }
}
