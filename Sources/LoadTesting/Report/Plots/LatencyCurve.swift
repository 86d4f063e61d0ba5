/// A distribution over several rounds: per percentile the median, lowest and highest of the rounds.
struct LatencyCurve {
    struct Point: Equatable {
        var percent: Double
        var spread: Spread
    }

    var points: [Point]
    var rounds: Int
    /// Sum over all rounds.
    var count: UInt64
    /// Count of the largest round.
    var mostInRound: UInt64

    /// Nil without rounds.
    init?(_ rounds: [LoadReport.Latency]) {
        guard !rounds.isEmpty else {
            return nil
        }
        let percents = Set(rounds.flatMap { $0.percentiles.map(\.percent) } + [0, 100]).sorted()
        points = percents.compactMap { percent in
            Spread(rounds.map { Self.value(of: $0, at: percent) }).map { Point(percent: percent, spread: $0) }
        }
        self.rounds = rounds.count
        count = rounds.map(\.count).reduce(0, +)
        mostInRound = rounds.map(\.count).max() ?? 0
    }

    /// The spread at `percent`, or at the next higher percentile of the rounds.
    func spread(at percent: Double) -> Spread? {
        points.first { $0.percent >= percent }?.spread
    }

    private static func value(of round: LoadReport.Latency, at percent: Double) -> Double {
        guard percent > 0 else {
            return Double(round.minimum)
        }
        return Double(round.percentiles.first { $0.percent >= percent }?.microseconds ?? round.maximum)
    }
}
