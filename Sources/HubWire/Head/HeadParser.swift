internal import HubCore

/// Parses a whole head, line by line.
@safe struct HeadParser {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var fields = HeadFields()

    /// - Parameter bytes: the head from its first line to its last, empty one. Lines end with CR and LF.
    init(_ bytes: UnsafeRawBufferPointer) {
        // The walk below ends by this line alone, and would go on through other peers' bytes without it.
        precondition(
            unsafe bytes.count > 3 && bytes[bytes.count - 3] == RequestHead.lineFeedByte
                && bytes[bytes.count - 1] == RequestHead.lineFeedByte,
            "a head of \(bytes.count) bytes without an empty line at its end")
        unsafe self.bytes = unsafe bytes
    }

    consuming func read() throws(HeadRefusal) -> RequestHead {
        var line = nextLine()
        let (method, target, isOld) = try readRequestLine(line)
        line = nextLine()
        while !line.isEmpty {
            try readField(line)
            line = nextLine()
        }
        let place = try unsafe RequestTarget(UnsafeRawBufferPointer(rebasing: bytes[target]))
        return try fields.head(method: method, target: place, isOld: isOld)
    }

    /// The next line without its end; empty at the end of the head. Must not be called after that..
    private mutating func nextLine() -> Range<Int> {
        let start = position
        var end = start
        assert(unsafe start < bytes.count, "a line behind byte \(start) of \(unsafe bytes.count)")
        while unsafe bytes[end] != RequestHead.lineFeedByte { end += 1 }
        assert(unsafe end > start && bytes[end - 1] == RequestHead.carriageReturn, "line of byte \(start) ends without a carriage return")
        position = end + 1
        return start..<(end - 1)
    }

    // MARK: Request line

    private func readRequestLine(_ line: Range<Int>) throws(HeadRefusal) -> (method: String, target: Range<Int>, isOld: Bool) {
        let malformed = HeadRefusal(400, "the first line must be a method, a target and HTTP/1.1, with one blank between them")
        var end = line.lowerBound
        while end < line.upperBound, unsafe RequestHead.isToken(bytes[end]) { end += 1 }
        let verb = line.lowerBound..<end
        guard !verb.isEmpty, end < line.upperBound, unsafe bytes[end] == blank else { throw malformed }
        let start = end + 1
        end = start
        while end < line.upperBound, unsafe bytes[end] > blank, unsafe bytes[end] < 0x7F { end += 1 }
        let target = start..<end
        guard !target.isEmpty, end < line.upperBound, unsafe bytes[end] == blank else { throw malformed }
        let version = (end + 1)..<line.upperBound
        guard version.count == 8, equals("HTTP/", version.prefix(5)), unsafe bytes[version.lowerBound + 6] == UInt8(ascii: ".") else {
            throw malformed
        }
        let (major, minor) = unsafe (bytes[version.lowerBound + 5], bytes[version.lowerBound + 7])
        guard isDigit(major), isDigit(minor) else { throw malformed }
        guard major == UInt8(ascii: "1") else { throw HeadRefusal(505, "this server speaks HTTP/1.1") }
        return (try method(verb), target, minor == UInt8(ascii: "0"))
    }

    private static let methods: [StaticString] = ["POST", "GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]
    private static let otherMethods: [StaticString] = ["CONNECT", "TRACE"]

    private func method(_ verb: Range<Int>) throws(HeadRefusal) -> String {
        for method in Self.methods where equals(method, verb) { return method.description }
        let allowed = Self.methods.map(\.description).joined(separator: ", ")
        if Self.otherMethods.contains(where: { equals($0, verb) }) {
            throw HeadRefusal(405, "this method is not served", header: "Allow", allowed)
        }
        throw HeadRefusal(501, "this method is unknown: \(allowed) are served")
    }

    // MARK: Fields

    private mutating func readField(_ line: Range<Int>) throws(HeadRefusal) {
        let first = unsafe bytes[line.lowerBound]
        guard first != blank, first != tab else { throw HeadRefusal(400, "a header may not go on in the next line") }
        var colon = line.lowerBound
        while colon < line.upperBound, unsafe RequestHead.isToken(bytes[colon]) { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound, unsafe bytes[colon] == UInt8(ascii: ":") else {
            throw HeadRefusal(400, "a header must be a name, a colon right behind it, and a value")
        }
        var (start, end) = (colon + 1, line.upperBound)
        while start < end, unsafe bytes[start] == blank || bytes[start] == tab { start += 1 }
        while end > start, unsafe bytes[end - 1] == blank || bytes[end - 1] == tab { end -= 1 }
        for index in start..<end {
            let byte = unsafe bytes[index]
            if byte < blank && byte != tab || byte == 0x7F { throw HeadRefusal(400, "a header's value may not hold control characters") }
        }
        let name = unsafe UnsafeRawBufferPointer(rebasing: bytes[line.lowerBound..<colon])
        guard let field = unsafe HeadFields.Field(name) else { return }
        // The host's name is never used.
        try fields.add(field, field == .host ? "" : unsafe String(decoding: bytes[start..<end], as: UTF8.self))
    }

    // MARK: Bytes

    private let blank = UInt8(ascii: " ")
    private let tab = UInt8(ascii: "\t")

    private func equals(_ text: StaticString, _ range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where unsafe bytes[range.lowerBound + index] != text.utf8Start[index] { return false }
        return true
    }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
