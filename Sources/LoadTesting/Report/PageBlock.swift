/// One part of a page: headings, a sentence, a plot and a table, in this order. `PageTemplate` leaves out what is nil.
struct PageBlock {
    var chapter: String?
    var heading: String?
    var note: String?
    var plot: Plot?
    var table: Table?

    struct Table {
        var head: [Cell] = []
        var rows: [[Cell]]
    }

    struct Cell {
        var text: String
        /// A class of the style sheet.
        var kind: String
        /// A second line.
        var range: String?
        var bar: Bar?

        static func text(_ text: String) -> Cell {
            Cell(text: text, kind: "text")
        }

        static func number(_ text: String) -> Cell {
            Cell(text: text, kind: "number")
        }
    }

    /// A bar to the median, and a narrow one from the lowest to the highest round, as percentages of the cell's width.
    struct Bar {
        /// Index of the colour.
        var place: Int
        var median: String
        var lowest: String
        var span: String
    }
}
