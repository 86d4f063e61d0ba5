internal import HubCore

/// Parses a whole head, line by line.
@safe struct HeadParser {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var fields: HeadFields

    /// - Parameter bytes: the head from its first line to its last, empty one. Lines end with CR and LF.
    init(_ bytes: UnsafeRawBufferPointer) {
        // The walks below end by this line alone, and would go on through other peers' bytes without it.
        // No token, no blank and no value holds a line feed.
        precondition(
            unsafe bytes.count > 3 && bytes[bytes.count - 3] == RequestHead.lineFeedByte
                && bytes[bytes.count - 1] == RequestHead.lineFeedByte,
            "a head of \(bytes.count) bytes without an empty line at its end")
        unsafe self.bytes = unsafe bytes
        fields = unsafe HeadFields(bytes)
    }

    consuming func read(_ memory: inout HeadMemory) throws(HeadRefusal) -> RequestHead {
        let (method, target, isOld) = try readRequestLine()
        let lineBytes = position
        // The first empty line is the last two bytes.
        let end = unsafe bytes.count - 2
        while position < end { try readField() }
        assert(position == end, "the fields in front of byte \(end) end at \(position)")
        let place = try unsafe RequestTarget(UnsafeRawBufferPointer(rebasing: bytes[target]), &memory.room)
        let head = try fields.head(method: method, target: place, isOld: isOld)
        if !isOld, let meaning = fields.meaning(in: head) {
            unsafe memory.keep(UnsafeRawBufferPointer(rebasing: bytes[lineBytes...]), meaning)
        }
        return head
    }

    /// Reads a head whose fields are known.
    /// - Parameter lineBytes: length of the first line.
    /// - Returns: nil: the fields mean something else behind this line.
    consuming func read(_ meaning: HeadMemory.Meaning, lineBytes: Int, _ room: inout RequestRoom) throws(HeadRefusal) -> RequestHead? {
        let (method, target, isOld) = try readRequestLine()
        guard position == lineBytes, !isOld else { return nil }
        let place = try unsafe RequestTarget(UnsafeRawBufferPointer(rebasing: bytes[target]), &room)
        guard !HeadFields.consolePath.begins(place.path) else { return nil }
        return RequestHead(
            request: HTTPRequest(method: method, path: place.path, query: place.query),
            framing: meaning.framing, isPersistent: meaning.isPersistent, isOld: false, expectsContinue: false, upgrade: nil)
    }

    // MARK: Request line

    private mutating func readRequestLine() throws(HeadRefusal) -> (method: String, target: Range<Int>, isOld: Bool) {
        let malformed = HeadRefusal(400, "the first line must be a method, a target and HTTP/1.1, with one blank between them")
        var end = 0
        while unsafe RequestHead.isToken(bytes[end]) { end += 1 }
        let verb = 0..<end
        guard !verb.isEmpty, unsafe bytes[end] == blank else { throw malformed }
        let start = end + 1
        end = unsafe bytes.skipASCII(from: start, least: blank + 1)
        while unsafe bytes[end] > blank && bytes[end] < 0x7F { end += 1 }
        let target = start..<end
        guard !target.isEmpty, unsafe bytes[end] == blank else { throw malformed }
        let version = end + 1
        // The shortest line with a version is followed by its own end and by an empty line.
        guard unsafe version + 12 <= bytes.count, unsafe bytes.spell("HTTP/", in: version..<version + 5),
            unsafe bytes[version + 6] == UInt8(ascii: "."), unsafe bytes.spell("\r\n", in: version + 8..<version + 10)
        else { throw malformed }
        let (major, minor) = unsafe (bytes[version + 5], bytes[version + 7])
        guard isDigit(major), isDigit(minor) else { throw malformed }
        guard major == UInt8(ascii: "1") else { throw HeadRefusal(505, "this server speaks HTTP/1.1") }
        position = version + 10
        return (try method(verb), target, minor == UInt8(ascii: "0"))
    }

    private static let methods: [(name: StaticString, text: String)] = {
        let names: [StaticString] = ["POST", "GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]
        return names.map { ($0, $0.description) }
    }()
    private static let otherMethods: [StaticString] = ["CONNECT", "TRACE"]

    private func method(_ verb: Range<Int>) throws(HeadRefusal) -> String {
        for method in Self.methods where unsafe bytes.spell(method.name, in: verb) { return method.text }
        let allowed = Self.methods.map(\.text).joined(separator: ", ")
        if Self.otherMethods.contains(where: { unsafe bytes.spell($0, in: verb) }) {
            throw HeadRefusal(405, "this method is not served", header: "Allow", allowed)
        }
        throw HeadRefusal(501, "this method is unknown: \(allowed) are served")
    }

    // MARK: Fields

    private mutating func readField() throws(HeadRefusal) {
        guard unsafe !Self.isBlank(bytes[position]) else { throw HeadRefusal(400, "a header may not go on in the next line") }
        var end = position
        while unsafe RequestHead.isToken(bytes[end]) { end += 1 }
        let name = position..<end
        guard !name.isEmpty, unsafe bytes[end] == UInt8(ascii: ":") else {
            throw HeadRefusal(400, "a header must be a name, a colon right behind it, and a value")
        }
        var start = end + 1
        while unsafe Self.isBlank(bytes[start]) { start += 1 }
        end = unsafe bytes.skipASCII(from: start, least: blank)
        while unsafe Self.isText(bytes[end]) { end += 1 }
        guard unsafe bytes[end] == RequestHead.carriageReturn && bytes[end + 1] == RequestHead.lineFeedByte else {
            throw HeadRefusal(400, "a header's value may not hold control characters")
        }
        position = end + 2
        while end > start, unsafe Self.isBlank(bytes[end - 1]) { end -= 1 }
        if let field = unsafe HeadFields.Field(bytes, name) { try fields.add(field, start..<end) }
    }

    // MARK: Bytes

    private let blank = UInt8(ascii: " ")

    static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    /// Whether the byte may stand in a header's value.
    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == UInt8(ascii: "\t") }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
