/// A notification's texts in several languages, chosen by a device's locale.
package struct LocaleTexts: Sendable, Equatable {
    /// Texts by language tag in lower case, with `-`.
    private let byTag: [String: NotificationTemplate]

    static let none = LocaleTexts([:])

    /// - Parameter byTag: by language tag in any case, with `-` or `_`.
    init(_ byTag: [String: NotificationTemplate]) {
        self.byTag = Dictionary(byTag.map { (Self.canonical($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    var templates: [NotificationTemplate] { Array(byTag.values) }
    /// Whether only the definition's own texts exist.
    package var isEmpty: Bool { byTag.isEmpty }

    /// Tags that have texts, sorted.
    package var tags: [String] { byTag.keys.sorted() }

    /// Tag whose texts a device gets: `de-CH`, then `de`; nil for the definition's own texts.
    package func tag(for locale: String?) -> String? {
        guard !byTag.isEmpty, let locale else { return nil }
        var tag = Self.canonical(locale)[...]
        while !tag.isEmpty {
            if byTag[String(tag)] != nil { return String(tag) }
            guard let end = tag.lastIndex(of: "-") else { return nil }
            tag = tag[..<end]
        }
        return nil
    }

    subscript(tag: String) -> NotificationTemplate? { byTag[tag] }

    /// Lower case, with `-`: systems write `de_CH` and `de-CH`.
    static func canonical(_ locale: String) -> String { locale.lowercased().replacing("_", with: "-") }

    /// Whether a text is a language tag: letters and digits in parts of one to eight, the first of letters (RFC 5646 in short).
    static func isTag(_ text: String) -> Bool {
        let parts = canonical(text).split(separator: "-", omittingEmptySubsequences: false)
        guard let first = parts.first, (2...8).contains(first.utf8.count), first.utf8.allSatisfy(isLetter) else { return false }
        return parts.dropFirst().allSatisfy {
            (1...8).contains($0.utf8.count) && $0.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
}
