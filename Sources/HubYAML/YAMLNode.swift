package import HubCore

/// A value of a YAML file with its place in it.
package struct YAMLNode: Sendable, Equatable {
    /// A scalar, a list or a map.
    package indirect enum Content: Sendable, Equatable {
        /// `isPlain`: written without quotes, so `true`, `12` and the empty text are not strings.
        case scalar(text: String, isPlain: Bool)
        case list([YAMLNode])
        /// In the order written.
        case map([YAMLEntry])
    }

    /// The value itself.
    package let content: Content
    /// Counted from 1.
    package let line: Int
    /// Counted from 1.
    package let column: Int

    /// A value and its place, both counted from 1; both are 0 for a value that stands in no document.
    package init(content: Content, line: Int, column: Int) {
        assert((line > 0) == (column > 0), "a value in line \(line) and column \(column)")
        self.content = content
        self.line = line
        self.column = column
    }

    /// Whether the value is empty, `null` or `~`.
    package var isNull: Bool {
        guard case .scalar(let text, isPlain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// A description for messages: `expected …, found …`.
    package var kindName: String {
        switch content {
        case .list: return "a list"
        case .map: return "a map"
        case .scalar(let text, let isPlain):
            if isNull { return "nothing" }
            guard isPlain else { return "the text \(YAMLNode.quoted(text))" }
            if YAMLScalar.bool(text) != nil { return text }
            return YAMLScalar.integer(text) != nil || YAMLScalar.double(text) != nil
                ? "the number \(text)" : "the text \(YAMLNode.quoted(text))"
        }
    }

    /// The value as JSON: quoted scalars are strings; plain ones are null, booleans, numbers or strings.
    ///
    /// YAML 1.1's further spellings (`yes`, `on`, `0x1F`, `1_000`, dates) are strings here, because an operator who
    /// writes `no` into a notification's data means the word.
    package var json: JSONValue {
        switch content {
        case .list(let nodes): return .array(nodes.map(\.json))
        case .map(let entries):
            return .object(Dictionary(entries.map { ($0.key, $0.value.json) }, uniquingKeysWith: { _, last in last }))
        case .scalar(let text, let isPlain):
            guard isPlain else { return .string(text) }
            if isNull { return .null }
            if let value = YAMLScalar.bool(text) { return .bool(value) }
            if let value = YAMLScalar.integer(text) { return .int(value) }
            if let value = YAMLScalar.double(text) { return .double(value) }
            return .string(text)
        }
    }

    /// A text in quotes, shortened so that a wrong value of any size makes a readable line.
    package static func quoted(_ text: String) -> String {
        let shown = text.prefix(textShownMax).map { $0.isNewline ? " " : String($0) }.joined()
        return "\"\(shown)\(text.count > textShownMax ? "…" : "")\""
    }

    /// Most characters of a wrong value in a message.
    private static let textShownMax = 40
}

/// A key with its value; the key has a place of its own.
package struct YAMLEntry: Sendable, Equatable {
    /// The key's text.
    package let key: String
    /// Counted from 1.
    package let line: Int
    /// Counted from 1.
    package let column: Int
    /// The value after the colon.
    package let value: YAMLNode

    /// A key at its own place, both counted from 1.
    package init(key: String, line: Int, column: Int, value: YAMLNode) {
        assert(line > 0 && column > 0, "a key in line \(line) and column \(column)")
        self.key = key
        self.line = line
        self.column = column
        self.value = value
    }
}
