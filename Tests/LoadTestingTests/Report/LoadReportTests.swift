import Foundation
import LoadTesting
import Testing

@Suite("Load reports")
struct LoadReportTests {
    @Test("a report survives its own file format")
    func roundTrip() throws {
        var report = LoadReport(
            scenario: "fanout", target: "ws://127.0.0.1:6001", dialect: "pusher", started: "2026-11-22T03:00:00Z", seconds: 1.5)
        report.settings = [.init("connections", "1000")]
        report.figures = [.init("deliveries", 1_000_000), .init("server CPU per delivery", 0.41, "us")]
        report.latencies = [
            .init(
                name: "publish to delivery", count: 3, minimum: 1, mean: 2, maximum: 3, percentiles: [.init(percent: 100, microseconds: 3)])
        ]
        report.timelines = [.init(name: "deliveries", unit: "1/s", secondsPerPoint: 1, points: [1, 2])]
        report.warnings = ["the client was busy"]
        let file = try JSONEncoder().encode(report)
        #expect(try JSONDecoder().decode(LoadReport.self, from: file) == report)
    }
}
