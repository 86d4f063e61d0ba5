import HubCore

/// Members of several objects as a table for people: one line per object, columns two spaces apart.
struct TextTable {
    let text: String

    /// - Parameter columns: each a title and the member shown below it.
    init(_ columns: [(title: String, member: String)], _ rows: [JSONValue]) {
        let cells = [columns.map(\.title)] + rows.map { row in columns.map { Self.cell(row[$0.member]) } }
        let widths = columns.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        text = cells.map { row in
            row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    private static func cell(_ value: JSONValue?) -> String {
        switch value {
        case .string(let text): text.isEmpty ? "-" : printable(text)
        case .bool(let flag): flag ? "yes" : "no"
        case nil, .null: "-"
        case let value?: value.text
        }
    }

    /// Replaces control characters: ids may hold any character, and a terminal would obey them.
    private static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
    }
}
