/// Parsing of scalars, by the same rules in files, in the environment and on the command line.
package enum YAMLScalar {
    /// `true` or `false`, and no other spelling.
    package static func bool(_ text: String) -> Bool? {
        switch text {
        case "true": true
        case "false": false
        default: nil
        }
    }

    /// Decimal digits with an optional minus, in 64 bits. No leading zeros: `007` is a name, not a number.
    package static func integer(_ text: String) -> Int64? {
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard let first = digits.first, digits.allSatisfy(isDigit) else { return nil }
        if first == UInt8(ascii: "0") && digits.count > 1 { return nil }
        return Int64(text)
    }

    /// A finite decimal fraction or a number with an exponent, as JSON writes them.
    package static func double(_ text: String) -> Double? {
        guard let first = text.utf8.first, first == UInt8(ascii: "-") || isDigit(first),
            text.utf8.allSatisfy({ isDigit($0) || "+-.eE".utf8.contains($0) }),
            text.utf8.contains(where: { ".eE".utf8.contains($0) })
        else { return nil }
        // A second point marks a version number or an address, which `Double` refuses as well.
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// A whole number with its unit: `250ms`, `15s`, `5m`, `2h`, `3d`.
    package static func duration(_ text: String) -> Duration? {
        guard let (number, unit) = numberAndUnit(text) else { return nil }
        let milliseconds: Int64
        switch unit {
        case "ms": milliseconds = 1
        case "s": milliseconds = 1000
        case "m": milliseconds = 60_000
        case "h": milliseconds = 3_600_000
        case "d": milliseconds = 86_400_000
        default: return nil
        }
        let (total, overflow) = number.multipliedReportingOverflow(by: milliseconds)
        assert(overflow || total >= 0, "\(number) times \(milliseconds) ms made \(total)")
        return overflow || total > durationMillisecondsMax ? nil : .milliseconds(total)
    }

    /// A whole number of bytes: `10240`, or with a unit `512B`, `10KiB`, `1MiB`, `1GiB`.
    package static func byteSize(_ text: String) -> Int? {
        guard let (number, unit) = numberAndUnit(text) else { return nil }
        let factor: Int64
        switch unit {
        case "", "B": factor = 1
        case "KiB": factor = 1 << 10
        case "MiB": factor = 1 << 20
        case "GiB": factor = 1 << 30
        default: return nil
        }
        let (total, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : Int(exactly: total)
    }

    /// A hundred years; adding more to a clock could overflow.
    private static let durationMillisecondsMax: Int64 = 100 * 366 * 86_400_000

    private static func numberAndUnit(_ text: String) -> (number: Int64, unit: Substring)? {
        let digits = text.prefix { $0.isASCII && $0.isWholeNumber }
        guard !digits.isEmpty, let number = Int64(digits) else { return nil }
        return (number, text[digits.endIndex...])
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
