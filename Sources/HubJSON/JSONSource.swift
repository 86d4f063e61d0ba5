import CSimdJSON
import Glibc
import HubCore

/// The text of one value inside a parsed document, exactly as it was sent.
///
/// A publisher's data has to reach subscribers byte for byte, so it is copied from the text and not written anew from
/// the parsed value. The walk relies on valid text, and on the same order of members as in the parsed document, where
/// names are already unescaped. Valid as long as the document's elements.
@safe package struct JSONSource {
    /// The same value, parsed.
    package let element: JSONElement
    private let document: UnsafePointer<tandem_json_document>
    private let start: Int
    private let end: Int

    init(root: JSONElement, document: UnsafePointer<tandem_json_document>) {
        let text = unsafe UnsafeRawBufferPointer(start: document.pointee.text, count: document.pointee.text_count)
        // Only white space follows a document's value, so its end is found from the back.
        var end = text.count
        while end > 0, unsafe Self.isSpace(text[end - 1]) { end -= 1 }
        unsafe self.init(root, document, start: Self.skipSpace(text, 0), end: end)
    }

    private init(_ element: JSONElement, _ document: UnsafePointer<tandem_json_document>, start: Int, end: Int) {
        assert(
            unsafe 0 <= start && start < end && end <= document.pointee.text_count,
            "a value from byte \(start) to \(end) in a document of \(unsafe document.pointee.text_count)")
        self.element = element
        unsafe self.document = unsafe document
        self.start = start
        self.end = end
    }

    /// Offsets of the value's text in the document.
    package var range: Range<Int> { start..<end }

    /// A copy of the value's text with its inner white space.
    package var bytes: [UInt8] {
        unsafe Array(text[start..<end])
    }

    /// The first member of that name; nil when there is none or this is no object.
    package func member(_ name: String) -> JSONSource? {
        var result: JSONSource?
        forEachMember { key, value in
            if key.equals(name) { result = value }
            return result == nil
        }
        return result
    }

    /// Calls `body` with the members of an object in the order sent, until it returns false; never, when this is no object.
    package func forEachMember(_ body: (_ key: JSONElement, _ value: JSONSource) -> Bool) {
        let text = unsafe text
        var position = start + 1
        for member in element.members {
            let keyStart = unsafe Self.skipSpace(text, position)
            let colon = unsafe Self.skipSpace(text, Self.skipValue(text, keyStart))
            assert(unsafe text[keyStart] == UInt8(ascii: "\"") && text[colon] == UInt8(ascii: ":"), "no name before byte \(colon)")
            let valueStart = unsafe Self.skipSpace(text, colon + 1)
            let valueEnd = unsafe Self.skipValue(text, valueStart)
            guard body(member.key, unsafe JSONSource(member.value, document, start: valueStart, end: valueEnd)) else { return }
            position = unsafe Self.skipSpace(text, valueEnd) + 1
            assert(unsafe Self.isSeparator(text[position - 1], or: UInt8(ascii: "}")), "no member ends before byte \(position)")
        }
    }

    /// The elements of an array in order; empty when this is no array.
    package var elements: [JSONSource] {
        var result: [JSONSource] = []
        var position = start + 1
        for child in element.elements {
            let childStart = unsafe Self.skipSpace(text, position)
            let childEnd = unsafe Self.skipValue(text, childStart)
            result.append(unsafe JSONSource(child, document, start: childStart, end: childEnd))
            position = unsafe Self.skipSpace(text, childEnd) + 1
            assert(unsafe Self.isSeparator(text[position - 1], or: UInt8(ascii: "]")), "no element ends before byte \(position)")
        }
        return result
    }

    /// Appends the text without the white space between tokens; numbers, escapes and the order of members stay as sent.
    package func appendCompact(to output: inout [UInt8]) {
        let text = unsafe UnsafeRawBufferPointer(rebasing: self.text[start..<end])
        guard element.kind == .object || element.kind == .array else {
            unsafe output.append(contentsOf: text)
            return
        }
        output += unsafe [UInt8](unsafeUninitializedCapacity: text.count) { buffer, count in
            unsafe count = tandem_json_minify(
                text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.count, buffer.baseAddress)
            assert(count > 0 && count <= text.count, "\(text.count) bytes became \(count) without their white space")
        }
    }

    /// Appends a JSON string literal with its quotes. A string keeps its own token as sent; any other value becomes a
    /// string of its compact text. Returns the size of the literal's unescaped content in bytes.
    package func appendStringLiteral(to output: inout [UInt8]) -> Int {
        if let count = element.stringCount {
            unsafe output.append(contentsOf: text[start..<end])
            return count
        }
        var compact: [UInt8] = []
        appendCompact(to: &compact)
        JSONText.appendQuoted(compact, to: &output)
        return compact.count
    }

    private var text: UnsafeRawBufferPointer {
        // Reading the kind checks that the document is still the element's.
        _ = element.kind
        return unsafe UnsafeRawBufferPointer(start: document.pointee.text, count: document.pointee.text_count)
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private static func isSeparator(_ byte: UInt8, or end: UInt8) -> Bool { byte == UInt8(ascii: ",") || byte == end }

    private static func skipSpace(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var position = start
        while position < text.count, unsafe isSpace(text[position]) { position += 1 }
        return position
    }

    /// The position after the value that begins at `start`.
    private static func skipValue(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        guard start < text.count else { return start }
        switch unsafe text[start] {
        case UInt8(ascii: "\""): return unsafe skipString(text, start)
        case UInt8(ascii: "{"), UInt8(ascii: "["): return unsafe skipContainer(text, start)
        default: return unsafe skipScalar(text, start)
        }
    }

    /// Looks at quotes only: a quote after an even number of backslashes ends the string.
    private static func skipString(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        guard let base = text.baseAddress else { return text.count }
        var position = start + 1
        while position < text.count, let found = unsafe memchr(base + position, Int32(UInt8(ascii: "\"")), text.count - position) {
            let quote = unsafe UnsafeRawPointer(found) - base
            var backslashes = 0
            while unsafe text[quote - backslashes - 1] == UInt8(ascii: "\\") { backslashes += 1 }
            if backslashes.isMultiple(of: 2) { return quote + 1 }
            position = quote + 1
        }
        assertionFailure("the string of byte \(start) has no end")
        return text.count
    }

    private static func skipContainer(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var depth = 0
        var position = start
        while position < text.count {
            switch unsafe text[position] {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                position += 1
                if depth == 0 { return position }
            case UInt8(ascii: "\""): position = unsafe skipString(text, position)
            default: position += 1
            }
        }
        assertionFailure("the container of byte \(start) has no end")
        return position
    }

    private static func skipScalar(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var position = start
        while position < text.count {
            switch unsafe text[position] {
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), 0x20, 0x09, 0x0A, 0x0D: return position
            default: position += 1
            }
        }
        return position
    }
}
