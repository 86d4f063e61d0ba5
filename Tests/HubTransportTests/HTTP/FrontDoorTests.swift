import Foundation
import HubCore
import Testing

@testable import HubTransport

/// Heads of requests, legal and not, and how each is answered (RFC 9110, 9112 and 6455): at once, in HTTP/1.1, refusals as JSON.
@Suite("The front door", .blocking)
struct FrontDoorTests {
    /// One connection: what is sent, and what is answered to it.
    struct Row: Sendable {
        let name: String
        let request: String
        var statuses: [Int]
        /// Expected headers of the answer, in lower case; nil for a missing header.
        var headers: [String: String?] = [:]
        /// Part of the answer's body.
        var body = ""
        /// The connection ends behind the answer.
        var ends = false

        init(
            _ name: String, _ request: String, _ statuses: [Int], headers: [String: String?] = [:], body: String = "", ends: Bool = false
        ) {
            self.name = name
            self.request = request
            self.statuses = statuses
            self.headers = headers
            self.body = body
            self.ends = ends
        }
    }

    static func head(_ line: String, _ headers: [String] = []) -> String {
        ([line, "Host: localhost"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    private static let version = "Sec-WebSocket-Version: 13"

    static func upgrade(
        _ line: String = "GET /app/key HTTP/1.1", key: String? = Self.key, version: String? = Self.version,
        offer: [String] = ["Upgrade: websocket", "Connection: Upgrade"], with more: [String] = []
    ) -> String {
        head(line, offer + [key, version].compactMap { $0 } + more)
    }

    /// Waiting for time to pass would take longer than a client of these tests waits.
    private static var patient: LoopOptions {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 300
        return options
    }

    /// The connection goes on: another request is answered.
    private static func goesOn(_ peer: TestPeer) throws -> Bool {
        try peer.send(text: head("GET /next HTTP/1.1"))
        return try peer.answer().text.contains("\"/next\"")
    }

    private static func complaint(_ row: Row, _ server: TestServer, piece: Int? = nil) throws -> String? {
        let peer = try server.plain()
        let bytes = Array(row.request.utf8)
        if let piece {
            // A peer that is refused early may be cut off before the last piece.
            for start in stride(from: 0, to: bytes.count, by: piece) {
                try? peer.stream.send(Array(bytes[start..<min(start + piece, bytes.count)]))
            }
        } else {
            try peer.stream.send(bytes)
        }
        let answer = try peer.answer(isHead: row.request.hasPrefix("HEAD") || row.statuses == [101])
        guard row.statuses.contains(answer.status) else { return "answered \(answer.status), not \(row.statuses.prefix(3))" }
        for (name, value) in row.headers where answer.headers[name]?.lowercased() != value?.lowercased() {
            return "\(name): \(answer.headers[name] ?? "missing"), not \(value ?? "missing")"
        }
        if !row.body.isEmpty, !answer.text.contains(row.body) { return "the body is \(answer.text.prefix(300))" }
        if answer.status >= 400, !answer.text.hasPrefix("{\"error\":\"") || answer.headers["content-type"] != "application/json" {
            return "the refusal is \(answer.text.prefix(100))"
        }
        if answer.status == 101 {
            try peer.sendText("hello")
            return try peer.frame().text == "hello" ? nil : "no echo behind the upgrade"
        }
        guard row.ends else { return try goesOn(peer) ? nil : "the next request is not answered" }
        if answer.headers["connection"]?.lowercased() != "close" { return "it does not say connection: close" }
        return try peer.ends() ? nil : "more behind the answer"
    }

    /// Tries every row on a connection of its own, some at a time.
    private static func check(
        _ rows: [Row], options: LoopOptions = patient, _ behaviour: Behaviour = Behaviour(), piece: Int? = nil
    ) throws {
        try withServer(options: options, behaviour) { server in
            let bystander = try server.client()
            let faults = Recorder<String>()
            let lanes = 8
            try concurrently(lanes) { lane in
                for row in stride(from: lane, to: rows.count, by: lanes).map({ rows[$0] }) {
                    do {
                        if let complaint = try complaint(row, server, piece: piece) { faults.append("\(row.name): \(complaint)") }
                    } catch { faults.append("\(row.name): \(error)") }
                }
            }
            for fault in faults.all.sorted() { Issue.record("\(fault)") }
            print("\(rows.count - faults.all.count) of \(rows.count) requests were answered as they should")
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
            #expect(try eventually { try server.on { $0.connectionCount == 1 && $0.http.isEmpty && $0.handle.load == 1 } })
        }
    }

    // MARK: Handshakes

    private static let handshakes: [Row] = {
        var rows: [Row] = []
        rows.append(
            Row(
                "as it should be", upgrade(), [101],
                headers: ["sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "upgrade": "websocket", "connection": "upgrade"]))
        rows.append(Row("in other letters", upgrade(offer: ["UPGRADE: WebSocket", "connection: keep-alive, upgrade"]), [101]))
        rows.append(
            Row("the offer among others", upgrade(offer: ["Upgrade: h2c, websocket", "Connection: Upgrade, HTTP2-Settings"]), [101]))
        rows.append(
            Row("two Connection headers", upgrade(offer: ["Upgrade: websocket", "Connection: keep-alive", "Connection: Upgrade"]), [101]))
        rows.append(Row("absolute form", upgrade("GET http://localhost/app/key HTTP/1.1"), [101]))
        rows.append(
            Row(
                "blanks around values",
                upgrade(key: "Sec-WebSocket-Key:\t dGhlIHNhbXBsZSBub25jZQ== \t", version: "Sec-WebSocket-Version:13"), [101]))
        rows.append(Row("no key", upgrade(key: nil), [400], ends: true))
        rows.append(Row("an empty key", upgrade(key: "Sec-WebSocket-Key: "), [400], ends: true))
        rows.append(Row("a short key", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZQ=="), [400], ends: true))
        rows.append(Row("a long key", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSBhbmQgbW9yZQ=="), [400], ends: true))
        rows.append(
            Row(
                "a key of 200 bytes", upgrade(key: "Sec-WebSocket-Key: " + String(repeating: "A", count: 198) + "=="), [400],
                ends: true))
        rows.append(Row("a key that is no base64", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZ!Bub25jZQ=="), [400], ends: true))
        rows.append(Row("two keys", upgrade(offer: ["Upgrade: websocket", "Connection: Upgrade", key]), [400], ends: true))
        rows.append(
            Row(
                "version 8", upgrade(version: "Sec-WebSocket-Version: 8"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "version 0", upgrade(version: "Sec-WebSocket-Version: 0"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "version 130", upgrade(version: "Sec-WebSocket-Version: 130"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "a word for a version", upgrade(version: "Sec-WebSocket-Version: latest"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(Row("no version", upgrade(version: nil), [426], headers: ["sec-websocket-version": "13"], ends: true))
        rows.append(Row("by POST", upgrade("POST /app/key HTTP/1.1"), [405], headers: ["allow": "GET"], ends: true))
        rows.append(Row("by PUT", upgrade("PUT /app/key HTTP/1.1"), [405], headers: ["allow": "GET"], ends: true))
        rows.append(
            Row(
                "an unknown sub-protocol", upgrade(with: ["Sec-WebSocket-Protocol: chat"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "a version of Pusher's that is too old", upgrade(with: ["Sec-WebSocket-Protocol: pusher-channels-protocol-4"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "several unknown sub-protocols", upgrade(with: ["Sec-WebSocket-Protocol: chat, bearer.abc, mqtt"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "a known sub-protocol among others", upgrade(with: ["Sec-WebSocket-Protocol: chat,pusher-channels-protocol-7 , mqtt"]),
                [101], headers: ["sec-websocket-protocol": "pusher-channels-protocol-7"]))
        rows.append(
            Row(
                "a known sub-protocol in a second header",
                upgrade(with: ["Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Protocol: pusher-channels-protocol-6"]), [101],
                headers: ["sec-websocket-protocol": "pusher-channels-protocol-6"]))
        rows.append(
            Row(
                "an offer to compress", upgrade(with: ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"]), [101],
                headers: ["sec-websocket-extensions": nil]))
        rows.append(Row("outside of /app/: /metrics", upgrade("GET /metrics HTTP/1.1"), [200], body: "\"/metrics\""))
        rows.append(Row("outside of /app/: /apps/1/events", upgrade("GET /apps/1/events HTTP/1.1"), [200], body: "\"/apps/1/events\""))
        rows.append(Row("outside of /app/: /", upgrade("GET / HTTP/1.1"), [200], body: "\"/\""))
        rows.append(
            Row("outside of /app/: /application/key", upgrade("GET /application/key HTTP/1.1"), [200], body: "\"/application/key\""))
        rows.append(
            Row(
                "outside of /app/: POST with a body", upgrade("POST /apps/1/events HTTP/1.1", with: ["Content-Length: 4"]) + "body", [200],
                body: "\"body\":\"body\""))
        return rows
    }()

    @Test("each handshake gets the status that says why") func handshakes() throws {
        try Self.check(Self.handshakes)
    }

    @Test("half handshakes and half heads may come byte by byte") func dribbled() throws {
        try Self.check(Self.handshakes + Self.ordinary + Self.refusals.filter { $0.request.utf8.count < 1_000 }, piece: 1)
    }

    // MARK: Requests that are served

    private static let h2c = [
        "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    ]

    private static let ordinary: [Row] = {
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

    private static let refusals: [Row] = {
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

    // MARK: Expectations

    @Test("who waits for 100 before a body is told to go on at once", arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func expectation(framing: String) throws {
        try withServer(options: Self.patient) { server in
            let body = framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n"
            let peer = try server.plain()
            for word in ["100-continue", "100-Continue"] {
                try peer.send(text: Self.head("POST /x HTTP/1.1", [framing, "Expect: \(word)"]))
                #expect(try peer.answer(isHead: true).status == 100)
                try peer.send(text: body)
                #expect(try peer.answer().text.contains("\"body\":\"hello\""))
                if framing.hasPrefix("T") { return }
            }
            #expect(try Self.goesOn(peer))
        }
    }

    @Test("who does not wait is answered all the same", arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func eagerExpectation(framing: String) throws {
        try withServer(options: Self.patient) { server in
            let body = framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n"
            let peer = try server.plain()
            try peer.send(text: Self.head("POST /x HTTP/1.1", [framing, "Expect: 100-continue"]) + body)
            // With the body there already, nothing need be said (RFC 9110, 10.1.1).
            var answer = try peer.answer()
            if answer.status == 100 { answer = try peer.answer() }
            #expect(answer.status == 200 && answer.text.contains("\"body\":\"hello\""))
        }
    }

    @Test("a body that the head is enough to refuse is never asked for") func refusedExpectation() throws {
        var behaviour = Behaviour()
        behaviour.bodyLimit = { $0.path == "/closed" ? .refused(.error(401, "sign your request")) : .bytes(.max) }
        let length = LoopOptions.unaskedBodyBytesMax + 1
        let rows = [
            Row(
                "by the delegate", Self.head("POST /closed HTTP/1.1", ["Content-Length: \(length)", "Expect: 100-continue"]), [401],
                ends: true),
            Row(
                "by the delegate, chunked", Self.head("POST /closed HTTP/1.1", ["Transfer-Encoding: chunked", "Expect: 100-continue"]),
                [401], ends: true),
            Row("by its length", Self.head("POST /x HTTP/1.1", ["Content-Length: 2000000", "Expect: 100-continue"]), [413], ends: true),
            Row(
                "by the expectation", Self.head("POST /x HTTP/1.1", ["Content-Length: 5", "Expect: 100-continue, more"]), [417],
                ends: true),
        ]
        try Self.check(rows, behaviour)
    }

    @Test("an expectation of HTTP/1.0 is ignored") func oldExpectation() throws {
        try withServer(options: Self.patient) { server in
            let peer = try server.plain()
            try peer.send(text: "POST /x HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
            #expect(try peer.answer().text.contains("\"body\":\"hello\""))
            #expect(try peer.ends())
        }
    }

    // MARK: Several requests

    @Test(
        "requests that do not wait are answered in their order, with bodies and without",
        arguments: ["at once", "later", "in another order"])
    func pipelined(answers: String) throws {
        var behaviour = Behaviour()
        let waiting = Recorder<(HTTPReply, HTTPResponse)>()
        switch answers {
        case "later":
            behaviour.request = { loop, request, reply in
                loop.respond(reply, .describing(request))
                return nil
            }
        case "in another order":
            // Every third answer comes a turn late, when others could have been given.
            behaviour.request = { loop, request, reply in
                guard request.path.hasSuffix("3") else { return .describing(request) }
                waiting.append((reply, .describing(request)))
                return nil
            }
        default: break
        }
        try withServer(options: Self.patient, behaviour) { server in
            let peer = try server.plain()
            var requests = ""
            for index in 0..<40 {
                switch index % 3 {
                case 0: requests += Self.head("GET /n\(index) HTTP/1.1")
                case 1: requests += Self.head("POST /n\(index) HTTP/1.1", ["Content-Length: 6"]) + "body\(index + 10)"
                default: requests += Self.head("PUT /n\(index) HTTP/1.1", ["Content-Length: 0"])
                }
            }
            try peer.send(text: requests)
            for index in 0..<40 {
                if answers == "in another order", index % 10 == 3 {
                    #expect(waiting.wait { $0.count == index / 10 + 1 })
                    let (reply, response) = waiting.all[index / 10]
                    try server.on { $0.respond(reply, response) }
                }
                let answer = try peer.answer()
                #expect(
                    answer.text.contains("\"/n\(index)\"") && (index % 3 != 1 || answer.text.contains("\"body\(index + 10)\"")),
                    "\(index)")
            }
            #expect(try Self.goesOn(peer))
        }
    }

    @Test("nothing behind Connection: close is answered, and nothing behind a refusal") func behindTheEnd() throws {
        try withServer(options: Self.patient) { server in
            for last in [
                Self.head("GET /last HTTP/1.1", ["Connection: close"]), Self.head("GET /last HTTP/1.1", ["X-Other : o"]),
                "GET /last HTTP/1.0\r\n\r\n",
            ] {
                let peer = try server.plain()
                try peer.send(text: Self.head("GET /first HTTP/1.1") + last + Self.head("GET /never HTTP/1.1"))
                #expect(try peer.answer().text.contains("/first"))
                #expect(try peer.answer().headers["connection"] == "close")
                #expect(try peer.ends())
            }
            #expect(server.seen.all.count { if case .request = $0 { true } else { false } } == 5)
        }
    }

    @Test("the network may cut a request with a body at any byte") func everySplit() throws {
        try withServer(options: Self.patient) { server in
            let peer = try server.plain()
            let bytes = Array((Self.head("POST /x HTTP/1.1", ["Content-Length: 5"]) + "hello" + Self.head("GET /y HTTP/1.1")).utf8)
            for split in 1..<bytes.count {
                try peer.stream.send(Array(bytes[..<split]))
                try peer.stream.send(Array(bytes[split...]))
                #expect(try peer.answer().text.contains("\"body\":\"hello\""), "split at \(split)")
                #expect(try peer.answer().text.contains("\"/y\""), "split at \(split)")
            }
        }
    }
}
