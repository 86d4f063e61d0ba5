/// One figure of several servers: a bar to the median, a line from the lowest to the highest round, and the numbers after it.
struct RangePlot {
    struct Row {
        var name: String
        var place: Int
        var spread: Spread
    }

    var title: String
    var unit: String
    var rows: [Row]

    private static let width = 760.0
    private static let left = 130.0
    private static let right = 210.0
    private static let rowHeight = 26.0

    var markup: Markup {
        let axis = Axis.linear(to: rows.map(\.spread.highest).max() ?? 1) { NumberText.short($0) }
        return .drawing(
            width: Self.width, height: Self.rowHeight * Double(rows.count) + 4, title: title, kind: "ranges",
            rows.enumerated().map { index, row in drawn(row, top: Double(index) * Self.rowHeight + 2, axis: axis) })
    }

    private func drawn(_ row: Row, top: Double, axis: Axis) -> Markup {
        func across(_ value: Double) -> Double {
            Self.left + axis.share(value) * (Self.width - Self.left - Self.right)
        }
        let middle = top + Self.rowHeight / 2
        let low = across(row.spread.lowest)
        let high = across(row.spread.highest)
        let median = across(row.spread.median)
        var shapes = [
            Markup.label(row.name, x: Self.left - 10, y: middle + 4, anchor: "end", kind: "name"),
            .bar(x: Self.left, y: top + 4, width: max(1, median - Self.left), height: Self.rowHeight - 8, kind: "bar s\(row.place)"),
        ]
        if row.spread.count > 1 {
            shapes.append(.line(from: (low, middle), to: (high, middle), kind: "whisker"))
            shapes += [low, high].map { .line(from: ($0, middle - 4), to: ($0, middle + 4), kind: "whisker") }
        }
        let numbers = row.spread.text() + (unit.isEmpty ? "" : " \(NumberText.shown(unit: unit))")
        shapes.append(.label(numbers, x: max(high, median) + 10, y: middle + 4, anchor: "start"))
        return .joined(shapes)
    }
}
