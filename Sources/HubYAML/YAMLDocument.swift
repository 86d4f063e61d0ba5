internal import Yams

/// Turns the text of a YAML file into nodes.
package enum YAMLDocument {
    /// The file's one document; nil when there is nothing but comments.
    ///
    /// Pure and safe for any text. Lists and maps may be shared by anchors and aliases; merge keys (`<<`), tags, further
    /// documents and keys that are not text are mistakes.
    package static func parse(_ text: String, file: String) throws(YAMLError) -> YAMLNode? {
        guard text.utf8.count <= YAMLLimits.fileBytesMax else {
            throw YAMLError([
                YAMLMistake(file: file, line: 1, column: 1, message: "the file is longer than \(YAMLLimits.fileBytesMax) bytes")
            ])
        }
        if let line = lineNestedTooDeeply(text) {
            throw YAMLError([YAMLMistake(file: file, line: line, column: 1, message: nestedTooDeeply)])
        }
        let root: Node?
        do {
            // UTF-8 by name: the default would consult the process's environment.
            root = try Parser(yaml: text, encoding: .utf8).singleRoot()
        } catch {
            throw YAMLError(mistakes(error, file: file))
        }
        guard let root else { return nil }
        var conversion = Conversion(file: file)
        let node = conversion.node(root, depth: 0)
        assert(
            conversion.mistake != nil || conversion.nodes <= YAMLLimits.nodesMax,
            "\(conversion.nodes) values were converted without a mistake")
        if let mistake = conversion.mistake { throw YAMLError([mistake]) }
        return node
    }

    static let nestedTooDeeply = "lists and maps are nested deeper than \(YAMLLimits.depthMax) levels"

    /// A bound that needs no parser: the library builds its nodes by recursion, so depth must be limited before it runs.
    ///
    /// Each level of a block needs a deeper indentation or an indicator on the line, and each level in flow style an
    /// open bracket. A count that ignores quotes can only be too high, and the generous factor allows for that.
    private static func lineNestedTooDeeply(_ text: String) -> Int? {
        var line = 1
        var brackets = 0
        var indicators = 0
        var isStartOfLine = true
        var indentation = 0
        var previous: UInt8 = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\n"):
                line += 1
                (indicators, indentation, isStartOfLine) = (0, 0, true)
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                brackets += 1
                isStartOfLine = false
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                brackets = max(0, brackets - 1)
                isStartOfLine = false
            case UInt8(ascii: " ") where isStartOfLine: indentation += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                if previous == UInt8(ascii: "-") || previous == UInt8(ascii: "?") || previous == UInt8(ascii: ":") {
                    indicators += 1
                }
            default: isStartOfLine = false
            }
            previous = byte
            if brackets > roughDepthMax || indicators > roughDepthMax || indentation > roughDepthMax { return line }
        }
        return nil
    }

    /// More brackets, indicators on a line or spaces of indentation than any sensible file has.
    private static let roughDepthMax = YAMLLimits.depthMax * 4

    private static func mistakes(_ error: any Error, file: String) -> [YAMLMistake] {
        guard let error = error as? YamlError else {
            return [YAMLMistake(file: file, line: 1, column: 1, message: "cannot be read as YAML")]
        }
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let detail = context.map { " \($0.text) (line \($0.mark.line))" } ?? ""
            return [YAMLMistake(file: file, line: mark.line, column: mark.column, message: "bad YAML: \(problem)\(detail)")]
        case .duplicatedKeysInMapping(let keys, let context):
            return keys.map { key in
                YAMLMistake(
                    file: file, line: max(1, context.mark.line), column: max(1, context.mark.column),
                    message: "duplicate key \(YAMLNode.quoted(key)): it stands here and again in the same map; keep one of them")
            }
        case .reader(let problem, let offset, _, let text):
            let before = text.prefix(offset ?? 0)
            let line = before.reduce(1) { $1.isNewline ? $0 + 1 : $0 }
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            return [YAMLMistake(file: file, line: line, column: column, message: "bad YAML: \(problem)")]
        case .memory:
            // The library reports nesting that exceeds its own bound as a lack of memory.
            return [YAMLMistake(file: file, line: 1, column: 1, message: nestedTooDeeply)]
        default:
            return [YAMLMistake(file: file, line: 1, column: 1, message: "cannot be read as YAML")]
        }
    }
}

/// Converts the library's nodes to ours, within the bounds.
private struct Conversion {
    let file: String
    var mistake: YAMLMistake?
    var nodes = 0

    init(file: String) { self.file = file }

    mutating func node(_ node: Node, depth: Int) -> YAMLNode {
        let (line, column) = (node.mark?.line ?? 1, node.mark?.column ?? 1)
        nodes += 1
        if nodes > YAMLLimits.nodesMax { fail(node, "more than \(YAMLLimits.nodesMax) values in one file") }
        if depth > YAMLLimits.depthMax { fail(node, YAMLDocument.nestedTooDeeply) }
        guard mistake == nil else { return YAMLNode(content: .list([]), line: line, column: column) }
        let content: YAMLNode.Content
        switch node {
        case .scalar(let scalar):
            let isPlain = scalar.style == .plain && !scalar.tag.description.hasSuffix(":str")
            checkTag(scalar.tag, isScalar: true, at: node)
            content = .scalar(text: scalar.string, isPlain: isPlain)
        case .sequence(let sequence):
            checkTag(sequence.tag, isScalar: false, at: node)
            content = .list(sequence.map { self.node($0, depth: depth + 1) })
        case .mapping(let mapping):
            checkTag(mapping.tag, isScalar: false, at: node)
            var entries: [YAMLEntry] = []
            var keys: Set<String> = []
            for (key, value) in mapping {
                guard case .scalar(let scalar) = key else {
                    fail(key, "a key has to be text")
                    break
                }
                if scalar.string == "<<", scalar.style == .plain {
                    fail(key, "merge keys (<<) are not read; write the members out")
                }
                if !keys.insert(scalar.string).inserted {
                    // `1` and "1" differ for the library and mean the same key here.
                    fail(key, "duplicate key \(YAMLNode.quoted(scalar.string)); keep one of them")
                }
                entries.append(
                    YAMLEntry(
                        key: scalar.string, line: key.mark?.line ?? line, column: key.mark?.column ?? column,
                        value: self.node(value, depth: depth + 1)))
                if mistake != nil { break }
            }
            content = .map(entries)
        case .alias:
            fail(node, "an alias without its anchor")
            content = .list([])
        }
        return YAMLNode(content: content, line: line, column: column)
    }

    private mutating func checkTag(_ tag: Tag, isScalar: Bool, at node: Node) {
        let name = tag.description
        if name.isEmpty || isScalar && (name == "!" || name.hasSuffix(":str")) { return }
        fail(node, "the tag \(name) is not read; leave it out")
    }

    private mutating func fail(_ node: Node, _ message: String) {
        guard mistake == nil else { return }
        mistake = YAMLMistake(file: file, line: node.mark?.line ?? 1, column: node.mark?.column ?? 1, message: message)
    }
}
