/// Reason why a notification does not fit a gateway's format; becomes a rejected outcome.
struct PayloadFault: Error, Equatable {
    let reason: String
}

/// Length of the visible texts in whole characters, so that no emoji is cut in half.
struct TextCut: Equatable {
    static let ellipsis = "…"
    static let none = TextCut(titleMax: nil, bodyMax: nil)

    /// Characters before the ellipsis; nil: uncut.
    var titleMax: Int?
    var bodyMax: Int?

    func title(_ text: String) -> String { Self.cut(text, titleMax) }
    func body(_ text: String) -> String { Self.cut(text, bodyMax) }

    private static func cut(_ text: String, _ max: Int?) -> String {
        guard let max, let end = text.index(text.startIndex, offsetBy: max, limitedBy: text.endIndex), end < text.endIndex else {
            return text
        }
        return text[..<end] + ellipsis
    }
}

/// Cuts visible text to a gateway's byte limit: body before title, at character boundaries, with an ellipsis. Ids are never cut.
enum PayloadFit {
    /// The smallest cut that makes the payload fit; nil if it does not fit even without text.
    /// - Parameters:
    ///   - titles: all texts that serve as title on some platform; `bodies` likewise.
    ///   - size: bytes of the payload as sent, escapes included, with this cut.
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

    /// The largest fitting number of characters below `count`, by bisection: size grows with length.
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
