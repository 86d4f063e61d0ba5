internal import Histogram

/// A distribution of durations, three digits exact from a microsecond to an hour (HdrHistogram).
package struct Latencies: Sendable {
    /// Upper bound of the distribution; longer durations count as this.
    private static let microsecondsMax: UInt64 = 3_600_000_000
    /// Percentiles of the report, rising to the maximum.
    private static let reported: [Double] = [
        1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97, 98, 99, 99.5, 99.9, 99.95, 99.99, 99.999, 100,
    ]

    private var histogram = Histogram<UInt64>(highestTrackableValue: microsecondsMax, numberOfSignificantValueDigits: .three)

    package init() {}

    package var count: UInt64 { histogram.totalCount }
    /// Microseconds; 0 if there are none.
    package var maximum: UInt64 { count == 0 ? 0 : histogram.maxRecorded }

    /// - Parameters: nanoseconds of one clock; a negative duration counts as 0.
    @inline(__always)
    package mutating func record(from due: UInt64, to end: UInt64) {
        let microseconds = end > due ? (end - due) / 1000 : 0
        histogram.record(microseconds < Self.microsecondsMax ? microseconds : Self.microsecondsMax)
    }

    package mutating func add(_ other: Latencies) {
        if other.count > 0 { histogram.add(other.histogram) }
    }

    package mutating func reset() {
        if count > 0 { histogram.reset() }
    }

    /// Microseconds that so many percent do not exceed; 0 if there are none.
    package func percentile(_ percent: Double) -> UInt64 {
        count == 0 ? 0 : min(histogram.valueAtPercentile(percent), histogram.maxRecorded)
    }

    package func report(as name: String) -> LoadReport.Latency {
        LoadReport.Latency(
            name: name, count: count, minimum: count == 0 ? 0 : histogram.min, mean: count == 0 ? 0 : histogram.mean, maximum: maximum,
            percentiles: count == 0 ? [] : Self.reported.map { .init(percent: $0, microseconds: percentile($0)) })
    }
}
