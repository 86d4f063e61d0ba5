import Foundation
import LoadTesting

/// Shows what a run came to, and writes its files.
enum Results {
    static func write(_ outcome: Outcome, json: String?, html: String?) throws(LoadError) {
        let report = outcome.report
        var lines = ["\(report.scenario) of \(report.target) for \(decimal(report.seconds)) s"]
        for figure in report.figures { lines.append("  \(figure.name): \(decimal(figure.value)) \(figure.unit)") }
        for latency in report.latencies {
            let shown = latency.percentiles.filter { [50, 90, 99, 99.9, 100].contains($0.percent) }
            lines.append("  \(latency.name), us: " + shown.map { "p\(decimal($0.percent)) \($0.microseconds)" }.joined(separator: "  "))
        }
        for warning in report.warnings { lines.append("Warning: \(warning)") }
        for failure in outcome.failures { lines.append("FAILED: \(failure)") }
        print(lines.joined(separator: "\n"))
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            do {
                try encoder.encode(report).write(to: URL(fileURLWithPath: json))
            } catch {
                throw LoadError("\(json) could not be written: \(error.localizedDescription)")
            }
        }
    }
}
