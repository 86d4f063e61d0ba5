internal import HubCore

/// The forms of text that gateways read.
enum ContentText {
    /// FCM's Duration, such as `"3.5s"`, with up to nine decimals; nil for anything else.
    static func duration(_ text: String, secondsMax: Int64) -> String? {
        guard text.hasSuffix("s") else { return nil }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts.allSatisfy(isDigits), let seconds = Int64(parts[0]), (0...secondsMax).contains(seconds)
        else { return nil }
        if parts.count == 2, parts[1].utf8.count > 9 || seconds == secondsMax && parts[1].contains(where: { $0 != "0" }) { return nil }
        return text
    }

    static func isTime(_ text: String) -> Bool { Timestamp.milliseconds(iso8601: text) != nil }

    static func isColour(_ text: String) -> Bool {
        text.utf8.count == 7 && text.utf8.first == UInt8(ascii: "#") && text.utf8.dropFirst().allSatisfy(isHex)
    }

    /// FCM's Color of `#rrggbb` or `#rrggbbaa`; nil for anything else.
    static func lightColour(_ text: String) -> JSONValue? {
        guard text.utf8.first == UInt8(ascii: "#"), [7, 9].contains(text.utf8.count), text.utf8.dropFirst().allSatisfy(isHex) else {
            return nil
        }
        let digits = Array(text.dropFirst())
        func part(_ index: Int) -> Double {
            guard index * 2 + 1 < digits.count else { return 1 }
            return Double(Int(String(digits[(index * 2)...(index * 2 + 1)]), radix: 16) ?? 0) / 255
        }
        return ["red": .double(part(0)), "green": .double(part(1)), "blue": .double(part(2)), "alpha": .double(part(3))]
    }

    /// `[a-zA-Z0-9-_.~%]`, at least one.
    static func isLabel(_ text: String, charactersMax: Int) -> Bool {
        (1...charactersMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in isAlphanumeric(byte) || "-_.~%".utf8.contains(byte) }
    }

    /// The header `Topic` of web push (RFC 8030, 5.4): at most 32 URL-safe characters.
    static func isWebTopic(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count) && text.utf8.allSatisfy { isAlphanumeric($0) || "-_".utf8.contains($0) }
    }

    static func isDigits(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: false
        }
    }
}
