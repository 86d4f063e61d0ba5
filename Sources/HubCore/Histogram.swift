/// Counts of durations in fixed buckets, for metrics. A plain value, owned by one thread. Noting a duration costs a
/// short search and two additions.
package struct Histogram: Sendable, Equatable {
    /// The upper bound of each bucket except the last, in nanoseconds. A turn of a quiet loop stays below the first,
    /// 0.1 ms. Everything measured here has been given up at the last, 10 s.
    package static let bounds: [UInt64] = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000,
        500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    /// Durations per bucket, not cumulative; the last bucket has no upper bound.
    package private(set) var counts = [UInt64](repeating: 0, count: Histogram.bounds.count + 1)
    /// Sum of all durations, in nanoseconds.
    package private(set) var sum: UInt64 = 0

    /// No durations.
    package init() {}

    /// The number of all durations.
    package var count: UInt64 { counts.reduce(0, +) }

    /// Counts one duration.
    package mutating func note(nanoseconds: UInt64) {
        let bucket = Self.bucket(of: nanoseconds)
        assert(
            (bucket == 0 || Self.bounds[bucket - 1] < nanoseconds) && (bucket == Self.bounds.count || nanoseconds <= Self.bounds[bucket]),
            "\(nanoseconds) ns do not belong into bucket \(bucket)")
        counts[bucket] += 1
        sum &+= nanoseconds
    }

    /// The index of the bucket for a duration. Written out, because reading `bounds` costs more than all comparisons.
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

    /// Adds another thread's histogram.
    package mutating func add(_ other: Histogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        sum &+= other.sum
    }
}
