/// Why a notification cannot be put into a gateway's form; becomes a rejected outcome.
struct PayloadFault: Error, Equatable {
    let reason: String
}

/// How much of the visible texts is sent: whole characters as a person sees them, so that no emoji loses half of itself.
struct TextCut: Equatable {
    static let ellipsis = "…"
    static let none = TextCut(titleMax: nil, bodyMax: nil)

    /// Characters before the ellipsis; nil: all of it.
    var titleMax: Int?
    var bodyMax: Int?

    func title(_ text: String) -> String { Self.cut(text, titleMax) }
    func body(_ text: String) -> String { Self.cut(text, bodyMax) }

    private static func cut(_ text: String, _ max: Int?) -> String {
        guard let max, let end = text.index(text.startIndex, offsetBy: max, limitedBy: text.endIndex), end < text.endIndex else { return text }
        return text[..<end] + ellipsis
    }
}

/// Making visible text short enough for a gateway: by bytes, body before title, at character boundaries, with an
/// ellipsis, and never at the cost of ids.
enum PayloadFit {
    /// The least that has to be cut off so that the payload fits; nil when it does not fit even without any text.
    /// - Parameters:
    ///   - titles: all texts that say the title, on whatever platform; likewise `bodies`.
    ///   - size: bytes of the payload with the texts cut like this, as sent: escapes count.
    static func fit(titles: [String], bodies: [String], bytesMax: Int, size: (TextCut) -> Int) -> TextCut? {
        if size(.none) <= bytesMax { return TextCut.none }
        let bodyMax = bodies.map(\.count).max() ?? 0
        if bodyMax > 0, let count = longest(bodyMax, fits: { size(TextCut(titleMax: nil, bodyMax: $0)) <= bytesMax }) {
            return TextCut(titleMax: nil, bodyMax: count)
        }
        let titleMax = titles.map(\.count).max() ?? 0
        guard titleMax > 0 else { return nil }
        return longest(titleMax) { size(TextCut(titleMax: $0, bodyMax: 0)) <= bytesMax }.map { TextCut(titleMax: $0, bodyMax: 0) }
    }

    /// The largest number of characters below `count` that fits, found by halving: size grows with length.
    private static func longest(_ count: Int, fits: (Int) -> Bool) -> Int? {
        guard fits(0) else { return nil }
        var (low, high) = (0, count - 1)
        while low < high {
            let middle = (low + high + 1) / 2
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        return low
    }
}
