internal import Mustache

/// External text (URLs, names, servers' answers) on a page. Mustache's own escaping misses a quote that a combining mark follows.
struct PageText: MustacheContentType {
    /// Escapes HTML, and replaces control characters, which no document may contain, by U+FFFD.
    func escapeText(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "&", "<", ">", "\"", "'": result += "&#\(scalar.value);"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case "\u{0}"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{fffe}", "\u{ffff}": result += "\u{fffd}"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
