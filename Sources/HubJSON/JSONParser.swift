import CSimdJSON
package import HubCore

/// The reason why a text is no valid JSON document, as a phrase to follow "is not valid JSON: ". Never quotes the text.
package struct JSONError: Error, Equatable, CustomStringConvertible {
    /// A phrase, in lower case and without a full stop.
    package let message: String
    package var description: String { message }

    /// A phrase that does not quote the text.
    package init(message: String) {
        self.message = message
    }
}

/// A reusable JSON parser over simdjson's DOM: RFC 8259 in full, UTF-8 included.
///
/// One per thread. All memory is taken by the initializer; parsing then allocates nothing. A parser holds one document
/// at a time: elements and sources are valid until the next `parse` and no longer than the parser itself. Use after the
/// next `parse` stops the program with a message; use after the parser's end is undefined.
///
/// Stricter than the grammar in one point: numbers that fit neither 64-bit integers nor a double are refused.
@safe package final class JSONParser {
    /// The default depth of nested arrays and objects. Real events nest a handful of times, and recursive walks of a
    /// document rely on the bound.
    package static let depthMaxDefault = 32

    /// The largest capacity; simdjson's own limit is 4 GiB.
    package static let capacityBytesMax = 1 << 30

    /// Longer documents are refused unread.
    package let capacityBytes: Int
    /// Names that documents bring again and again.
    package let names = TextMemory(count: 64)
    private let handle: OpaquePointer
    private let document: UnsafePointer<tandem_json_document>

    /// - Parameters:
    ///   - capacityBytes: of the largest document accepted; 1 ... `capacityBytesMax`. Reserves about sixteen times as
    ///     much address space; only the pages in use take memory.
    ///   - depthMax: nested arrays and objects, at least 1; an empty one inside the innermost is not counted.
    package init(capacityBytes: Int, depthMax: Int = JSONParser.depthMaxDefault) {
        precondition(
            capacityBytes > 0 && capacityBytes <= Self.capacityBytesMax && depthMax > 0,
            "\(capacityBytes) bytes, depth \(depthMax)")
        // simdjson counts the document itself as a level.
        guard let handle = unsafe tandem_json_parser_create(capacityBytes, depthMax + 1) else {
            preconditionFailure("no memory for a JSON parser of \(capacityBytes) bytes")
        }
        self.capacityBytes = capacityBytes
        unsafe self.handle = unsafe handle
        unsafe document = unsafe tandem_json_parser_document(handle)
    }

    deinit {
        unsafe tandem_json_parser_destroy(handle)
    }

    /// Parses a copy of the bytes, which the caller need not keep.
    package func parse(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSONElement {
        guard bytes.count <= capacityBytes else {
            throw JSONError(message: "document of \(bytes.count) bytes, more than the \(capacityBytes) allowed")
        }
        let former = unsafe document.pointee.generation
        let error = unsafe tandem_json_parser_parse(
            handle, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        assert(unsafe document.pointee.generation == former &+ 1, "generation \(former) went on after another document")
        assert(unsafe document.pointee.text_count == bytes.count, "the parser keeps another text than the one given")
        guard error == 0 else { throw JSONError(message: unsafe String(cString: tandem_json_error_text(error))) }
        return unsafe JSONElement(document: document, index: 1, generation: document.pointee.generation)
    }

    /// As above, for bytes in an array.
    package func parse(_ bytes: [UInt8]) throws(JSONError) -> JSONElement {
        let result = unsafe bytes.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in unsafe try parse(bytes) }
        }
        return try result.get()
    }

    /// As above, for text; a string's UTF-8 is always valid.
    package func parse(_ text: String) throws(JSONError) -> JSONElement {
        var text = text
        let result = text.withUTF8 { bytes in
            Result { () throws(JSONError) in unsafe try parse(UnsafeRawBufferPointer(bytes)) }
        }
        return try result.get()
    }

    /// The source text of `root`, the document that `parse` returned last. For members that are passed on byte for
    /// byte.
    package func source(of root: JSONElement) -> JSONSource {
        precondition(unsafe root.isRoot(of: document), "only a whole document of this parser has a source; ask that for its members")
        return unsafe JSONSource(root: root, document: document)
    }

    /// The raw token, with its quotes and escapes, of a top-level member that is a string; nil for a missing member or
    /// another kind. The first member of that name counts, as in `JSONElement.find`.
    package func rawString(ofMember name: String, of root: JSONElement) -> [UInt8]? {
        guard let member = source(of: root).member(name), member.element.kind == .string else { return nil }
        return member.bytes
    }
}

@available(*, unavailable)
extension JSONParser: Sendable {}
