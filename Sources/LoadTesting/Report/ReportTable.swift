/// A report for a terminal: plain text in aligned columns. External control characters are replaced.
package enum ReportTable {
    package static func text(_ report: LoadReport) -> String {
        text(ReportSet(title: "\(report.scenario): \(report.target)", reports: [report]))
    }

    package static func text(_ set: ReportSet) -> String {
        var parts = [set.title]
        for group in set.groups {
            parts.append(group.scenario + "\n" + figures(group) + latencies(group))
        }
        if !set.targets.isEmpty {
            parts.append("targets, as ratios of the same round\n" + targets(set))
        }
        let warnings = set.allWarnings
        if !warnings.isEmpty {
            parts.append(warnings.map { "warning: \($0)" }.joined(separator: "\n") + "\n")
        }
        return printable(parts.joined(separator: "\n\n").replacing("\n\n\n", with: "\n\n"))
    }

    private static func figures(_ group: ReportSet.Group) -> String {
        let all = ordered(group.servers.flatMap { $0.rounds.flatMap(\.figures) }, by: \.name).compactMap { $0.1.first }
        guard !all.isEmpty else {
            return ""
        }
        // At most as many servers side by side as fit a terminal's line.
        let parts = stride(from: 0, to: group.servers.count, by: serversAbreast).map { first in
            let servers = group.servers[first..<min(first + serversAbreast, group.servers.count)]
            let rows = all.map { figure in
                [figure.unit.isEmpty ? figure.name : "\(figure.name), \(figure.unit)"]
                    + servers.map { Spread($0.values(of: figure.name))?.text() ?? "–" }
            }
            return aligned(group.servers.count == 1 ? rows : [[""] + servers.map(\.name)] + rows)
        }
        return parts.joined(separator: "\n")
    }

    private static let serversAbreast = 3

    private static func latencies(_ group: ReportSet.Group) -> String {
        let percents: [Double] = [50, 90, 99, 99.9, 100]
        var rows: [[String]] = []
        for name in ordered(group.servers.flatMap { $0.rounds.flatMap { $0.latencies.map(\.name) } }, by: { $0 }).map(\.0) {
            for server in group.servers {
                let rounds = server.rounds.flatMap { $0.latencies.filter { $0.name == name && $0.count > 0 } }
                guard let curve = LatencyCurve(rounds) else {
                    continue
                }
                rows.append(
                    [group.servers.count == 1 ? name : "\(name), \(server.name)", NumberText.plain(Double(curve.count))]
                        + percents.map { curve.spread(at: $0).map { NumberText.duration(microseconds: $0.median) } ?? "–" })
            }
        }
        let head = ["latency", "count"] + percents.map { $0 == 100 ? "max" : "\(NumberText.plain($0)) %" }
        return rows.isEmpty ? "" : "\n" + aligned([head] + rows)
    }

    private static func targets(_ set: ReportSet) -> String {
        aligned(
            set.targets.map { target in
                guard let outcome = set.outcome(of: target) else {
                    return [target.name, "not measured", target.bound, ""]
                }
                return [target.name, outcome.ratio.text(), target.bound, outcome.isMet.map { $0 ? "ok" : "MISSED" } ?? ""]
            })
    }

    /// The first column left-aligned, the rest right-aligned.
    private static func aligned(_ rows: [[String]]) -> String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return column == 0 ? cell + space : space + cell
            }
            var line = "  " + cells.joined(separator: "   ")
            while line.last == " " {
                line.removeLast()
            }
            return line + "\n"
        }.joined()
    }

    private static func printable(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control && scalar != "\n"
            result.unicodeScalars.append(isControl ? "\u{fffd}" : scalar)
        }
        return result
    }
}
