internal import Foundation

/// The number format of reports: three significant digits, groups of thousands, and fitting units.
package enum NumberText {
    /// `1,234,567`, `12.3`, `0.041`; whole numbers without decimals.
    package static func plain(_ value: Double) -> String {
        guard value.isFinite else {
            return "–"
        }
        let size = abs(value)
        if size >= 1_000 || value == value.rounded() {
            return grouped(value.rounded())
        }
        return fixed(value, digits: size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.001 ? 3 : 6)
    }

    /// The number with its unit in readable form.
    package static func plain(_ value: Double, unit: String) -> String {
        unit.isEmpty ? plain(value) : "\(plain(value)) \(shown(unit: unit))"
    }

    /// The readable form of a unit.
    package static func shown(unit: String) -> String {
        unit == "us" ? "µs" : unit
    }

    /// Microseconds as µs, ms or s.
    package static func duration(microseconds: Double) -> String {
        switch microseconds {
        case ..<1_000: "\(plain(microseconds)) µs"
        case ..<1_000_000: "\(plain(microseconds / 1_000)) ms"
        default: "\(plain(microseconds / 1_000_000)) s"
        }
    }

    /// For axes and bounds: `250`, `10k`, `1.5M`, without trailing zeros.
    package static func short(_ value: Double) -> String {
        let (divisor, suffix) =
            switch abs(value) {
            case 1e9...: (1e9, "G")
            case 1e6...: (1e6, "M")
            case 1e4...: (1e3, "k")
            default: (1.0, "")
            }
        var digits = plain(value / divisor)
        while digits.contains("."), digits.last == "0" || digits.last == "." {
            digits.removeLast()
        }
        return digits + suffix
    }

    /// The percentage of a share from 0 to 1 for a drawing: at most two decimals, less than a pixel.
    static func percentage(_ share: Double) -> String {
        let hundredths = (share * 10_000).rounded()
        return hundredths.remainder(dividingBy: 100) == 0 ? String(Int(hundredths / 100)) : String(hundredths / 100)
    }

    private static func fixed(_ value: Double, digits: Int) -> String {
        String(format: "%.\(digits)f", value)
    }

    private static func grouped(_ value: Double) -> String {
        let digits = String(format: "%.0f", abs(value))
        var result = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 {
                result.append(",")
            }
            result.append(digit)
        }
        return value < 0 ? "-\(result)" : result
    }
}
