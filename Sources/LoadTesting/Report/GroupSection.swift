/// One scenario on the page: the figures, latencies and timelines of one or several servers.
struct GroupSection {
    var group: ReportSet.Group
    /// All servers of the page, so that each keeps its colour.
    var servers: [String]
    var isAlone: Bool

    /// Percentiles of the table; the plot shows all.
    private static let tablePercents: [Double] = [50, 90, 99, 99.9, 100]

    var blocks: [PageBlock] {
        let rounds = group.servers.flatMap(\.rounds)
        let latencies = ordered(rounds.flatMap { $0.latencies.map(\.name) }, by: { $0 }).map { latency($0.0) }
        let timelines = ordered(rounds.flatMap { $0.timelines.map(\.name) }, by: { $0 }).compactMap { timeline($0.0) }
        let heading = isAlone && group.servers.count == 1 ? [] : [PageBlock(chapter: group.scenario)]
        return heading + figures + latencies + timelines
    }

    private func place(_ server: String) -> Int {
        (servers.firstIndex(of: server) ?? 0) % PageTemplate.colours
    }

    private func titled(_ name: String, unit: String) -> String {
        unit.isEmpty ? name : "\(name), \(NumberText.shown(unit: unit))"
    }

    /// A table for one run; bars for several runs to compare.
    private var figures: [PageBlock] {
        let all = ordered(group.servers.flatMap { $0.rounds.flatMap(\.figures) }, by: \.name).compactMap { $0.1.first }
        guard group.servers.contains(where: { $0.rounds.count > 1 }) || group.servers.count > 1 else {
            let rows = all.map { [PageBlock.Cell.text($0.name), .number(NumberText.plain($0.value, unit: $0.unit))] }
            return rows.isEmpty ? [] : [PageBlock(table: .init(head: [.text("Figure"), .number("Value")], rows: rows))]
        }
        return all.map { figure in
            let spreads = group.servers.compactMap { server in Spread(server.values(of: figure.name)).map { (server.name, $0) } }
            let title = titled(figure.name, unit: figure.unit)
            // Bars of the same length show nothing.
            if let first = spreads.first?.1.text(), spreads.count > 1, spreads.allSatisfy({ $0.1.text() == first }) {
                return PageBlock(note: "\(title): \(first) for all")
            }
            let axis = Axis.linear(to: spreads.map(\.1.highest).max() ?? 1) { _ in "" }
            let rows = spreads.map { server, spread -> [PageBlock.Cell] in
                let low = axis.share(spread.lowest)
                let bar = PageBlock.Bar(
                    place: place(server), median: NumberText.percentage(axis.share(spread.median)), lowest: NumberText.percentage(low),
                    span: NumberText.percentage(axis.share(spread.highest) - low))
                let value = spread.text() + (figure.unit.isEmpty ? "" : " \(NumberText.shown(unit: figure.unit))")
                return [
                    .init(text: server, kind: "server"), .init(text: "", kind: "bar", bar: bar), .init(text: value, kind: "value"),
                ]
            }
            return PageBlock(heading: title, table: .init(rows: rows))
        }
    }

    private func latency(_ name: String) -> PageBlock {
        let curves = group.servers.compactMap { server in
            LatencyCurve(server.rounds.flatMap { $0.latencies.filter { $0.name == name && $0.count > 0 } }).map { (server.name, $0) }
        }
        let lowest = curves.flatMap { $0.1.points.map(\.spread.lowest) }.min() ?? 1
        let highest = curves.flatMap { $0.1.points.map(\.spread.highest) }.max() ?? 1
        // Ten values have no 99th percentile.
        let most = Double(curves.map(\.1.mostInRound).max() ?? 1)
        let told = curves.flatMap { $0.1.points.map(\.percent).filter { $0 < 100 } }.max() ?? 99
        let plot = Plot(
            title: "\(name): percentiles", x: .percentiles(to: min(told, 100 - 100 / max(most, 10))),
            y: .logarithmic(from: lowest, to: highest) { NumberText.duration(microseconds: $0) },
            lines: curves.map { server, curve in (server, place(server), curve.points.map { ($0.percent, $0.spread) }) })
        let rows = curves.map { server, curve -> [PageBlock.Cell] in
            [.text(server), .number(NumberText.plain(Double(curve.count)))] + Self.tablePercents.map { cell(curve.spread(at: $0)) }
        }
        let head = Self.tablePercents.map { PageBlock.Cell.number($0 == 100 ? "max" : "\(NumberText.plain($0)) %") }
        return PageBlock(
            heading: "\(name): percentiles, logarithmic", plot: plot,
            table: .init(head: [.text("Server"), .number("Count")] + head, rows: rows))
    }

    /// The median, and the range below it if the rounds differ.
    private func cell(_ spread: Spread?) -> PageBlock.Cell {
        guard let spread else {
            return .number("–")
        }
        let texts = [spread.median, spread.lowest, spread.highest].map { NumberText.duration(microseconds: $0) }
        return PageBlock.Cell(text: texts[0], kind: "number", range: Set(texts).count == 1 ? nil : "\(texts[1]) to \(texts[2])")
    }

    /// The last of several rounds, because different runs have no common clock. Nil without points.
    private func timeline(_ name: String) -> PageBlock? {
        let lines = group.servers.compactMap { server in
            server.rounds.reversed().lazy.compactMap { $0.timelines.first { $0.name == name && !$0.points.isEmpty } }.first.map {
                (server.name, $0)
            }
        }
        guard let unit = lines.first?.1.unit else {
            return nil
        }
        let seconds = lines.map { Double($0.1.points.count) * $0.1.secondsPerPoint }.max() ?? 1
        let plot = Plot(
            title: name, x: .seconds(to: seconds),
            y: .linear(to: lines.flatMap(\.1.points).filter(\.isFinite).max() ?? 1) { NumberText.short($0) },
            lines: lines.map { server, timeline in
                let points = timeline.points.enumerated().compactMap { index, value in
                    Spread([value]).map { (Double(index + 1) * timeline.secondsPerPoint, $0) }
                }
                return (server, place(server), points)
            })
        return PageBlock(heading: titled(name, unit: unit), plot: plot)
    }
}
