/// A drawing of lines over two axes, as inline SVG. The line's place selects a colour of the style sheet.
struct Plot {
    struct Point: Equatable {
        var x: Double
        var y: Double
    }

    struct Line {
        var name: String
        /// Index of the page's colour.
        var place: Int
        var points: [Point]
        /// Lowest and highest of several rounds, drawn as a band behind the line.
        var band: [(x: Double, low: Double, high: Double)] = []
    }

    var title: String
    var x: Axis
    var y: Axis
    var lines: [Line]

    private static let width = 760.0
    private static let height = 300.0
    private static let left = 72.0
    private static let right = 24.0
    private static let top = 14.0
    private static let bottom = 34.0
    /// More points than pixels only enlarge the page.
    private static let pointsMax = 1_500

    var markup: Markup {
        .drawing(width: Self.width, height: Self.height, title: title, kind: "plot", [grid, labels] + lines.map(drawn))
    }

    private func across(_ value: Double) -> Double {
        Self.left + x.share(value) * (Self.width - Self.left - Self.right)
    }

    private func down(_ value: Double) -> Double {
        Self.height - Self.bottom - y.share(value) * (Self.height - Self.top - Self.bottom)
    }

    private var grid: Markup {
        let columns = x.ticks.map { tick in
            Markup.line(
                from: (across(tick.value), Self.top), to: (across(tick.value), Self.height - Self.bottom), kind: Self.kind(of: tick))
        }
        let rows = y.ticks.map { tick in
            Markup.line(from: (Self.left, down(tick.value)), to: (Self.width - Self.right, down(tick.value)), kind: Self.kind(of: tick))
        }
        return .joined(columns + rows)
    }

    private static func kind(of tick: Axis.Tick) -> String {
        tick.label.isEmpty ? "grid faint" : "grid"
    }

    private var labels: Markup {
        let columns = x.ticks.filter { !$0.label.isEmpty }.map { tick in
            Markup.label(tick.label, x: across(tick.value), y: Self.height - Self.bottom + 18, anchor: "middle")
        }
        let rows = y.ticks.filter { !$0.label.isEmpty }.map { tick in
            Markup.label(tick.label, x: Self.left - 8, y: down(tick.value) + 4, anchor: "end")
        }
        return .joined(columns + rows)
    }

    private func drawn(_ line: Line) -> Markup {
        let step = max(1, line.points.count / Self.pointsMax)
        let points = line.points.enumerated().filter { $0.offset.isMultiple(of: step) }.map { corner($0.element.x, $0.element.y) }
        let path = Markup.polyline(points.joined(separator: " "), title: line.name, kind: "line s\(line.place)")
        guard !line.band.isEmpty else {
            return path
        }
        let around = line.band.map { corner($0.x, $0.high) } + line.band.reversed().map { corner($0.x, $0.low) }
        return .joined([.polygon(around.joined(separator: " "), kind: "band s\(line.place)"), path])
    }

    private func corner(_ x: Double, _ y: Double) -> String {
        "\(NumberText.coordinate(across(x))),\(NumberText.coordinate(down(y)))"
    }
}
