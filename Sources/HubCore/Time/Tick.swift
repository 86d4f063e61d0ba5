/// Moments at which all tasks wake that look for something again and again. They share a wake of the machine, which costs more than most
/// looks.
package enum Tick {
    private static let began = ContinuousClock.now
    /// Milliseconds that two looks of neighbouring ticks may be closer than a period: the first of them began late.
    package static let lateMax: Int64 = 50

    /// Waits until the next period of this length, in whole milliseconds, begins. A task that was late waits for less.
    /// - Throws: `CancellationError`.
    package static func wait(_ period: Duration) async throws {
        let began = began
        try await Task.sleep(until: next(period, at: .now, since: began), clock: .continuous)
    }

    /// The beginning of the period after the one that `now` is in.
    package static func next(
        _ period: Duration, at now: ContinuousClock.Instant, since began: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        let length = period.milliseconds
        precondition(now >= began && length > 0, "ticks of \(period)")
        return began + .milliseconds(((now - began).milliseconds / length + 1) * length)
    }
}
