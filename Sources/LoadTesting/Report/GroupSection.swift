/// One scenario on the page: the figures, latencies and timelines of one or several servers.
struct GroupSection {
    var group: ReportSet.Group
    /// All servers of the page, so that each keeps its colour.
    var servers: [String]
    var isAlone: Bool

    /// Percentiles of the table; the plot shows all.
    private static let tablePercents: [Double] = [50, 90, 99, 99.9, 100]

    var markup: Markup {
        .joined(
            [isAlone && group.servers.count == 1 ? .nothing : .leaf("h2", group.scenario), figures]
                + names(group.servers.flatMap { $0.rounds.flatMap { $0.latencies.map(\.name) } }).map(latency)
                + names(group.servers.flatMap { $0.rounds.flatMap { $0.timelines.map(\.name) } }).map(timeline))
    }

    private func names(_ all: [String]) -> [String] {
        ordered(all, by: { $0 }).map(\.0)
    }

    private func place(_ server: String) -> Int {
        (servers.firstIndex(of: server) ?? 0) % PageStyle.colours
    }

    /// A table for one run; bars for several runs to compare.
    private var figures: Markup {
        let all = ordered(group.servers.flatMap { $0.rounds.flatMap(\.figures) }, by: \.name).compactMap { $0.1.first }
        guard group.servers.contains(where: { $0.rounds.count > 1 }) || group.servers.count > 1 else {
            let rows = all.map { [ReportPage.Cell.text($0.name), .number(NumberText.plain($0.value, unit: $0.unit))] }
            return rows.isEmpty ? .nothing : ReportPage.table([.text("Figure"), .number("Value")], rows)
        }
        return .joined(
            all.map { figure in
                let rows = group.servers.compactMap { server in
                    Spread(server.values(of: figure.name)).map { RangePlot.Row(name: server.name, place: place(server.name), spread: $0) }
                }
                let title = figure.unit.isEmpty ? figure.name : "\(figure.name), \(NumberText.shown(unit: figure.unit))"
                // Bars of the same length show nothing.
                if let first = rows.first?.spread.text(), rows.count > 1, rows.allSatisfy({ $0.spread.text() == first }) {
                    return .leaf("p", "\(title): \(first) for all")
                }
                return .joined([.leaf("h3", title), RangePlot(title: title, unit: figure.unit, rows: rows).markup])
            })
    }

    private func latency(_ name: String) -> Markup {
        let curves = group.servers.compactMap { server in
            LatencyCurve(server.rounds.flatMap { $0.latencies.filter { $0.name == name && $0.count > 0 } }).map { (server.name, $0) }
        }
        let lowest = curves.flatMap { $0.1.points.map(\.spread.lowest) }.min() ?? 1
        let highest = curves.flatMap { $0.1.points.map(\.spread.highest) }.max() ?? 1
        // Ten values have no 99th percentile.
        let most = Double(curves.map(\.1.mostInRound).max() ?? 1)
        let told = curves.flatMap { $0.1.points.map(\.percent).filter { $0 < 100 } }.max() ?? 99
        let last = min(told, 100 - 100 / max(most, 10))
        let plot = Plot(
            title: "\(name): percentiles", x: .percentiles(to: last),
            y: .logarithmic(from: lowest, to: highest) { NumberText.duration(microseconds: $0) },
            lines: curves.map { server, curve in
                Plot.Line(
                    name: server, place: place(server), points: curve.points.map { .init(x: $0.percent, y: $0.spread.median) },
                    band: curve.rounds > 1 ? curve.points.map { ($0.percent, $0.spread.lowest, $0.spread.highest) } : [])
            })
        let rows = curves.map { server, curve -> [ReportPage.Cell] in
            [.text(server), .number(NumberText.plain(Double(curve.count)))]
                + Self.tablePercents.map { percent in .spread(curve.spread(at: percent)) }
        }
        return .joined([
            .leaf("h3", "\(name): percentiles, logarithmic"), key(curves.map(\.0)), plot.markup,
            ReportPage.table(
                [.text("Server"), .number("Count")] + Self.tablePercents.map { .number($0 == 100 ? "max" : "\(NumberText.plain($0)) %") },
                rows),
        ])
    }

    /// The last of several rounds, because different runs have no common clock.
    private func timeline(_ name: String) -> Markup {
        let lines = group.servers.compactMap { server -> (String, LoadReport.Timeline)? in
            server.rounds.reversed().lazy.compactMap { $0.timelines.first { $0.name == name && !$0.points.isEmpty } }.first.map {
                (server.name, $0)
            }
        }
        guard let unit = lines.first?.1.unit else {
            return .nothing
        }
        let seconds = lines.map { Double($0.1.points.count) * $0.1.secondsPerPoint }.max() ?? 1
        let plot = Plot(
            title: name, x: .seconds(to: seconds),
            y: .linear(to: lines.flatMap(\.1.points).filter(\.isFinite).max() ?? 1) { NumberText.short($0) },
            lines: lines.map { server, timeline in
                Plot.Line(
                    name: server, place: place(server),
                    points: timeline.points.enumerated().filter(\.element.isFinite).map {
                        .init(x: Double($0.offset + 1) * timeline.secondsPerPoint, y: $0.element)
                    })
            })
        let title = unit.isEmpty ? name : "\(name), \(NumberText.shown(unit: unit))"
        return .joined([.leaf("h3", title), key(lines.map(\.0)), plot.markup])
    }

    /// Empty if only one line is drawn.
    private func key(_ names: [String]) -> Markup {
        names.count < 2
            ? .nothing : .element("ul", ["class": "key"], names.map { .leaf("li", ["class": "s\(place($0))"], $0) })
    }
}
