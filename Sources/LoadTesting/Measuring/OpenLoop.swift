/// A constant rate: the n-th is due at its time whether or not earlier ones have finished.
///
/// Latencies count from `due`. If a server stalls for a second, everything that fell due meanwhile therefore shows the delay. A client that
/// waits for answers would simply have asked less (coordinated omission).
package struct OpenLoop: Sendable {
    private let start: UInt64
    private let interval: Double
    /// Number of due times taken.
    package private(set) var taken: UInt64 = 0

    /// - Parameters:
    ///   - rate: per second, above 0.
    ///   - start: due time of the first, in nanoseconds.
    package init(rate: Double, start: UInt64) {
        precondition(rate > 0, "a rate is above 0, not \(rate)")
        self.start = start
        interval = 1e9 / rate
    }

    /// When the next one is due.
    package var nextDue: UInt64 { start + UInt64(Double(taken) * interval) }

    /// Number of due times not taken yet.
    package func waiting(now: UInt64) -> UInt64 {
        guard now >= start else { return 0 }
        let due = UInt64(Double(now - start) / interval) + 1
        return due > taken ? due - taken : 0
    }

    /// Takes the oldest due time; nil: none is due.
    package mutating func take(now: UInt64) -> UInt64? {
        let due = nextDue
        guard due <= now else { return nil }
        taken += 1
        return due
    }
}
