/// A report as one self-contained HTML file: no network, no script, plots as inline SVG.
package enum ReportPage {
    package static func html(_ report: LoadReport) -> String {
        html(ReportSet(title: "\(report.scenario): \(report.target)", reports: [report]))
    }

    package static func html(_ set: ReportSet) -> String {
        let groups = set.groups
        let servers = ordered(groups.flatMap(\.servers).map(\.name), by: { $0 }).map(\.0)
        let body =
            [heading(set), warnings(set.allWarnings), targets(set)]
            + groups.map { GroupSection(group: $0, servers: servers, isAlone: groups.count == 1).markup }
            + [settings(set.reports), machine(set.reports)]
        let head = Markup.joined([
            .void("meta", ["charset": "utf-8"]),
            .void("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"]),
            // Enforces the promise: nothing is loaded and nothing runs, whatever the content.
            .void("meta", ["http-equiv": "Content-Security-Policy", "content": "default-src 'none'; style-src 'unsafe-inline'"]),
            .leaf("title", set.title), .style(PageStyle.sheet),
        ])
        let page = Markup.element(
            "html", ["lang": "en"], [.element("head", [:], [head]), .element("body", [:], [.element("main", [:], body)])])
        return "<!DOCTYPE html>\n\(page.source)\n"
    }

    private static func heading(_ set: ReportSet) -> Markup {
        let first = set.reports.map(\.started).min() ?? ""
        let seconds = set.reports.map(\.seconds).reduce(0, +)
        let runs = set.reports.count == 1 ? "one run" : "\(set.reports.count) runs"
        return .joined([
            .leaf("h1", set.title),
            .leaf("p", ["class": "soft"], "Begun \(first); \(runs), \(NumberText.duration(microseconds: seconds * 1_000_000)) measured"),
        ])
    }

    private static func warnings(_ warnings: [String]) -> Markup {
        guard !warnings.isEmpty else {
            return .nothing
        }
        return .element(
            "div", ["class": "warnings"],
            [.leaf("strong", "What makes these figures doubtful"), .element("ul", [:], warnings.map { .leaf("li", $0) })])
    }

    private static func targets(_ set: ReportSet) -> Markup {
        guard !set.targets.isEmpty else {
            return .nothing
        }
        let rows = set.targets.map { target -> [Cell] in
            guard let outcome = set.outcome(of: target) else {
                return [.text(target.name), .number("not measured"), .number(target.bound), .number("")]
            }
            return [
                .text(target.name), .number(outcome.ratio.text()), .number(target.bound), outcome.isMet.map(Cell.verdict) ?? .number(""),
            ]
        }
        return .joined([
            .leaf("h2", "Targets"),
            .leaf("p", ["class": "soft"], "Ratios of the same round; median, lowest and highest."),
            table([.text("What"), .number("Ratio"), .number("Target"), .number("")], rows),
        ])
    }

    /// The settings common to all runs, and a count for each differing one.
    private static func settings(_ reports: [LoadReport]) -> Markup {
        list("Settings", reports.map(\.settings))
    }

    private static func machine(_ reports: [LoadReport]) -> Markup {
        list("Machine", reports.map(\.machine))
    }

    private static func list(_ title: String, _ runs: [[LoadReport.Setting]]) -> Markup {
        let rows = ordered(runs.flatMap(\.self), by: \.name).map { name, those -> [Cell] in
            let values = ordered(those.map(\.value), by: { $0 }).map(\.0)
            return [.text(name), .text(values.prefix(valuesMax).joined(separator: ", ") + (values.count > valuesMax ? ", …" : ""))]
        }
        return rows.isEmpty ? .nothing : .joined([.leaf("h2", title), table([.text("Name"), .text("Value")], rows)])
    }

    /// Maximum of listed values per setting.
    private static let valuesMax = 8

    enum Cell {
        case text(String)
        case number(String)
        case verdict(Bool)
        /// Microseconds: the median, and the range below it.
        case spread(Spread?)

        func markup(_ name: StaticString) -> Markup {
            switch self {
            case .text(let text): .leaf(name, ["class": "text"], text)
            case .number(let text): .leaf(name, ["class": "number"], text)
            case .verdict(let isMet): .leaf(name, ["class": isMet ? "number good" : "number bad"], isMet ? "met" : "missed")
            case .spread(let spread): .element(name, ["class": "number"], spread.map(Self.lines) ?? [.text("–")])
            }
        }

        private static func lines(_ spread: Spread) -> [Markup] {
            let texts = [spread.median, spread.lowest, spread.highest].map { NumberText.duration(microseconds: $0) }
            return [.text(texts[0])] + (Set(texts).count == 1 ? [] : [.leaf("div", ["class": "range"], "\(texts[1]) to \(texts[2])")])
        }
    }

    static func table(_ head: [Cell], _ rows: [[Cell]]) -> Markup {
        .element(
            "div", ["class": "wide"],
            [
                .element(
                    "table", [:],
                    [
                        .element("thead", [:], [.element("tr", [:], head.map { $0.markup("th") })]),
                        .element("tbody", [:], rows.map { row in .element("tr", [:], row.map { $0.markup("td") }) }),
                    ])
            ])
    }
}
