import HubCore
import HubTesting

extension SeededRandom {
    /// JSON text, mostly valid, with an occasional invalid piece.
    mutating func json(depth: Int = 4) -> String {
        if depth > 0, chance(1, in: 2) {
            let count = below(5)
            if chance(1, in: 2) {
                return "[" + (0..<count).map { _ in space() + json(depth: depth - 1) }.joined(separator: ",") + space() + "]"
            }
            return "{" + (0..<count).map { _ in space() + jsonString() + space() + ":" + json(depth: depth - 1) }.joined(separator: ",")
                + space() + "}"
        }
        switch below(8) {
        case 0, 1, 2: return jsonString()
        case 3: return String(Int64(truncatingIfNeeded: next()) >> Int64(below(64)))
        case 4, 5: return element(of: Self.numbers)
        default: return element(of: ["true", "false", "null", "{}", "[]", "\"\"", "\"{}\""])
        }
    }

    /// A JSON string token.
    mutating func jsonString() -> String {
        if chance(1, in: 3) { return "\"" + element(of: Self.words) + "\"" }
        return "\"" + (0..<below(6)).map { _ in element(of: Self.pieces) }.joined() + "\""
    }

    mutating func space() -> String { chance(1, in: 4) ? element(of: [" ", "\n", "\t", "\r", "  ", " \r\n "]) : "" }

    /// The text as a JSON string token, sometimes with unnecessary escapes.
    mutating func quoted(_ text: String) -> String {
        var output: [UInt8] = []
        JSONText.appendQuoted(text.utf8, to: &output)
        let plain = String(decoding: output, as: UTF8.self)
        guard chance(1, in: 12), let first = text.utf8.first, first < 0x80, first != 0x22, first != 0x5C, first >= 0x20 else {
            return plain
        }
        let digits = String(first, radix: 16)
        return "\"\\u00" + (digits.count == 1 ? "0" : "") + digits + plain.dropFirst(2)
    }

    private static let words = ["a", "event", "data", "channel", "client-x", "user_id", "auth", "é", "日本", "pusher:ping", "0"]
    private static let numbers = [
        "0", "-0", "1", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
        "18446744073709551615", "18446744073709551616", "1e308", "1e400", "1E-400", "0.1", "1.5e+3", "2.2250738585072014e-308",
        "9007199254740993",
        "01", "1.", ".5", "+1", "-", "1e", "NaN", "0x10", "5e-324", "123456789012345678901234567890", "0.0000000000000000000000000000001",
    ]
    private static let pieces = [
        "a", "Z", " ", "/", "\\/", "\\\\", "\\\"", "\\n", "\\t", "\\b", "\\f", "\\r", "\\u0041", "\\u0000", "\\u001f", "\\u00e9", "\\u2028",
        "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\ud83d\\u0041", "\\x", "\\u12", "é", "€", "😀", "\u{7F}", "\u{80}", "\u{FEFF}", "\u{FFFF}",
        "\u{10FFFF}",
        "{", "}", "[", "]", ":", ",", "'", "null", "\t", "\u{1}", "e\u{301}",
    ]

    /// A text of any kind.
    mutating func word() -> String { element(of: Self.words) }

    static let jsonTokens = [
        "{", "}", "[", "]", ":", ",", "\"", "\\", "\\\"", "\\u0000", "\\ud800", "null", "true", "false", "1e999", "-", "{}", "[]", "\"\"",
        "[[[[[[[[", "]]]]]]]]",
        "{\"a\":", "é", "\u{FEFF}", " ",
    ]
}
