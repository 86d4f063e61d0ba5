import Foundation
import HubCore
import Testing

@testable import HubTransport

/// Ordinary requests: legal ones are served, others are refused at once.
extension FrontDoorTests {
    // MARK: Requests that are served

    private static let h2c = [
        "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    ]

    static let ordinary: [Row] = {
        var rows: [Row] = []
        rows.append(Row("GET", head("GET /x HTTP/1.1"), [200], headers: ["connection": nil], body: "\"/x\""))
        rows.append(Row("HEAD", head("HEAD /x HTTP/1.1"), [200]))
        rows.append(Row("absolute form", head("GET http://localhost/x?a=1 HTTP/1.1"), [200], body: #""path":"/x","query":[["a","1"]]"#))
        rows.append(
            Row("absolute form of another host", head("GET http://elsewhere.example:8080/x HTTP/1.1"), [200], body: "\"path\":\"/x\""))
        rows.append(Row("absolute form without a path", head("GET http://localhost HTTP/1.1"), [200], body: "\"path\":\"/\""))
        rows.append(Row("absolute form in capitals", head("GET HTTP://LOCALHOST/x HTTP/1.1"), [200], body: "\"path\":\"/x\""))
        rows.append(
            Row(
                "absolute form with a body", head("POST http://localhost/x HTTP/1.1", ["Content-Length: 2"]) + "ok", [200],
                body: "\"body\":\"ok\""))
        rows.append(Row("an empty line first", "\r\n" + head("GET /x HTTP/1.1"), [200], body: "\"/x\""))
        rows.append(Row("blanks around a value", head("GET /x HTTP/1.1", ["X-Client-Id: \t c \t"]), [200], body: "\"x-client-id\":\"c\""))
        rows.append(Row("no blank before a value", head("GET /x HTTP/1.1", ["X-Client-Id:c"]), [200], body: "\"x-client-id\":\"c\""))
        rows.append(Row("an empty value", head("GET /x HTTP/1.1", ["X-Empty:"]), [200], body: "\"/x\""))
        rows.append(Row("a value with an umlaut", head("GET /x HTTP/1.1", ["X-Other: größer"]), [200], body: "\"/x\""))
        rows.append(Row("an empty Host", "GET /x HTTP/1.1\r\nHost:\r\n\r\n", [200], body: "\"/x\""))
        rows.append(Row("names in capitals", "POST /x HTTP/1.1\r\nHOST: h\r\nCONTENT-LENGTH: 2\r\n\r\nok", [200], body: "\"body\":\"ok\""))
        rows.append(
            Row("a length with zeros before", head("POST /x HTTP/1.1", ["Content-Length: 002"]) + "ok", [200], body: "\"body\":\"ok\""))
        rows.append(Row("no length", head("POST /x HTTP/1.1"), [200], body: "\"body\":\"\""))
        rows.append(Row("an offer of h2c", head("GET /x HTTP/1.1", h2c), [200], headers: ["upgrade": nil], body: "\"/x\""))
        rows.append(
            Row(
                "an offer of h2c with a body", head("POST /x HTTP/1.1", h2c + ["Content-Length: 2"]) + "ok", [200],
                body: "\"body\":\"ok\""))
        rows.append(
            Row(
                "an offer of anything", head("GET /x HTTP/1.1", ["Connection: upgrade", "Upgrade: foo"]), [200], headers: ["upgrade": nil],
                body: "\"/x\""))
        rows.append(
            Row(
                "an offer of anything with a body",
                head("POST /x HTTP/1.1", ["Connection: upgrade", "Upgrade: foo/2", "Content-Length: 2"]) + "ok", [200], body: "\"ok\""))
        rows.append(Row("an offer that Connection does not name", head("GET /x HTTP/1.1", ["Upgrade: websocket"]), [200], body: "\"/x\""))
        rows.append(Row("an expectation without a body", head("GET /x HTTP/1.1", ["Expect: 100-continue"]), [200], body: "\"/x\""))
        rows.append(Row("Connection: close", head("GET /x HTTP/1.1", ["Connection: close"]), [200], body: "\"/x\"", ends: true))
        rows.append(
            Row("Connection: close among others", head("GET /x HTTP/1.1", ["Connection: foo, CLOSE"]), [200], body: "\"/x\"", ends: true))
        rows.append(
            Row(
                "Connection: close of a POST", head("POST /x HTTP/1.1", ["Connection: close", "Content-Length: 2"]) + "ok", [200],
                body: "\"ok\"", ends: true))
        rows.append(Row("HTTP/1.0", "GET /x HTTP/1.0\r\n\r\n", [200], body: "\"/x\"", ends: true))
        rows.append(Row("HTTP/1.0 of a POST", "POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\nok", [200], body: "\"ok\"", ends: true))
        rows.append(
            Row(
                "HTTP/1.0 that wants to go on", "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", [200],
                headers: ["connection": "keep-alive"], body: "\"/x\""))
        return rows
    }()

    @Test("what is legal is served") func ordinary() throws {
        try Self.check(Self.ordinary)
    }

    @Test("so it is when answers come later") func ordinaryLater() throws {
        var behaviour = Behaviour()
        behaviour.request = { loop, request, reply in
            loop.respond(reply, .describing(request))
            return nil
        }
        try Self.check(Self.ordinary, behaviour)
    }

    // MARK: Requests that are refused

    private static let client = Array(400...499)

    private static func refused(_ name: String, _ request: String, _ statuses: [Int] = client) -> Row {
        Row(name, request, statuses, ends: true)
    }

    static let refusals: [Row] = {
        var rows: [Row] = []
        rows.append(refused("a folded header", head("GET /x HTTP/1.1", ["X-Long: one", " two"])))
        rows.append(refused("a header that begins with a blank", "GET /x HTTP/1.1\r\n Host: localhost\r\n\r\n"))
        rows.append(refused("no Host", "GET /x HTTP/1.1\r\n\r\n"))
        rows.append(refused("no Host but others", "GET /x HTTP/1.1\r\nAccept: */*\r\n\r\n"))
        rows.append(refused("two Hosts", head("GET /x HTTP/1.1", ["Host: elsewhere"])))
        rows.append(refused("a blank before the colon", head("GET /x HTTP/1.1", ["X-Other : o"])))
        rows.append(refused("a blank before the length's colon", head("POST /x HTTP/1.1", ["Content-Length : 2"]) + "ok"))
        rows.append(refused("no colon", head("GET /x HTTP/1.1", ["X-Other"])))
        rows.append(refused("no name", head("GET /x HTTP/1.1", [": o"])))
        rows.append(refused("a name with a bracket", head("GET /x HTTP/1.1", ["X(1): o"])))
        rows.append(refused("a bare CR in a value", head("GET /x HTTP/1.1", ["X-Other: a\rb"])))
        rows.append(refused("a bare CR in the first line", "GET /x HTTP/1.1\rHost: localhost\r\n\r\n"))
        rows.append(refused("LF for CR LF", "GET /x HTTP/1.1\nHost: localhost\n\n"))
        rows.append(refused("LF for one CR LF", "GET /x HTTP/1.1\r\nHost: localhost\nX-Other: o\r\n\r\n"))
        rows.append(refused("NUL in a value", head("GET /x HTTP/1.1", ["X-Other: a\0b"])))
        rows.append(refused("NUL in the target", head("GET /x\0y HTTP/1.1")))
        rows.append(refused("a control character in the target", head("GET /x\u{1}y HTTP/1.1")))
        rows.append(
            refused(
                "a length and chunks",
                head("POST /x HTTP/1.1", ["Content-Length: 2", "Transfer-Encoding: chunked"]) + "2\r\nok\r\n0\r\n\r\n"))
        rows.append(refused("two lengths", head("POST /x HTTP/1.1", ["Content-Length: 2", "Content-Length: 3"]) + "ok"))
        rows.append(refused("two lengths in one header", head("POST /x HTTP/1.1", ["Content-Length: 2, 3"]) + "ok"))
        rows.append(refused("a length with a plus", head("POST /x HTTP/1.1", ["Content-Length: +2"]) + "ok"))
        rows.append(refused("a length below zero", head("POST /x HTTP/1.1", ["Content-Length: -2"]) + "ok"))
        rows.append(refused("a length in hexadecimal", head("POST /x HTTP/1.1", ["Content-Length: 0x2"]) + "ok"))
        rows.append(refused("an empty length", head("POST /x HTTP/1.1", ["Content-Length:"])))
        rows.append(refused("a length beyond 64 bits", head("POST /x HTTP/1.1", ["Content-Length: 99999999999999999999999"])))
        rows.append(refused("a length beyond the bound", head("POST /x HTTP/1.1", ["Content-Length: 1048577"]), [413]))
        rows.append(refused("GET with a length beyond the bound", head("GET /x HTTP/1.1", ["Content-Length: 1048577"]), [400, 413]))
        rows.append(refused("GET with chunks", head("GET /x HTTP/1.1", ["Transfer-Encoding: chunked"]), [400]))
        rows.append(refused("a coding that is not known", head("POST /x HTTP/1.1", ["Transfer-Encoding: gzip"]), [400, 501]))
        rows.append(refused("chunked before another coding", head("POST /x HTTP/1.1", ["Transfer-Encoding: chunked, gzip"]), [400, 501]))
        rows.append(refused("chunked twice", head("POST /x HTTP/1.1", ["Transfer-Encoding: chunked, chunked"]), [400, 501]))
        rows.append(refused("chunks in HTTP/1.0", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]))
        rows.append(refused("an unknown expectation", head("POST /x HTTP/1.1", ["Expect: 200-ok", "Content-Length: 2"]), [417]))
        rows.append(refused("CONNECT", "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", [405, 501]))
        rows.append(refused("TRACE", head("TRACE /x HTTP/1.1"), [405, 501]))
        rows.append(refused("an unknown method", head("BREW /pot HTTP/1.1"), [405, 501]))
        rows.append(refused("a method in small letters", head("get /x HTTP/1.1"), [405, 501]))
        rows.append(refused("a method with a bracket", head("G(T /x HTTP/1.1"), [400, 405, 501]))
        rows.append(refused("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400, 505]))
        rows.append(refused("HTTP/3.0", head("GET /x HTTP/3.0"), [400, 505]))
        rows.append(refused("HTTP/9.9", head("GET /x HTTP/9.9"), [400, 505]))
        rows.append(refused("HTTP in small letters", head("GET /x http/1.1"), [400, 505]))
        rows.append(refused("HTTP/0.9", "GET /x\r\n\r\n", [400, 505]))
        rows.append(refused("a method alone", "GET\r\n\r\n", [400, 405]))
        rows.append(refused("no target", "GET HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        rows.append(refused("two blanks", head("GET  /x HTTP/1.1")))
        rows.append(refused("a blank in the target", head("GET /x y HTTP/1.1")))
        rows.append(refused("something behind the version", head("GET /x HTTP/1.1 please")))
        rows.append(refused("a target that does not begin with a slash", head("GET x HTTP/1.1")))
        rows.append(refused("another scheme", head("GET ftp://localhost/x HTTP/1.1")))
        rows.append(refused("no HTTP at all", "NONSENSE\r\n\r\n", [400, 405, 501]))
        rows.append(refused("a TLS handshake", "\u{16}\u{3}\u{1}\u{0}\u{5}hello\r\n\r\n"))
        rows.append(
            refused("a head over 16 KB in one header", head("GET /x HTTP/1.1", ["X-Long: " + String(repeating: "y", count: 17_000)])))
        rows.append(refused("a head over 16 KB in many headers", head("GET /x HTTP/1.1", (0..<1_700).map { "X-\($0): yyyy" })))
        rows.append(refused("a target over 16 KB", head("GET /" + String(repeating: "x", count: 17_000) + " HTTP/1.1")))
        rows.append(refused("a line over 16 KB that never ends", String(repeating: "x", count: 17_000)))
        rows.append(
            refused(
                "a header over 16 KB that never ends",
                "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Long: " + String(repeating: "y", count: 17_000)))
        return rows
    }()

    @Test("what is not legal is refused at once, in JSON, and the connection ends") func refusals() throws {
        try Self.check(Self.refusals)
    }

    @Test("a refusal names its reason, also that of a request that never comes whole") func reasonPhrases() throws {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let requests: [(request: String, line: String)] = [
                (Self.head("POST /x HTTP/1.1", ["Content-Length: 5"]) + "ab", "HTTP/1.1 408 Request Timeout"),
                (Self.head("POST /x HTTP/1.1", ["Transfer-Encoding: chunked"]) + "5\r\nab", "HTTP/1.1 408 Request Timeout"),
                (Self.upgrade(version: nil), "HTTP/1.1 426 Upgrade Required"),
                (Self.head("POST /x HTTP/1.1", ["Expect: a miracle"]), "HTTP/1.1 417 Expectation Failed"),
                ("GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
            ]
            for (request, line) in requests {
                let peer = try server.plain()
                try peer.send(text: request)
                var bytes: [UInt8] = []
                while !bytes.contains(10) {
                    let more = try peer.stream.receive(4096)
                    if more.isEmpty { break }
                    bytes += more
                }
                #expect(String(decoding: bytes.prefix { $0 != 13 }, as: UTF8.self) == line)
            }
        }
    }

    /// More than the sockets' buffers hold, from a client that reads only at its end.
    @Test("who is refused while sending a body reads the whole answer") func refusedWithBody() throws {
        let heads = [
            Self.head("POST /x HTTP/1.1", ["Content-Length: 8388608", "X-Other : o"]),
            "POST /x HTTP/1.1\r\nContent-Length: 8388608\r\n\r\n",
            Self.head("POST /x HTTP/1.1", ["Content-Length: 8388608"]),
            Self.head("POST /x HTTP/1.1", ["Content-Length: 8388608", "Expect: more"]),
            Self.head("POST /x HTTP/1.1", ["Content-Length: 8388608", "Transfer-Encoding: chunked"]),
            Self.head("GET /x HTTP/1.1", ["Content-Length: 8388608"]), Self.head("BREW /x HTTP/1.1", ["Content-Length: 8388608"]),
            Self.upgrade("POST /app/key HTTP/1.1", with: ["Content-Length: 8388608"]),
            Self.head("PUT /x HTTP/1.1", ["Content-Length: 8388608", "X-Long: one", " two"]),
        ]
        try withServer(options: Self.patient) { server in
            try concurrently(heads.count) { index in
                let peer = try server.plain()
                try peer.send(text: heads[index])
                let piece = [UInt8](repeating: 98, count: 1 << 17)
                for _ in 0..<64 { guard (try? peer.stream.send(piece)) != nil else { break } }
                let answer: HTTPAnswer
                do { answer = try peer.answer() } catch { throw StreamError("\(heads[index].prefix(90)): \(error)") }
                #expect(
                    (400...501).contains(answer.status) && answer.text.hasPrefix("{\"error\":\"") && answer.text.hasSuffix("\"}"),
                    "\(heads[index])")
            }
            #expect(!server.seen.all.contains { if case .request = $0 { true } else { false } })
        }
    }
}
