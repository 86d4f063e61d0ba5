/// A JSON document as a value, used by definitions, sessions and notifications.
///
/// The publish path never makes one; it works on the parsed bytes. Objects do not keep the order of members, which has
/// no meaning in JSON. Members are written in key order, so equal values give equal bytes.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The member of that name, when this is an object that has one.
    package subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// The text of a string; nil for every other kind.
    package var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    /// A boolean; nil for every other kind.
    package var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// An integer; nil for every other kind, doubles included.
    package var intValue: Int64? { if case .int(let value) = self { value } else { nil } }
    /// The members of an object; nil for every other kind.
    package var objectValue: [String: JSONValue]? { if case .object(let value) = self { value } else { nil } }
    /// The elements of an array; nil for every other kind.
    package var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The value as compact JSON text in UTF-8.
    package func serialized() -> [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    /// The value as compact JSON text.
    package var text: String { String(decoding: serialized(), as: UTF8.self) }

    /// Appends the value as compact JSON text. A double that JSON cannot express (NaN, infinity) is written as null.
    package func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .int(let value): output += String(value).utf8
        case .double(let value): output += (value.isFinite ? "\(value)" : "null").utf8
        case .string(let value): JSONText.appendQuoted(value.utf8, to: &output)
        case .array(let values):
            output.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                value.write(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let members):
            output.append(UInt8(ascii: "{"))
            for (index, key) in members.keys.sorted().enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                JSONText.appendQuoted(key.utf8, to: &output)
                output.append(UInt8(ascii: ":"))
                members[key, default: .null].write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A string.
    package init(stringLiteral value: String) { self = .string(value) }
    /// An integer.
    package init(integerLiteral value: Int64) { self = .int(value) }
    /// A boolean.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An array.
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object; of repeated keys the last counts.
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}

/// Escaping of JSON strings, in one place (RFC 8259, 7).
package enum JSONText {
    /// Appends `text` as a JSON string with its quotes. `text` is UTF-8; everything but the quote, the backslash and
    /// control characters is written as it is.
    package static func appendQuoted(_ text: some Sequence<UInt8>, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        appendEscaped(text, to: &output)
        output.append(UInt8(ascii: "\""))
    }

    /// Appends the inside of a JSON string, without quotes.
    package static func appendEscaped(_ text: some Sequence<UInt8>, to output: inout [UInt8]) {
        // The loop runs over a concrete type: from another module, a generic one allocates for every byte of an array.
        let isDone: Void? = text.withContiguousStorageIfAvailable { unsafe appendEscaped($0, to: &output) }
        if isDone == nil { unsafe Array(text).withUnsafeBufferPointer { unsafe appendEscaped($0, to: &output) } }
    }

    private static func appendEscaped(_ text: UnsafeBufferPointer<UInt8>, to output: inout [UInt8]) {
        for unsafe byte in unsafe text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(byte)
            case 0x0A: output += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case 0x0D: output += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
            case 0x09: output += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            case 0..<0x20:
                output += "\\u00".utf8
                output.append(hexDigits[Int(byte >> 4)])
                output.append(hexDigits[Int(byte & 15)])
            default: output.append(byte)
            }
        }
    }

    private static let hexDigits = Array("0123456789abcdef".utf8)
}
