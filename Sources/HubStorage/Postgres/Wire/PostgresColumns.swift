/// Columns of new rows, for a statement that inserts them all. A column with one value throughout travels as that value.
struct PostgresColumns {
    private var columns: [(name: String, expression: String)] = []
    private var arrays: [(name: String, parameter: String)] = []
    /// Values of the statement: `$1` and so on belong to the columns.
    private(set) var values: [PostgresValue] = []

    /// Adds a column of texts. All columns are equally long.
    mutating func add(_ name: String, _ column: [String?]) {
        add(name, "text", column, one: PostgresValue.text, many: PostgresValue.texts)
    }

    /// Adds a column of numbers.
    mutating func add(_ name: String, _ column: [Int64?]) {
        add(name, "bigint", column, one: PostgresValue.int, many: PostgresValue.ints)
    }

    /// The columns' names, for the list behind the table's.
    var names: String { columns.map(\.name).joined(separator: ", ") }
    /// The columns' values, for the list behind SELECT.
    var expressions: String { columns.map(\.expression).joined(separator: ", ") }

    /// The value of one column.
    func expression(of name: String) -> String { columns.first { $0.name == name }?.expression ?? "NULL" }

    /// The rows, for the list behind FROM, as `w` with the row's `place`.
    var rows: String {
        let parameters = arrays.map(\.parameter).joined(separator: ", ")
        return "unnest(\(parameters)) WITH ORDINALITY AS w (\((arrays.map(\.name) + ["place"]).joined(separator: ", ")))"
    }

    private mutating func add<Value: Equatable>(
        _ name: String, _ type: String, _ column: [Value?], one: (Value?) -> PostgresValue, many: ([Value?]) -> PostgresValue
    ) {
        let parameter = "$\(values.count + 1)::\(type)"
        // The first column says how many rows there are.
        if let first = column.first, !columns.isEmpty, column.allSatisfy({ $0 == first }) {
            columns.append((name, parameter))
            values.append(one(first))
        } else {
            columns.append((name, "w.\(name)"))
            arrays.append((name, "\(parameter)[]"))
            values.append(many(column))
        }
    }
}
