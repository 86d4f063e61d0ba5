/// A drawing of lines over two axes. Positions are percentages from the upper left corner. `PageTemplate` reads the fields by their names.
struct Plot {
    struct Tick {
        var at: String
        var label: String?
    }

    struct Line {
        var name: String
        /// Index of the colour.
        var place: Int
        var points: String
        /// The area between the lowest and the highest of several rounds.
        var band: String?
    }

    var title: String
    var columns: [Tick]
    var levels: [Tick]
    var lines: [Line]

    /// More points than pixels only enlarge the page.
    private static let pointsMax = 1_500

    init(title: String, x: Axis, y: Axis, lines: [(name: String, place: Int, points: [(x: Double, y: Spread)])]) {
        func across(_ value: Double) -> String {
            NumberText.percentage(x.share(value))
        }
        func down(_ value: Double) -> String {
            NumberText.percentage(1 - y.share(value))
        }
        self.title = title
        columns = x.ticks.map { Tick(at: across($0.value), label: $0.label) }
        levels = y.ticks.map { Tick(at: down($0.value), label: $0.label) }
        self.lines = lines.map { name, place, all in
            let points = stride(from: 0, to: all.count, by: max(1, all.count / Self.pointsMax)).map { all[$0] }
            let above = points.map { "\(across($0.x)),\(down($0.y.highest))" }
            let below = points.reversed().map { "\(across($0.x)),\(down($0.y.lowest))" }
            return Line(
                name: name, place: place, points: points.map { "\(across($0.x)),\(down($0.y.median))" }.joined(separator: " "),
                band: points.contains { $0.y.count > 1 } ? (above + below).joined(separator: " ") : nil)
        }
    }
}
