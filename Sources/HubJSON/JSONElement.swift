import CSimdJSON
package import HubCore

/// One value of a parsed document: sixteen bytes, no ownership.
///
/// Valid until its parser parses again, which every access checks, and while the parser lives, which the caller
/// guarantees.
@safe package struct JSONElement {
    package enum Kind: Sendable {
        case null, bool, int, double, string, array, object
    }

    private let document: UnsafePointer<tandem_json_document>
    private let index: UInt32
    private let generation: UInt32

    init(document: UnsafePointer<tandem_json_document>, index: UInt32, generation: UInt32) {
        unsafe self.document = unsafe document
        self.index = index
        self.generation = generation
    }

    /// Whether this is the whole of that document.
    func isRoot(of document: UnsafePointer<tandem_json_document>) -> Bool { unsafe index == 1 && self.document == document }

    /// Integers that do not fit Int64 count as doubles.
    package var kind: Kind {
        switch tag {
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "l"): .int
        case UInt8(ascii: "u"), UInt8(ascii: "d"): .double
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        default: .null
        }
    }

    /// Whether this is null.
    package var isNull: Bool { kind == .null }

    /// Nil for everything but true and false.
    package var bool: Bool? {
        switch tag {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// An integer written without fraction or exponent that fits; nil for everything else.
    package var int: Int64? {
        tag == UInt8(ascii: "l") ? unsafe tandem_json_int64(document, index) : nil
    }

    /// A non-negative integer written without fraction or exponent that fits; nil for everything else.
    package var unsignedInt: UInt64? {
        switch tag {
        case UInt8(ascii: "u"): unsafe tandem_json_uint64(document, index)
        case UInt8(ascii: "l"): UInt64(exactly: unsafe tandem_json_int64(document, index))
        default: nil
        }
    }

    /// Any number, rounded to the nearest double.
    package var double: Double? {
        switch tag {
        case UInt8(ascii: "d"): unsafe tandem_json_double(document, index)
        case UInt8(ascii: "l"): Double(unsafe tandem_json_int64(document, index))
        case UInt8(ascii: "u"): Double(unsafe tandem_json_uint64(document, index))
        default: nil
        }
    }

    /// The unescaped UTF-8 of a string, owned by the parser; nil when this is no string.
    package var stringBytes: UnsafeBufferPointer<UInt8>? {
        guard tag == UInt8(ascii: "\"") else { return nil }
        return unsafe UnsafeBufferPointer(
            start: tandem_json_string(document, index), count: Int(tandem_json_string_count(document, index)))
    }

    /// The unescaped size of a string in UTF-8 bytes; nil when this is no string.
    package var stringCount: Int? {
        tag == UInt8(ascii: "\"") ? Int(unsafe tandem_json_string_count(document, index)) : nil
    }

    /// A copy of a string's unescaped text; nil when this is no string.
    package var string: String? {
        unsafe stringBytes.map { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// As `string`, for texts that come again and again: one that came lately is not copied.
    package func string(from memory: TextMemory) -> String? {
        unsafe stringBytes.map { unsafe memory.text(of: UnsafeRawBufferPointer($0)) }
    }

    /// Whether this is the string `text`. Makes no copy.
    package func isString(_ text: StaticString) -> Bool {
        unsafe stringBytes.map { unsafe text.isEqual(to: $0) } ?? false
    }

    /// As `isString`, for a text that is known only at run time. It has a name of its own, because a literal would be a `String`,
    /// which costs 45 instructions a byte.
    func equals(_ text: String) -> Bool {
        guard let bytes = unsafe stringBytes, bytes.count == text.utf8.count else { return false }
        return unsafe bytes.elementsEqual(text.utf8)
    }

    /// The first member of that name; nil when there is none or this is no object. Walks the members in order.
    package func find(_ name: StaticString) -> JSONElement? {
        for member in members where member.key.isString(name) { return member.value }
        return nil
    }

    /// The members of an object in the order sent, repeated names included; empty when this is no object.
    package var members: JSONMembers { JSONMembers(elements: children(of: UInt8(ascii: "{"))) }

    /// The elements of an array; empty when this is no array.
    package var elements: JSONElements { children(of: UInt8(ascii: "[")) }

    /// The value as a `JSONValue`. Among repeated names the first counts. The parser's depth bounds the recursion.
    package var value: JSONValue {
        switch kind {
        case .null: return .null
        case .bool: return .bool(bool == true)
        case .int: return .int(int ?? 0)
        case .double: return .double(double ?? 0)
        case .string: return .string(string ?? "")
        case .array: return .array(elements.map { $0.value })
        case .object:
            var result: [String: JSONValue] = [:]
            for member in members {
                let name = member.key.string ?? ""
                if result[name] == nil { result[name] = member.value.value }
            }
            return .object(result)
        }
    }

    /// The value as compact JSON text, members in the order sent. Numbers and escapes are written anew, so the text may
    /// differ from the one parsed; `JSONSource.appendCompact` keeps them.
    package var minified: [UInt8] {
        var output: [UInt8] = []
        appendMinified(to: &output)
        return output
    }

    /// As `minified`, but appended to the caller's buffer.
    package func appendMinified(to output: inout [UInt8]) {
        switch kind {
        case .null: output += "null".utf8
        case .bool: output += (bool == true ? "true" : "false").utf8
        case .int: output += String(int ?? 0).utf8
        case .double:
            if let integer = unsignedInt {
                output += String(integer).utf8
            } else {
                output += "\(double ?? 0)".utf8
            }
        case .string:
            if let bytes = unsafe stringBytes { unsafe JSONText.appendQuoted(bytes, to: &output) }
        case .array:
            output.append(UInt8(ascii: "["))
            var isFirst = true
            for element in elements {
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                element.appendMinified(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object:
            output.append(UInt8(ascii: "{"))
            var isFirst = true
            for member in members {
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                member.key.appendMinified(to: &output)
                output.append(UInt8(ascii: ":"))
                member.value.appendMinified(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    private var tag: UInt8 {
        checkGeneration()
        return unsafe tandem_json_kind(document, index)
    }

    private func children(of tag: UInt8) -> JSONElements {
        guard self.tag == tag else { return JSONElements(upcoming: self, end: index) }
        // The container's closing word is the last one before the next element.
        let end = unsafe tandem_json_after(document, index) - 1
        assert(end > index, "a container of word \(index) ends with word \(end)")
        return JSONElements(upcoming: sibling(at: index + 1), end: end)
    }

    private func sibling(at index: UInt32) -> JSONElement {
        unsafe JSONElement(document: document, index: index, generation: generation)
    }

    private func checkGeneration() {
        precondition(
            unsafe document.pointee.generation == generation, "a JSON element was used after its parser parsed again")
    }

    /// The elements of one array, or the alternating names and values of one object.
    package struct JSONElements: Sequence, IteratorProtocol {
        fileprivate var upcoming: JSONElement
        fileprivate let end: UInt32

        /// The next element; nil after the last. Stops the program after the parser's next `parse`.
        package mutating func next() -> JSONElement? {
            upcoming.checkGeneration()
            assert(upcoming.index <= end, "element \(upcoming.index) lies behind the container's end \(end)")
            guard upcoming.index != end else { return nil }
            defer { upcoming = upcoming.sibling(at: unsafe tandem_json_after(upcoming.document, upcoming.index)) }
            return upcoming
        }
    }

    /// The members of one object; a key is always a string.
    package struct JSONMembers: Sequence, IteratorProtocol {
        fileprivate var elements: JSONElements

        /// The next member; nil after the last. Stops the program after the parser's next `parse`.
        package mutating func next() -> (key: JSONElement, value: JSONElement)? {
            guard let key = elements.next() else { return nil }
            assert(key.kind == .string, "word \(key.index) is a name and no string")
            guard let value = elements.next() else {
                assertionFailure("word \(key.index) is a name without a value")
                return nil
            }
            return (key, value)
        }
    }
}

extension JSONValue {
    /// Parses one document on any thread; makes a parser of its size each time.
    package init(parsing bytes: [UInt8], depthMax: Int = JSONParser.depthMaxDefault) throws(JSONError) {
        let parser = JSONParser(
            capacityBytes: min(max(bytes.count, 1), JSONParser.capacityBytesMax), depthMax: depthMax)
        // The elements must not outlive the parser, and nothing else refers to it.
        defer { withExtendedLifetime(parser) {} }
        self = try parser.parse(bytes).value
    }

    /// Parses one document on any thread, at the default depth.
    package init(parsing text: String) throws(JSONError) {
        self = try JSONValue(parsing: Array(text.utf8))
    }
}
