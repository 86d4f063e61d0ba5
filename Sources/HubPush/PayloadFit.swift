/// Why a notification cannot be put into a gateway's form; becomes a rejected outcome.
struct PayloadFault: Error, Equatable {
    let reason: String
}

/// Making visible text short enough for a gateway: by bytes, body before title, at character boundaries, with an
/// ellipsis, and never at the cost of ids.
enum PayloadFit {
    static let ellipsis = "…"

    /// The longest texts whose payload still fits; nil when it does not fit even without any text.
    /// - Parameter size: bytes of the payload with these texts, as sent: escapes count.
    static func fit(
        title: String?, body: String?, bytesMax: Int, size: (_ title: String?, _ body: String?) -> Int
    ) -> (title: String?, body: String?)? {
        if size(title, body) <= bytesMax { return (title, body) }
        var shortBody = body
        if let body {
            if let fitting = longest(body, fits: { size(title, $0) <= bytesMax }) { return (title, fitting) }
            shortBody = ellipsis
        }
        guard let title, let fitting = longest(title, fits: { size($0, shortBody) <= bytesMax }) else { return nil }
        return (fitting, shortBody)
    }

    /// The longest beginning of `text` that fits with an ellipsis, found by halving: size grows with length.
    private static func longest(_ text: String, fits: (String) -> Bool) -> String? {
        guard fits(ellipsis) else { return nil }
        // Whole characters as a person sees them, so that no emoji loses half of itself.
        let ends = text.indices.map { $0 }
        var low = 0
        var high = ends.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if fits(text[..<ends[middle]] + ellipsis) { low = middle } else { high = middle - 1 }
        }
        return ends.isEmpty ? ellipsis : text[..<ends[low]] + ellipsis
    }
}
