internal import Mustache

/// A report as one self-contained HTML file: no network, no script, plots as inline SVG. `PageTemplate` reads the fields by their names.
package struct ReportPage {
    private var title: String
    private var summary: String
    private var warnings: [String]
    private var blocks: [PageBlock]

    /// - Throws: Mustache's error if the page's template is broken.
    package static func html(_ report: LoadReport) throws -> String {
        try html(ReportSet(title: "\(report.scenario): \(report.target)", reports: [report]))
    }

    /// - Throws: Mustache's error if the page's template is broken.
    package static func html(_ set: ReportSet) throws -> String {
        try PageTemplate.compiled.get().render(ReportPage(set))
    }

    private init(_ set: ReportSet) {
        let groups = set.groups
        let servers = ordered(groups.flatMap(\.servers).map(\.name), by: { $0 }).map(\.0)
        let runs = set.reports.count == 1 ? "one run" : "\(set.reports.count) runs"
        let measured = NumberText.duration(microseconds: set.reports.map(\.seconds).reduce(0, +) * 1_000_000)
        title = set.title
        summary = "Begun \(set.reports.map(\.started).min() ?? ""); \(runs), \(measured) measured"
        warnings = set.allWarnings
        blocks =
            Self.targets(set) + groups.flatMap { GroupSection(group: $0, servers: servers, isAlone: groups.count == 1).blocks }
            + Self.list("Settings", set.reports.map(\.settings)) + Self.list("Machine", set.reports.map(\.machine))
    }

    private static func targets(_ set: ReportSet) -> [PageBlock] {
        let rows = set.targets.map { target -> [PageBlock.Cell] in
            let outcome = set.outcome(of: target)
            let verdict = outcome?.isMet.map { PageBlock.Cell(text: $0 ? "met" : "missed", kind: $0 ? "number good" : "number bad") }
            return [
                .text(target.name), .number(outcome?.ratio.text() ?? "not measured"), .number(target.bound), verdict ?? .number(""),
            ]
        }
        return rows.isEmpty
            ? []
            : [
                PageBlock(
                    chapter: "Targets", note: "Ratios of the same round; median, lowest and highest.",
                    table: .init(head: [.text("Ratio of"), .number("Ratio"), .number("Target"), .number("")], rows: rows))
            ]
    }

    /// Maximum of listed values per setting.
    private static let valuesMax = 8

    /// Each name once, with its differing values.
    private static func list(_ title: String, _ runs: [[LoadReport.Setting]]) -> [PageBlock] {
        let rows = ordered(runs.flatMap(\.self), by: \.name).map { name, those -> [PageBlock.Cell] in
            let values = ordered(those.map(\.value), by: { $0 }).map(\.0)
            return [.text(name), .text(values.prefix(valuesMax).joined(separator: ", ") + (values.count > valuesMax ? ", …" : ""))]
        }
        return rows.isEmpty ? [] : [PageBlock(chapter: title, table: .init(head: [.text("Name"), .text("Value")], rows: rows))]
    }
}
