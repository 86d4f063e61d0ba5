import HubCore
import HubTesting
import HubWire

/// Heads of HTTP requests. The first two bytes of an input control how the rest is split into pieces.
enum HeadTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens = [
            "\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", ":", "\0", " HTTP/1.1\r\n", "HTTP/1.0", "Host: x\r\n", "Content-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "Expect: 100-continue\r\n", "Upgrade: websocket\r\n",
            "http://", "*", "%", "?", "&", "=",
            String(repeating: "y", count: 3000),
        ]
        let source = InputSource("heads", tokens: tokens) { random in
            [UInt8(random.below(256)), UInt8(random.below(256))] + Array(head(&random).utf8)
        }
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func head(_ random: inout SeededRandom) -> String {
        let method = random.element(of: ["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "get", ""])
        let target = random.element(of: [
            "/", "/x", "/app/key", "/a%20b?c=%2B&d", "http://h/x", "http://h", "ws://h?a", "*", "x", "/%zz", "//a//b", "/x?a=b&&=&c", "",
        ])
        let version = random.element(of: ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "http/1.1", ""])
        var text = random.element(of: ["", "", "", "\r\n"]) + "\(method) \(target) \(version)\r\n"
        for _ in 0..<random.below(9) {
            text += random.element(of: [
                "Host: h", "HOST: h", "Content-Length: 5", "content-length: 0", "Content-Length: +5",
                "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Connection: close", "Connection: keep-alive, Upgrade",
                "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Protocol: a, pusher-channels-protocol-7",
                "Expect: 100-continue", "Expect: x", "X-Other : o", " folded", "X-Forwarded-For: 1.2.3.4", "Authorization: \t b ", ": o",
                "no colon", "X-Umlaut: ä", "X-Empty:",
            ])
            text += "\r\n"
        }
        return text + "\r\n"
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 2 else { return nil }
        let input = Array(bytes.dropFirst(2))
        let whole = input.withUnsafeBytes { RequestHead.read($0) }
        if let difference = compareWithMemory(input, whole) { return difference }
        var random = SeededRandom(state: UInt64(bytes[0]))
        let most = 1 + Int(bytes[1])
        var (end, scanned) = (0, 0)
        var pieces = RequestHead.Progress.incomplete(scanned: 0)
        while end < input.count {
            end = min(input.count, end + 1 + random.below(most))
            pieces = input[..<end].withUnsafeBytes { RequestHead.read($0, scanned: scanned) }
            guard case .incomplete(let next) = pieces else { break }
            guard next >= scanned, next <= end else { return "of \(end) bytes \(next) are scanned, before \(scanned)" }
            scanned = next
        }
        switch (whole, pieces) {
        case (.incomplete, .incomplete): return input.count < RequestHead.bytesMax ? nil : "it waits for more than a head may have"
        // The first mistake found may depend on the split.
        case (.refused(let one), .refused(let other)): return judge(one) ?? judge(other)
        case (.complete(let one, let count), .complete(let other, let otherCount)):
            guard count == otherCount, isSame(one, other) else {
                return "in pieces it is \(other) of \(otherCount) bytes, at once \(one) of \(count)"
            }
            return judge(one, Array(input.prefix(count)))
        default: return "in pieces it is \(pieces), at once \(whole)"
        }
    }

    /// Reads the head once more behind others with the same fields, one of them the same head.
    private static func compareWithMemory(_ input: [UInt8], _ alone: RequestHead.Progress) -> String? {
        guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        var memory = HeadMemory()
        let fields = input[(end + 1)...]
        for head in [Array("POST /x?a=b HTTP/1.1\r\n".utf8) + fields, Array("GET /console HTTP/1.1\r\n".utf8) + fields, input] {
            let progress = head.withUnsafeBytes { RequestHead.read($0, scanned: 0, memory: &memory) }
            if case .complete(var head, _) = progress { memory.room.takeBack(&head.request) }
        }
        let again = input.withUnsafeBytes { RequestHead.read($0, scanned: 0, memory: &memory) }
        switch (alone, again) {
        case (.complete(let one, let count), .complete(let other, let bytes)) where count == bytes && isSame(one, other): return nil
        case (.refused(let one), .refused(let other)) where one.sentence == other.sentence: return nil
        case (.incomplete(let one), .incomplete(let other)) where one == other: return nil
        default: return "behind others it is \(again), alone \(alone)"
        }
    }

    /// Compares field by field, because a dictionary's description has no order.
    private static func isSame(_ one: RequestHead, _ other: RequestHead) -> Bool {
        var (one, other) = (one, other)
        guard one.request.headers == other.request.headers else { return false }
        one.request.headers = [:]
        other.request.headers = [:]
        return "\(one)" == "\(other)"
    }

    private static func judge(_ refusal: HeadRefusal) -> String? {
        [400, 405, 413, 417, 426, 431, 501, 505].contains(refusal.status) && !refusal.sentence.isEmpty ? nil : "a bad refusal: \(refusal)"
    }

    /// Checks an accepted head independently: line by line, as text.
    private static func judge(_ head: RequestHead, _ bytes: [UInt8]) -> String? {
        guard bytes.count <= RequestHead.bytesMax, bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) else {
            return "a head of \(bytes.count) bytes"
        }
        var lines: [[UInt8]] = [[]]
        for byte in bytes { if byte == 10 { lines.append([]) } else { lines[lines.count - 1].append(byte) } }
        guard lines.dropLast().allSatisfy({ $0.last == 13 && $0.count { $0 == 13 } == 1 }) else { return "a bare CR or LF is taken in" }
        if bytes.contains(0) { return "a NUL is taken in" }
        let texts = lines.map { String(decoding: $0.dropLast(), as: UTF8.self) }.filter { !$0.isEmpty }
        let words = texts[0].split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, head.request.method == words[0] else { return "a first line of \(words.count) words" }
        let names = texts.dropFirst().map { $0.prefix { $0 != ":" }.lowercased() }
        guard names.allSatisfy({ !$0.isEmpty && !$0.contains(" ") && !$0.contains("\t") }) else { return "a name that is none" }
        for name in ["host", "content-length"] where names.count(where: { $0 == name }) > 1 { return "\(name) stands twice" }
        if !head.isOld, !names.contains("host") { return "no Host" }
        let isChunked = names.contains("transfer-encoding")
        switch head.framing {
        case .none: if isChunked { return "a chunked body is taken for none" }
        case .length(let count): if isChunked || count < 1 || !names.contains("content-length") { return "a length of \(count)" }
        case .chunked: if !isChunked || names.contains("content-length") || head.isOld { return "taken for chunked" }
        }
        if head.expectsContinue, head.isOld || !names.contains("expect") || head.framing == .none { return "it waits for nothing" }
        if head.upgrade != nil, !names.contains("upgrade") || !names.contains("connection") { return "an upgrade that nobody asked for" }
        let path = head.request.path
        return path == "*" || path.utf8.first == UInt8(ascii: "/") ? nil : "the path is \(path)"
    }
}
