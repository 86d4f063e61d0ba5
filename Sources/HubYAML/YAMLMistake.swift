/// One mistake in an operator's file: its place, and the correction.
package struct YAMLMistake: Sendable, Equatable, CustomStringConvertible {
    /// The file as its reader named it, or the source of any other setting (`TANDEM_PORT`, `--port`).
    package let file: String
    /// Counted from 1; 0 when the mistake is not in a file.
    package let line: Int
    /// Counted from 1 in Unicode scalars; 0 when the mistake is not in a file.
    package let column: Int
    /// A sentence without the position.
    package let message: String

    /// A mistake at a place, or without one: line and column are both 0 then.
    package init(file: String, line: Int = 0, column: Int = 0, message: String) {
        assert(line >= 0 && column >= 0 && (line == 0) == (column == 0), "a mistake in line \(line) and column \(column)")
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    /// `FILE:LINE: message`, or `SOURCE: message` when there is no line.
    package var description: String {
        line > 0 ? "\(file):\(line): \(message)" : "\(file): \(message)"
    }
}

/// All mistakes in the files read together; never empty.
package struct YAMLError: Error, Equatable, CustomStringConvertible {
    /// Sorted by file in the order read, then by line.
    package let mistakes: [YAMLMistake]

    /// At least one mistake.
    package init(_ mistakes: [YAMLMistake]) {
        precondition(!mistakes.isEmpty, "an error names at least one mistake")
        self.mistakes = mistakes
    }

    /// One mistake a line.
    package var description: String {
        mistakes.map(\.description).joined(separator: "\n")
    }
}

/// The bounds of a YAML file; exceeding one is a mistake like any other.
package enum YAMLLimits {
    /// The longest file in bytes: a thousand times the largest sensible one.
    package static let fileBytesMax = 1 << 20
    /// The deepest nesting of lists and maps; a definition needs seven.
    package static let depthMax = 32
    /// The most values in a file after its aliases are followed: aliases of aliases grow without bound.
    package static let nodesMax = 50_000
    /// Most mistakes noted per file.
    package static let mistakesMax = 100
}
