internal import CLoadSockets

/// One answer of an HTTP/1.1 server within a read buffer: its extent and the fields that matter.
package struct HTTPAnswer: Equatable, Sendable {
    package enum Reading: Equatable, Sendable {
        case incomplete
        case answer(HTTPAnswer)
        case malformed(String)
    }

    package var status: Int
    /// Length of head and body together.
    package var count: Int
    package var headCount: Int
    /// Whether the server closes the connection after this answer.
    package var closes: Bool

    package init(status: Int, count: Int, headCount: Int, closes: Bool) {
        self.status = status
        self.count = count
        self.headCount = headCount
        self.closes = closes
    }

    /// Upper bound of an answer's head.
    private static let headBytesMax = 16 << 10

    /// Parses the answer at the first byte; `.answer` only if its body is complete.
    /// - Parameter hasBody: false for the answer to an upgrade.
    static func read(_ bytes: UnsafeRawBufferPointer, hasBody: Bool = true) -> Reading {
        guard let base = bytes.baseAddress else { return .incomplete }
        let end = unsafe tandem_load_find(base, bytes.count, "\r\n\r\n", 4)
        guard end >= 0 else { return bytes.count > headBytesMax ? .malformed("the head of an answer does not end") : .incomplete }
        let head = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<end]), as: UTF8.self)
        let lines = head.split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
            return .malformed("not an HTTP/1.1 answer: \(lines.first?.prefix(80) ?? "")")
        }
        var answer = HTTPAnswer(status: status, count: end + 4, headCount: end + 4, closes: words[0] == "HTTP/1.0")
        guard hasBody, status >= 200, status != 204, status != 304 else { return .answer(answer) }
        var length: Int?
        var isChunked = false
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }.lowercased()
            switch line[..<colon].lowercased() {
            case "content-length": length = Int(value)
            case "transfer-encoding": isChunked = value.contains("chunked")
            case "connection": answer.closes = value.contains("close")
            default: break
            }
        }
        if isChunked { return unsafe readChunks(bytes, answer) }
        guard let length, length >= 0 else {
            return answer.closes ? .answer(answer) : .malformed("an answer says neither its length nor that it is chunked")
        }
        answer.count += length
        return answer.count <= bytes.count ? .answer(answer) : .incomplete
    }

    /// The same for an array, for tests.
    package static func read(_ bytes: [UInt8]) -> Reading { unsafe bytes.withUnsafeBytes { unsafe read($0) } }

    /// The body of an answer that begins at the first byte.
    static func body(of answer: HTTPAnswer, in bytes: [UInt8]) -> [UInt8] {
        let head = String(decoding: bytes[..<answer.headCount], as: UTF8.self).lowercased()
        guard head.contains("transfer-encoding: chunked") else { return Array(bytes[answer.headCount..<answer.count]) }
        var body: [UInt8] = []
        var place = answer.headCount
        while let line = bytes[place..<answer.count].firstIndex(of: UInt8(ascii: "\r")) {
            let size = Int(String(decoding: bytes[place..<line], as: UTF8.self).prefix { $0 != ";" && $0 != " " }, radix: 16) ?? 0
            guard size > 0 else { break }
            body += bytes[line + 2..<line + 2 + size]
            place = line + 2 + size + 2
        }
        return body
    }

    private static func readChunks(_ bytes: UnsafeRawBufferPointer, _ head: HTTPAnswer) -> Reading {
        var answer = head
        guard let base = bytes.baseAddress else { return .incomplete }
        while true {
            let line = unsafe tandem_load_find(base + answer.count, bytes.count - answer.count, "\r\n", 2)
            guard line >= 0 else { return .incomplete }
            let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: bytes[answer.count..<answer.count + line]), as: UTF8.self)
            guard let size = Int(text.prefix { $0 != ";" && $0 != " " }, radix: 16), size >= 0, size <= WebSocketFrame.payloadBytesMax
            else {
                return .malformed("a chunk's size is \(text.prefix(40))")
            }
            // The chunk and its line end. Trailers are not read, because none of the servers sends any.
            answer.count += line + 2 + size + 2
            guard answer.count <= bytes.count else { return .incomplete }
            if size == 0 { return .answer(answer) }
        }
    }
}
