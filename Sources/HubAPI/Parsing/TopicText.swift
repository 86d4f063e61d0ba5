/// Local checks of FCM's topics and of expressions over them.
enum TopicText {
    static let charactersMax = 900
    static let conditionTopicsMax = 5
    /// Five topics of full length with their syntax.
    static let conditionCharactersMax = 5_000

    static func isTopic(_ text: some StringProtocol) -> Bool {
        (1...charactersMax).contains(text.utf8.count) && text.utf8.allSatisfy(isTopicByte)
    }

    /// Whether the text is an expression such as `'a' in topics && !('b' in topics || 'c' in topics)` over one to five topics.
    static func isCondition(_ text: String) -> Bool {
        guard text.utf8.count <= conditionCharactersMax else { return false }
        var reader = Reader(rest: text[...].utf8)
        return reader.expression(depth: 0) && reader.isAtEnd && reader.topics <= conditionTopicsMax
    }

    private static func isTopicByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "-_.~%".utf8.contains(byte)
        }
    }

    /// Recursive descent: operators from left to right, parentheses first.
    private struct Reader {
        var rest: Substring.UTF8View
        var topics = 0
        private static let depthMax = 16

        var isAtEnd: Bool {
            mutating get {
                skipSpaces()
                return rest.isEmpty
            }
        }

        mutating func expression(depth: Int) -> Bool {
            guard depth <= Self.depthMax, term(depth: depth) else { return false }
            while take("&&") || take("||") {
                guard term(depth: depth) else { return false }
            }
            return true
        }

        private mutating func term(depth: Int) -> Bool {
            if take("!") { return depth < Self.depthMax && term(depth: depth + 1) }
            if take("(") { return expression(depth: depth + 1) && take(")") }
            guard take("'"), let end = rest.firstIndex(of: UInt8(ascii: "'")), let topic = String(rest[..<end]), isTopic(topic) else {
                return false
            }
            rest = rest[rest.index(after: end)...]
            topics += 1
            return takeWord("in") && takeWord("topics")
        }

        /// Requires white space before the word.
        private mutating func takeWord(_ word: String) -> Bool {
            guard let first = rest.first, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") else { return false }
            return take(word)
        }

        private mutating func take(_ text: String) -> Bool {
            skipSpaces()
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }

        private mutating func skipSpaces() {
            while let byte = rest.first, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { rest = rest.dropFirst() }
        }
    }
}
