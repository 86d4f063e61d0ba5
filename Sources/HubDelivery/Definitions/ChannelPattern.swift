internal import HubCore

/// The channel names that one definition is about: `presence-game-{session}`.
///
/// Literal text with one or two placeholders. A placeholder stands for one or more characters of a channel name; with
/// two, the first takes as few as it can, so the text between them should not occur in session names.
package struct ChannelPattern: Sendable, Hashable, CustomStringConvertible {
    /// What a placeholder can be called.
    package enum Placeholder: String, Sendable, CaseIterable { case session, user }

    /// What a matching name has in the placeholders' places.
    package struct Match: Sendable, Equatable {
        package var session: String?
        package var user: String?

        package init(session: String? = nil, user: String? = nil) {
            self.session = session
            self.user = user
        }
    }

    /// What is wrong with a pattern, and what to write instead.
    package struct Invalid: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    private enum Part: Hashable {
        case literal(String)
        case placeholder(Placeholder)
    }

    /// The pattern as written.
    package let description: String
    private let parts: [Part]
    /// The literal text in front of the first placeholder: what most other names already lack.
    package let prefix: String

    /// The kinds whose subscriptions are signed: only there does the hub know who a subscriber is. Encrypted channels are
    /// missing because the hub cannot read what is published on them.
    private static let kinds = ["private-", "presence-"]
    /// Pusher's documented bound on a channel's name, its kind included.
    package static let nameCharactersMax = 164

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

    /// In the order of the name.
    package var placeholders: [Placeholder] {
        parts.compactMap { if case .placeholder(let placeholder) = $0 { placeholder } else { nil } }
    }

    /// The pattern with its placeholders' names taken out: two patterns with one shape match the same names.
    package var shape: String {
        parts.map { if case .literal(let text) = $0 { text } else { "{}" } }.joined()
    }

    /// How many characters are literal: of two patterns that match a name, the one with more of them is the more particular.
    package var literalCount: Int {
        parts.reduce(0) { if case .literal(let text) = $1 { $0 + text.utf8.count } else { $0 } }
    }

    /// What the placeholders stand for in `name`; nil when it does not match. Most names end at the prefix.
    package func match(_ name: String) -> Match? {
        // All patterns begin with a kind that does; most channels of a busy hub are told apart by it.
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

    /// The name with the placeholders filled in; nil when a value is missing, empty or cannot be in a channel's name.
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

    /// The first place of `text` that leaves at least one character in front of it.
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
