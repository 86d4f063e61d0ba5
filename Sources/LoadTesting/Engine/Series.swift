/// A run's values second by second, in at most `pointsMax` points.
struct Series {
    private struct Point {
        var span: Double
        var rate: Double
        var p50: Double
        var p99: Double
        var maximum: Double
        var open: Double
        var residentBytes: Double
        var descriptors: Double
        var cpu: Double
    }

    /// The series is halved at twice this number, so that a soak of days stays readable.
    private static let pointsMax = 1800
    /// A slope over a shorter time is meaningless.
    private static let slopeSecondsMin = 60.0
    /// The first part of a run, in which the server's memory settles.
    private static let settlingShare = 0.2
    /// Share of the server's memory per hour; slower growth is called steady.
    private static let steadyShare = 0.01

    private var points: [Point] = []
    /// Number of samples joined per point, and the samples of the current point.
    private var stride = 1
    private var joining: [Point] = []
    private var seconds = 0.0

    mutating func add(span: Double, rate: Double, latency: Latencies, open: Int, server: ServerUse?, serverCPU: Double?) {
        // The rest of a second before the first whole one is too short for a sample.
        guard span > 0.5 else { return }
        joining.append(
            Point(
                span: span, rate: rate, p50: Double(latency.percentile(50)) / 1000, p99: Double(latency.percentile(99)) / 1000,
                maximum: Double(latency.maximum) / 1000, open: Double(open), residentBytes: server?.residentBytes ?? 0,
                descriptors: Double(server?.descriptors ?? 0), cpu: serverCPU ?? 0))
        seconds += span
        guard joining.count == stride else { return }
        points.append(Self.join(joining))
        joining.removeAll()
        if points.count >= Self.pointsMax * 2 {
            points = Swift.stride(from: 0, to: points.count - 1, by: 2).map { Self.join(Array(points[$0...$0 + 1])) }
            stride *= 2
        }
    }

    /// Averages rates and sizes; keeps the worst latency, which readers look for.
    private static func join(_ parts: [Point]) -> Point {
        let span = parts.reduce(0) { $0 + $1.span }
        func mean(_ value: (Point) -> Double) -> Double { parts.reduce(0) { $0 + value($1) * $1.span } / span }
        func worst(_ value: (Point) -> Double) -> Double { parts.map(value).max() ?? 0 }
        return Point(
            span: span, rate: mean { $0.rate }, p50: mean { $0.p50 }, p99: worst { $0.p99 }, maximum: worst { $0.maximum },
            open: mean { $0.open }, residentBytes: mean { $0.residentBytes }, descriptors: worst { $0.descriptors }, cpu: mean { $0.cpu })
    }

    func fill(_ report: inout LoadReport, hasServer: Bool) {
        guard !points.isEmpty else { return }
        let spacing = points.reduce(0) { $0 + $1.span } / Double(points.count)
        func add(_ name: String, _ unit: String, _ value: (Point) -> Double) {
            let values = points.map { (value($0) * 1000).rounded() / 1000 }
            report.timelines.append(.init(name: name, unit: unit, secondsPerPoint: spacing, points: values))
        }
        add("deliveries", "1/s") { $0.rate }
        add("latency, p50", "ms") { $0.p50 }
        add("latency, p99", "ms") { $0.p99 }
        add("latency, highest", "ms") { $0.maximum }
        add("connections", "") { $0.open }
        guard hasServer else { return }
        add("server memory", "MB") { $0.residentBytes / 1e6 }
        add("server descriptors", "") { $0.descriptors }
        add("server CPU", "%") { $0.cpu }
        fillSlopes(&report)
    }

    private func fillSlopes(_ report: inout LoadReport) {
        guard seconds >= Self.slopeSecondsMin else { return }
        var at = 0.0
        var memory: [(place: Double, value: Double)] = []
        var descriptors: [(place: Double, value: Double)] = []
        for point in points {
            at += point.span
            guard at > seconds * Self.settlingShare else { continue }
            memory.append((at / 3600, point.residentBytes / 1e6))
            descriptors.append((at / 3600, point.descriptors))
        }
        guard let slope = Slope(memory), let held = Slope(descriptors), let first = memory.first, let last = memory.last else { return }
        report.figures.append(.init("server memory slope", slope.perUnit, "MB/h"))
        report.figures.append(.init("server memory slope, standard error", slope.standardError, "MB/h"))
        report.figures.append(.init("server memory, first to last", last.value - first.value, "MB"))
        report.figures.append(.init("server descriptors slope", held.perUnit, "1/h"))
        if slope.perUnit > 3 * slope.standardError, slope.perUnit > last.value * Self.steadyShare {
            report.warnings.append(
                "The server's memory grew by \(decimal(slope.perUnit)) MB an hour (+- \(decimal(slope.standardError))), measured over "
                    + "\(decimal((seconds / 60).rounded())) minutes: run it longer to see whether it goes on.")
        }
    }
}
