internal import HubCore
internal import Mustache

/// A function that a template may apply: `{{uppercased(answer)}}`.
enum TemplateFunction: String, Sendable, CaseIterable {
    case capitalized, lowercased, uppercased, reversed
    case first, last, count
    case plusone, minusone
    case kilometers
    case empty, equalzero, even, odd

    /// Whether the result is true or false, for use in a section.
    var isTest: Bool {
        switch self {
        case .empty, .equalzero, .even, .odd: true
        default: false
        }
    }

    /// The result; nil if the function is not defined for such a value. Null stands for an absent value (`first` of an empty list).
    func apply(to value: JSONValue) -> JSONValue? {
        switch (self, value) {
        case (.capitalized, .string(let text)), (.lowercased, .string(let text)), (.uppercased, .string(let text)):
            return (text.transform(rawValue) as? String).map(JSONValue.string)
        case (.reversed, .string(let text)): return .string(String(text.reversed()))
        case (.empty, .string(let text)): return .bool(text.isEmpty)
        case (.count, .string(let text)): return .int(Int64(text.count))
        case (.reversed, .array(let values)): return .array(values.reversed())
        case (.first, .array(let values)): return values.first ?? .null
        case (.last, .array(let values)): return values.last ?? .null
        case (.count, .array(let values)): return .int(Int64(values.count))
        case (.empty, .array(let values)): return .bool(values.isEmpty)
        case (.count, .object(let members)): return .int(Int64(members.count))
        case (.empty, .object(let members)): return .bool(members.isEmpty)
        // Saturating: the library's own functions trap at the ends of the range, and the number comes from a publisher.
        case (.plusone, .int(let number)): return .int(number == .max ? .max : number + 1)
        case (.minusone, .int(let number)): return .int(number == .min ? .min : number - 1)
        case (.kilometers, .int(let meters)): return .string(Self.thousandths(Double(meters)))
        case (.kilometers, .double(let meters)): return .string(Self.thousandths(meters))
        case (.equalzero, .int(let number)): return .bool(number == 0)
        case (.even, .int(let number)): return .bool(number & 1 == 0)
        case (.odd, .int(let number)): return .bool(number & 1 == 1)
        default: return nil
        }
    }

    /// A thousandth with at most three decimals, without trailing zeros: 3000 is "3", 1500 is "1.5".
    private static func thousandths(_ number: Double) -> String {
        let rounded = number.rounded()
        guard let whole = Int64(exactly: rounded) else { return JSONValue.double(number / 1000).text }
        let (thousands, rest) = whole.magnitude.quotientAndRemainder(dividingBy: 1000)
        var decimals = String(rest + 1000).dropFirst()
        while decimals.last == "0" { decimals.removeLast() }
        return (whole < 0 ? "-" : "") + "\(thousands)" + (decimals.isEmpty ? "" : ".\(decimals)")
    }
}
