import Foundation
import LoadTesting

/// Reports as runs give them, with whatever text a test wants in them.
enum ReportSamples {
    static func latency(_ name: String, scale: Double, count: UInt64 = 100_000) -> LoadReport.Latency {
        let percents: [(Double, Double)] = [
            (10, 0.5), (25, 0.8), (50, 1), (75, 1.4), (90, 2), (95, 2.6), (99, 5), (99.9, 12), (99.99, 30), (100, 60),
        ]
        return .init(
            name: name, count: count, minimum: UInt64(scale * 0.3), mean: scale * 1.2, maximum: UInt64(scale * 60),
            percentiles: percents.map { .init(percent: $0, microseconds: UInt64($1 * scale)) })
    }

    static func report(
        scenario: String = "fanout", target: String = "ws://127.0.0.1:6001", dialect: String = "pusher", scale: Double = 400
    ) -> LoadReport {
        var report = LoadReport(scenario: scenario, target: target, dialect: dialect, started: "2026-11-22T03:00:00Z", seconds: 10)
        report.settings = [.init("connections", "1000"), .init("message bytes", "128")]
        report.machine = [.init("cores", "4"), .init("kernel", "6.1.0")]
        report.figures = [
            .init("deliveries", 1_234_567), .init("server CPU per delivery", scale / 1_000, "us"), .init("lost", 0),
        ]
        report.latencies = [latency("publish to delivery", scale: scale)]
        report.timelines = [
            .init(
                name: "deliveries", unit: "1/s", secondsPerPoint: 1,
                points: (0..<10).map { 120_000 + 9_000 * sin(Double($0)) - scale * 20 })
        ]
        return report
    }

    /// Three servers, three rounds each.
    static func comparison() -> ReportSet {
        let scales = [("tandem", 410.0), ("floor-join", 380.0), ("nchan", 4_300.0)]
        var reports: [LoadReport] = []
        for round in 0..<3 {
            for (name, scale) in scales {
                for scenario in ["fan-out, 1 outstanding", "fan-out, 16 outstanding"] {
                    let report = report(
                        scenario: scenario, target: "ws://127.0.0.1:\(6_000 + round)", dialect: name,
                        scale: scale * (1 + Double(round) * 0.04))
                    reports.append(report)
                }
            }
        }
        return ReportSet(
            title: "Servers beside each other", reports: reports,
            targets: [
                .init(
                    name: "CPU per delivery", scenario: "fan-out, 16 outstanding", figure: "server CPU per delivery", server: "tandem",
                    base: "floor-join", atMost: 1.15),
                .init(
                    name: "a sixth of nchan", scenario: "fan-out, 16 outstanding", figure: "server CPU per delivery", server: "tandem",
                    base: "nchan", atMost: 0.05),
                .init(
                    name: "unknown", scenario: "storm", figure: "accepted", server: "tandem", base: "floor", atLeast: 0.5),
            ], warnings: ["other work took 12 % of the machine"])
    }
}
