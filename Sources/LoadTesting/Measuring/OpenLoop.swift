/// A constant rate that waits for nobody: the n-th is due at its time whether or not the ones before were done.
///
/// Latencies are counted from `due`. A server that stalls for a second therefore shows a second to everything that fell due meanwhile,
/// where a client that waits for answers would simply have asked less (coordinated omission).
package struct OpenLoop: Sendable {
    private let start: UInt64
    private let interval: Double
    /// How many were taken.
    package private(set) var taken: UInt64 = 0

    /// - Parameters:
    ///   - rate: per second, above 0.
    ///   - start: when the first is due, nanoseconds.
    package init(rate: Double, start: UInt64) {
        precondition(rate > 0, "a rate is above 0, not \(rate)")
        self.start = start
        interval = 1e9 / rate
    }

    /// When the next one is due.
    package var nextDue: UInt64 { start + UInt64(Double(taken) * interval) }

    /// How many are due by now and were not taken.
    package func waiting(now: UInt64) -> UInt64 {
        guard now >= start else { return 0 }
        let due = UInt64(Double(now - start) / interval) + 1
        return due > taken ? due - taken : 0
    }

    /// Takes the oldest that is due; nil: none is.
    package mutating func take(now: UInt64) -> UInt64? {
        let due = nextDue
        guard due <= now else { return nil }
        taken += 1
        return due
    }
}
