import HubCore
import Testing

@testable import HubWire

@Suite("Heads of requests")
struct RequestHeadTests {
    private func read(_ lines: String...) -> RequestHead.Progress {
        Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8).withUnsafeBytes { RequestHead.read($0) }
    }

    private func head(_ lines: String...) -> RequestHead? {
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        guard case .complete(let head, bytes.count) = bytes.withUnsafeBytes({ RequestHead.read($0) }) else { return nil }
        return head
    }

    @Test(
        "a line that is no field refuses the head, wherever its mistake stands",
        arguments: [
            "\rX: y", "X\r: y", "X: y\rz", "X: \ry", "X: 12345678\u{7F}", "X: 12345678\u{1}abcdefgh",
            "X : y", ": y", "X", " X: y", "\tX: y", "X\u{E9}: y", "X: \0",
        ])
    func malformed(line: String) {
        guard case .refused(let refusal) = read("GET / HTTP/1.1", "Host: h", line, "Y: z") else {
            Issue.record("\(line.debugDescription) is taken in")
            return
        }
        #expect(refusal.status == 400)
    }

    @Test(
        "a first line has a method, a target and a version, and nothing else",
        arguments: [
            ("GET / HTTP/1.1 ", 400), ("GET  / HTTP/1.1", 400), ("GET / HTTP/1.1x", 400), ("GET / HTTP/1", 400),
            ("GET /", 400), ("GET", 400), ("GET /12345678\u{7F} HTTP/1.1", 400), ("GET /1234567\u{E9} HTTP/1.1", 400),
            ("GET /\u{1} HTTP/1.1", 400),
            ("GET / HTTP/2.0", 505), ("GET / HTTP/a.1", 400), ("TRACE / HTTP/1.1", 405), ("GOT / HTTP/1.1", 501),
        ])
    func firstLines(line: String, status: Int) {
        guard case .refused(let refusal) = read(line, "Host: h") else {
            Issue.record("\(line.debugDescription) is taken in")
            return
        }
        #expect(refusal.status == status)
    }

    @Test("a field is known by its whole name in any case, and its lines are one list")
    func fields() throws {
        let found = try #require(
            head(
                "GET /console HTTP/1.1", "hOST: hub.example:8080", "X-FORWARDED-FOR: \t1.1.1.1 ", "x-forwarded-for:2.2.2.2",
                "Coolie: no", "COOKIE: a=\u{E9}", "Origin:", "Orient: no"))
        let expected = ["host": "hub.example:8080", "x-forwarded-for": "1.1.1.1, 2.2.2.2", "cookie": "a=\u{E9}", "origin": ""]
        #expect(found.request.headers == expected)
        #expect(found.isPersistent && found.upgrade == nil && found.framing == .none)
    }

    @Test("a member of a list counts in any case, with blanks around it and on any line")
    func lists() throws {
        let other = ["Host: h", "Upgrade: h2c, \tWebSocket ", "Connection: keep-alive", "Connection: ,Upgrade,"]
        let lines = other.joined(separator: "\r\n")
        let offer = try #require(head("GET /app/k HTTP/1.1", lines, "Sec-WebSocket-Version: 13")?.upgrade)
        #expect(offer.isOfRFC && offer.key == nil && offer.spoken == nil)
        #expect(head("GET /app/k HTTP/1.0", lines)?.upgrade == nil)
        #expect(head("GET / HTTP/1.1", "Host: h", "Connection: x , CLOSE")?.isPersistent == false)
        #expect(head("GET / HTTP/1.1", "Host: h", "Connection: closed, clos")?.isPersistent == true)
    }

    @Test("the first sub-protocol that is spoken is agreed to, in the client's order")
    func protocols() throws {
        let offer = try #require(
            head(
                "GET /app/k HTTP/1.1", "Host: h", "Upgrade: websocket", "Connection: upgrade",
                "Sec-WebSocket-Protocol: x, pusher-channels-protocol-6", "Sec-WebSocket-Protocol: pusher-channels-protocol-7")?.upgrade)
        #expect(offer.spoken?.description == "pusher-channels-protocol-6")
    }

    @Test("a target reads the same with and without escapes", arguments: ["/a/b?c=d&e&=f&g==h", "/a?&&a=b&", "/?", "/a/?b"])
    func targets(target: String) throws {
        let plain = try #require(head("GET \(target) HTTP/1.1", "Host: h")?.request)
        // One escape is enough for the way that decodes.
        let other = target.replacing("a", with: "%61").replacing("b", with: "%62")
        let escaped = try #require(head("GET \(other) HTTP/1.1", "Host: h")?.request)
        #expect(plain.path == escaped.path && plain.query.bytes == escaped.query.bytes)
        #expect(plain.query.map(\.name) == escaped.query.map(\.name))
        #expect(plain.query.map(\.value) == escaped.query.map(\.value))
    }

    @Test("Content-Length is decimal digits whose value fits", arguments: [("0", 0), ("007", 7), (String(Int.max), Int.max)])
    func lengths(text: String, length: Int) throws {
        #expect(try BodyFraming.read(contentLength: text, transferEncoding: nil) == (length == 0 ? .none : .length(length)))
        for bad in ["", "+\(text)", "\(text)x", " \(text)", "9223372036854775808", "99999999999999999999"] {
            #expect(throws: HeadRefusal.self) { try BodyFraming.read(contentLength: bad, transferEncoding: nil) }
        }
    }
}
