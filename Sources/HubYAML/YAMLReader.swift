/// Reads typed values from one file's nodes and collects every mistake instead of stopping at the first.
///
/// A method that notes a mistake returns nil; the caller continues with a default and reads the mistakes at the end.
/// Used by one thread during one reading.
package final class YAMLReader {
    /// The file as mistakes name it.
    package let file: String
    private var noted: [YAMLMistake] = []

    /// A reader without mistakes.
    package init(file: String) { self.file = file }

    /// The mistakes noted so far, by line and column.
    package var mistakes: [YAMLMistake] {
        noted.enumerated().sorted {
            ($0.element.line, $0.element.column, $0.offset) < ($1.element.line, $1.element.column, $1.offset)
        }
        .map(\.element)
    }

    /// Notes a mistake at a value.
    package func note(_ node: YAMLNode, _ message: String) { note(line: node.line, column: node.column, message) }

    /// Notes a mistake at a place; after `YAMLLimits.mistakesMax` it is dropped.
    package func note(line: Int, column: Int, _ message: String) {
        guard noted.count < YAMLLimits.mistakesMax else { return }
        let mistake = YAMLMistake(file: file, line: line, column: column, message: message)
        // An event's defaults are read once per variant; their mistakes are noted once.
        if !noted.contains(mistake) { noted.append(mistake) }
    }

    /// Text. Nothing, or an unquoted `true` or `false`, is a mistake.
    /// - Parameter name: the value's name in mistakes (`listen.port`), here and in all methods below.
    package func string(_ node: YAMLNode, _ name: String) -> String? {
        guard case .scalar(let text, let isPlain) = node.content, !node.isNull else { return mismatch(node, name, "text") }
        if isPlain, YAMLScalar.bool(text) != nil { return mismatch(node, name, "text", "; put it in quotes") }
        return text
    }

    /// As `string`, and not empty.
    package func nonEmptyString(_ node: YAMLNode, _ name: String) -> String? {
        guard let text = string(node, name) else { return nil }
        guard !text.isEmpty else { return mismatch(node, name, "text", "; it must not be empty") }
        return text
    }

    /// `true` or `false`, without quotes.
    package func bool(_ node: YAMLNode, _ name: String) -> Bool? {
        guard case .scalar(let text, isPlain: true) = node.content, let value = YAMLScalar.bool(text) else {
            return mismatch(node, name, "true or false")
        }
        return value
    }

    /// A whole number within `range`, without quotes.
    package func int(_ node: YAMLNode, _ name: String, in range: ClosedRange<Int> = 0...Int.max) -> Int? {
        let end = range.upperBound == Int.max ? "" : " to \(range.upperBound)"
        let expected = "a whole number from \(range.lowerBound)\(end)"
        guard case .scalar(let text, isPlain: true) = node.content,
            let value = YAMLScalar.integer(text).flatMap(Int.init(exactly:)),
            range.contains(value)
        else { return mismatch(node, name, expected) }
        return value
    }

    /// A duration greater than zero, such as `15s`.
    package func duration(_ node: YAMLNode, _ name: String) -> Duration? {
        guard case .scalar(let text, _) = node.content, let value = YAMLScalar.duration(text) else {
            return mismatch(node, name, "a duration such as 250ms, 15s, 5m, 2h or 3d")
        }
        guard value > .zero else { return mismatch(node, name, "a duration greater than zero") }
        return value
    }

    /// A number of bytes within `range`, with or without a unit.
    package func byteSize(_ node: YAMLNode, _ name: String, in range: ClosedRange<Int> = 1...Int.max) -> Int? {
        guard case .scalar(let text, _) = node.content, let value = YAMLScalar.byteSize(text) else {
            return mismatch(node, name, "a number of bytes such as 10240, 64KiB or 1MiB")
        }
        guard range.contains(value) else {
            let isOpen = range.upperBound == Int.max
            return mismatch(
                node, name, isOpen ? "at least \(range.lowerBound) bytes" : "\(range.lowerBound) to \(range.upperBound) bytes")
        }
        return value
    }

    /// One of a closed set of words.
    package func choice<Value: RawRepresentable & CaseIterable>(
        _ node: YAMLNode, _ name: String, _: Value.Type = Value.self
    )
        -> Value?
    where Value.RawValue == String {
        let words = Value.allCases.map(\.rawValue)
        guard case .scalar(let text, _) = node.content, !node.isNull else {
            return mismatch(node, name, "one of \(words.joined(separator: ", "))")
        }
        guard let value = Value(rawValue: text) else {
            let hint = NearestName.hint(for: text, among: words)
            note(node, "\(name) cannot be \(YAMLNode.quoted(text))\(hint) it is one of: \(words.joined(separator: ", "))")
            return nil
        }
        return value
    }

    /// The elements of a list; a single value is no list.
    package func list(_ node: YAMLNode, _ name: String) -> [YAMLNode]? {
        guard case .list(let nodes) = node.content else { return mismatch(node, name, "a list") }
        return nodes
    }

    /// A list of texts that are not empty; other elements are noted and left out.
    package func strings(_ node: YAMLNode, _ name: String) -> [String]? {
        list(node, name)?.compactMap { nonEmptyString($0, "an element of \(name)") }
    }

    /// A map whose keys are the operator's own.
    package func entries(_ node: YAMLNode, _ name: String) -> [YAMLEntry]? {
        guard case .map(let entries) = node.content else { return mismatch(node, name, "a map") }
        return entries
    }

    /// A map whose keys are ours: every other key is noted, with the nearest known one.
    package func map(_ node: YAMLNode, _ name: String, keys: [String]) -> YAMLMap? {
        guard let entries = entries(node, name) else { return nil }
        for entry in entries where !keys.contains(entry.key) {
            let hint = NearestName.hint(for: entry.key, among: keys)
            note(
                line: entry.line, column: entry.column,
                "unknown key \(YAMLNode.quoted(entry.key)) in \(name)\(hint) known keys: \(keys.joined(separator: ", "))")
        }
        return YAMLMap(reader: self, name: name, node: node, entries: entries)
    }

    private func mismatch<Value>(_ node: YAMLNode, _ name: String, _ expected: String, _ fix: String = "") -> Value? {
        note(node, "\(name): expected \(expected), found \(node.kindName)\(fix)")
        return nil
    }
}

/// A map with known keys; its methods read one member each and name it `map.key` in mistakes.
package struct YAMLMap {
    /// The reader that collects the mistakes.
    package let reader: YAMLReader
    /// The map's name in mistakes.
    package let name: String
    /// The map's own value, for mistakes about all of it.
    package let node: YAMLNode
    /// All members in the order written, unknown ones included.
    package let entries: [YAMLEntry]

    /// The member's value, when the key was written.
    package subscript(key: String) -> YAMLNode? { entries.first { $0.key == key }?.value }

    /// The member's value; a missing one is noted along with `fix`.
    package func required(_ key: String, _ fix: String) -> YAMLNode? {
        if let node = self[key] { return node }
        reader.note(node, "\(name) has no \(key): \(fix)")
        return nil
    }

    /// The member as text that is not empty; nil also when the key is missing, here and in all methods below.
    package func string(_ key: String) -> String? { self[key].flatMap { reader.nonEmptyString($0, path(key)) } }
    /// The member as `true` or `false`.
    package func bool(_ key: String) -> Bool? { self[key].flatMap { reader.bool($0, path(key)) } }
    /// The member as a whole number within `range`.
    package func int(_ key: String, in range: ClosedRange<Int> = 0...Int.max) -> Int? {
        self[key].flatMap { reader.int($0, path(key), in: range) }
    }
    /// The member as a duration greater than zero.
    package func duration(_ key: String) -> Duration? { self[key].flatMap { reader.duration($0, path(key)) } }
    /// The member as a number of bytes within `range`.
    package func byteSize(_ key: String, in range: ClosedRange<Int> = 1...Int.max) -> Int? {
        self[key].flatMap { reader.byteSize($0, path(key), in: range) }
    }
    /// The member as a list of texts that are not empty.
    package func strings(_ key: String) -> [String]? { self[key].flatMap { reader.strings($0, path(key)) } }

    /// The member as a map with known keys, called by its whole path in mistakes.
    package func map(_ key: String, keys: [String]) -> YAMLMap? { self[key].flatMap { reader.map($0, path(key), keys: keys) } }

    /// The member's path, such as `listen.port`; the top level adds no name.
    package func path(_ key: String) -> String { name == YAMLMap.topLevel ? key : "\(name).\(key)" }

    /// The outermost map's name in mistakes.
    package static let topLevel = "the file"
}
