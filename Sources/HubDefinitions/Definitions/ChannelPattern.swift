internal import HubCore

/// The channel names of one definition, such as `presence-game-{session}`.
///
/// Literal text with one or two placeholders, each for one or more characters of a name. The first of two placeholders takes as few as
/// possible. So the text between them should not occur in session names.
package struct ChannelPattern: Sendable, Hashable, CustomStringConvertible {
    /// Names of placeholders.
    package enum Placeholder: String, Sendable, CaseIterable { case session, user }

    /// Values of the placeholders in a matching name.
    package struct Match: Sendable, Equatable {
        /// Value of `{session}`; nil if the pattern has none.
        package var session: String?
        /// Value of `{user}`; nil if the pattern has none.
        package var user: String?

        /// A match without values unless given.
        package init(session: String? = nil, user: String? = nil) {
            self.session = session
            self.user = user
        }
    }

    /// A mistake in a pattern, with its fix.
    package struct Invalid: Error, Equatable, CustomStringConvertible {
        /// The mistake, as a sentence without the pattern.
        package let description: String
    }

    private enum Part: Hashable {
        case literal(String)
        case placeholder(Placeholder)
    }

    /// The pattern as written.
    package let description: String
    private let parts: [Part]
    /// Literal text before the first placeholder, which most other names lack already.
    package let prefix: String

    /// Kinds of channels with signed subscriptions: the hub knows a subscriber only there. Encrypted channels are missing because the hub
    /// cannot read their events.
    private static let kinds = ["private-", "presence-"]
    /// Pusher's documented bound on a channel's name, the kind included.
    package static let nameCharactersMax = 164

    /// Parses a pattern.
    /// - Throws: the first mistake, as a sentence without the pattern.
    package init(_ text: String) throws(Invalid) {
        var parts: [Part] = []
        var rest = text[...]
        while !rest.isEmpty {
            let literal = rest.prefix { $0 != "{" && $0 != "}" }
            if let wrong = literal.unicodeScalars.first(where: { !Self.isNameCharacter($0) }) {
                throw Invalid(description: "\"\(wrong)\" cannot be in a channel's name; use letters, digits and _ - = @ , . ;")
            }
            if !literal.isEmpty { parts.append(.literal(String(literal))) }
            rest = rest[literal.endIndex...]
            guard let brace = rest.first else { break }
            guard brace == "{", let end = rest.firstIndex(of: "}") else {
                throw Invalid(description: "a brace without its partner; a placeholder is written {session} or {user}")
            }
            let name = String(rest[rest.index(after: rest.startIndex)..<end])
            guard let placeholder = Placeholder(rawValue: name) else {
                throw Invalid(description: "unknown placeholder {\(name.quotable(40))}; the placeholders are {session} and {user}")
            }
            if parts.contains(.placeholder(placeholder)) { throw Invalid(description: "{\(name)} stands twice; use it once") }
            if case .placeholder = parts.last {
                throw Invalid(description: "two adjacent placeholders; put text such as - between them")
            }
            parts.append(.placeholder(placeholder))
            rest = rest[rest.index(after: end)...]
        }
        guard case .literal(let prefix)? = parts.first, Self.kinds.contains(where: prefix.hasPrefix) else {
            throw Invalid(
                description: "begin it with private- or presence-: on other channels the hub does not know who a subscriber is")
        }
        if prefix.hasPrefix("private-encrypted-") {
            throw Invalid(description: "the hub cannot read what is published on encrypted channels; use private- or presence-")
        }
        guard parts.count > 1 else {
            throw Invalid(description: "it needs {session} or {user}, so that the hub knows whom its events are for")
        }
        guard text.utf8.count <= Self.nameCharactersMax else {
            throw Invalid(description: "it is longer than a channel's name can be (\(Self.nameCharactersMax) characters)")
        }
        self.description = text
        self.parts = parts
        self.prefix = prefix
    }

    /// Placeholders in the order of the name.
    package var placeholders: [Placeholder] {
        parts.compactMap { if case .placeholder(let placeholder) = $0 { placeholder } else { nil } }
    }

    /// The pattern without its placeholders' names: patterns of one shape match the same names.
    package var shape: String {
        parts.map { if case .literal(let text) = $0 { text } else { "{}" } }.joined()
    }

    /// UTF-8 bytes of literal text. The pattern with more of them is the more particular one.
    package var literalCount: Int {
        parts.reduce(0) { if case .literal(let text) = $1 { $0 + text.utf8.count } else { $0 } }
    }

    /// Values of the placeholders in `name`; nil if the name does not match. Most names fail at the prefix.
    package func match(_ name: String) -> Match? {
        // All kinds begin with this letter, which most channels of a busy hub lack.
        guard name.utf8.first == UInt8(ascii: "p"), name.hasPrefix(prefix) else { return nil }
        var match = Match()
        var rest = name.dropFirst(prefix.count)
        var index = 1
        while index < parts.count, case .placeholder(let placeholder) = parts[index] {
            let value: Substring
            if index + 1 < parts.count, case .literal(let next) = parts[index + 1] {
                let isLast = index + 2 == parts.count
                guard let found = isLast ? Self.suffix(next, of: rest) : Self.range(of: next, in: rest) else { return nil }
                value = rest[..<found.lowerBound]
                rest = rest[found.upperBound...]
            } else {
                value = rest
                rest = rest[rest.endIndex...]
            }
            guard !value.isEmpty, value.unicodeScalars.allSatisfy(Self.isNameCharacter) else { return nil }
            switch placeholder {
            case .session: match.session = String(value)
            case .user: match.user = String(value)
            }
            index += 2
        }
        return rest.isEmpty ? match : nil
    }

    /// The channel's name for these values; nil if a value is missing, empty or not allowed in a name.
    package func channelName(session: String?, user: String?) -> String? {
        var name = ""
        for part in parts {
            switch part {
            case .literal(let text): name += text
            case .placeholder(let placeholder):
                guard let value = placeholder == .session ? session : user, !value.isEmpty,
                    value.unicodeScalars.allSatisfy(Self.isNameCharacter)
                else { return nil }
                name += value
            }
        }
        return name
    }

    /// First occurrence of `text` after at least one other character.
    private static func range(of text: String, in whole: Substring) -> Range<Substring.Index>? {
        guard var start = whole.indices.dropFirst().first else { return nil }
        while start < whole.endIndex {
            if whole[start...].hasPrefix(text) { return start..<whole.index(start, offsetBy: text.count) }
            start = whole.index(after: start)
        }
        return nil
    }

    private static func suffix(_ text: String, of whole: Substring) -> Range<Substring.Index>? {
        guard whole.count > text.count, whole.hasSuffix(text) else { return nil }
        return whole.index(whole.endIndex, offsetBy: -text.count)..<whole.endIndex
    }

    /// Pusher's rule for channel names: letters, digits and `_ - = @ , . ;`.
    private static func isNameCharacter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "-", "=", "@", ",", ".", ";": true
        default: false
        }
    }
}
