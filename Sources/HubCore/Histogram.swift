/// How often something took how long, in buckets that never change: what metrics show of durations. A plain value, owned by one
/// thread; adding to it is a short search and three additions.
package struct Histogram: Sendable, Equatable {
    /// The longest duration of each bucket but the last, in nanoseconds: from a tenth of a millisecond, which a turn of a quiet loop
    /// stays below, to ten seconds, at which everything here has been given up.
    package static let bounds: [UInt64] = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000,
        500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    /// By bucket, not added up; the last one has no bound.
    package private(set) var counts = [UInt64](repeating: 0, count: Histogram.bounds.count + 1)
    /// Of all durations, in nanoseconds.
    package private(set) var sum: UInt64 = 0

    package init() {}

    package var count: UInt64 { counts.reduce(0, +) }

    package mutating func note(nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] += 1
        sum &+= nanoseconds
    }

    /// The place of the first of `bounds` that holds the duration. Written out, because looking into that array costs more than all
    /// comparisons.
    private static func bucket(of nanoseconds: UInt64) -> Int {
        switch nanoseconds {
        case ...100_000: 0
        case ...250_000: 1
        case ...500_000: 2
        case ...1_000_000: 3
        case ...2_500_000: 4
        case ...5_000_000: 5
        case ...10_000_000: 6
        case ...25_000_000: 7
        case ...50_000_000: 8
        case ...100_000_000: 9
        case ...250_000_000: 10
        case ...500_000_000: 11
        case ...1_000_000_000: 12
        case ...2_500_000_000: 13
        case ...5_000_000_000: 14
        case ...10_000_000_000: 15
        default: 16
        }
    }

    /// Adds what another thread has noted.
    package mutating func add(_ other: Histogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        sum &+= other.sum
    }
}
