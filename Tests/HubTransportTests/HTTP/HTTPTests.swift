import HubCore
import HubTesting
import Testing

@testable import HubTransport

@Suite("HTTP", .blocking)
struct HTTPTests {
    private static func get(_ target: String, _ headers: [String] = [], method: String = "GET") -> String {
        (["\(method) \(target) HTTP/1.1", "Host: localhost"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func post(_ body: String, _ headers: [String] = []) -> String {
        get("/events", ["Content-Length: \(body.utf8.count)"] + headers, method: "POST") + body
    }

    private static func value(_ answer: HTTPAnswer, _ member: String) -> String {
        // Enough of a JSON reader for what `HTTPResponse.describing` writes: every member is looked for by its text.
        let text = answer.text
        guard let start = text.range(of: "\"\(member)\":") else { return "" }
        return String(text[start.upperBound...])
    }

    @Test("a request is described as it was sent, and the connection goes on")
    func keepAlive() throws {
        try withServer { server in
            let peer = try server.plain()
            for index in 0..<5 {
                let headers = [
                    "Content-Type: application/json", "Authorization: Bearer x", "Idempotency-Key: k\(index)", "X-Client-Id: c",
                    "X-Other: o",
                ]
                try peer.send(text: Self.post("{\"n\":\(index)}", headers))
                let answer = try peer.answer()
                #expect(answer.status == 200)
                #expect(answer.headers["content-type"] == "application/json")
                #expect(answer.headers["connection"] == nil)
                #expect(
                    answer.text == """
                        {"body":"{\\"n\\":\(index)}","headers":{"authorization":"Bearer x",\
                        "idempotency-key":"k\(index)","x-client-id":"c"},"method":"POST","path":"/events","query":[]}
                        """)
            }
            #expect(try server.on { $0.handle.load } == 1)
        }
    }

    @Test("requests without bodies that do not wait for answers are answered in their order")
    func pipelined() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: (0..<20).map { Self.get("/get/\($0)") }.joined())
            for index in 0..<20 { #expect(try peer.answer().text.contains("\"/get/\(index)\"")) }
        }
    }

    @Test("the answers to requests of one read leave in one packet, and none waits for a request that is incomplete")
    func answersTogether() throws {
        try withServer { server in
            let peer = try server.plain()
            let paths = ["/a", "/post", "/b", "/post", "/c"]
            try peer.send(text: paths.map { $0 == "/post" ? Self.post($0) : Self.get($0) }.joined() + "GET /half")
            for path in paths { #expect(try peer.answer().text.contains(path)) }
            #expect(peer.packetsReceived == 1)
            try peer.send(text: String(Self.get("/half").dropFirst("GET /half".count)) + Self.get("/end", ["Connection: close"]) + "x")
            for path in ["/half", "/end"] { #expect(try peer.answer().text.contains(path)) }
            #expect(peer.packetsReceived == 2)
            #expect(try peer.ends())
        }
    }

    @Test("requests with bodies that do not wait for answers are answered in their order", arguments: ["later", "at once"])
    func behindBody(answers: String) throws {
        var behaviour = Behaviour()
        if answers == "later" {
            behaviour.request = { loop, request, reply in
                loop.respond(reply, .describing(request))
                return nil
            }
        }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            let requests = ["a", "GET", "b", "c", "GET", "GET", "d"]
            try peer.send(text: requests.map { $0 == "GET" ? Self.get("/get") : Self.post($0) }.joined())
            for request in requests { #expect(try peer.answer().text.contains(request == "GET" ? "\"/get\"" : "\"body\":\"\(request)\"")) }
            // The last one's body comes when the answers before it are read.
            try peer.send(text: Self.post("e") + Self.get("/x", ["Content-Length: 2"], method: "POST") + "f")
            #expect(try peer.answer().text.contains(#""body":"e""#))
            try peer.send(text: "g")
            #expect(try peer.answer().text.contains(#""body":"fg""#))
        }
    }

    @Test("a hundred requests with bodies, sent before the first is answered, are served in their order")
    func manyBehindBodies() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in nil }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            let filler = String(repeating: "x", count: 1000)
            try peer.send(text: (0..<100).map { Self.post("\($0) \(filler)") }.joined())
            for index in 0..<100 {
                #expect(server.seen.wait { $0.count > index })
                guard case .request(let reply) = server.seen.all[index] else { throw StreamError("no request") }
                try server.on { $0.respond(reply, .json(["n": .int(Int64(index))])) }
                #expect(try peer.answer().text == "{\"n\":\(index)}")
            }
        }
    }

    @Test("requests without bodies are answered in their order also when answers come later")
    func pipelinedLater() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in nil }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get("/a") + Self.get("/b") + Self.get("/c"))
            for index in 0..<3 {
                #expect(server.seen.wait { $0.count >= index + 1 })
                guard case .request(let reply) = server.seen.all[index] else { throw StreamError("no request") }
                try server.on { $0.respond(reply, .json(["n": .int(Int64(index))])) }
                #expect(try peer.answer().text == "{\"n\":\(index)}")
            }
            #expect(server.seen.all.count == 3)
        }
    }

    private static let targets: [(target: String, path: String, query: String)] = [
        ("/apps/1/channels/a;b", "/apps/1/channels/a;b", "[]"), ("/a%3Bb", "/a;b", "[]"), ("/a%20b", "/a b", "[]"),
        ("/x?a=1&b=2", "/x", #"[["a","1"],["b","2"]]"#), ("/x?a=", "/x", #"[["a",""]]"#), ("/x?a=&b=1", "/x", #"[["a",""],["b","1"]]"#),
        ("/x?c=a;b", "/x", #"[["c","a;b"]]"#), ("/x?c=a%3Bb", "/x", #"[["c","a;b"]]"#), ("/x?c=a%26b", "/x", #"[["c","a&b"]]"#),
        ("/x?c=a%3Db", "/x", #"[["c","a=b"]]"#), ("/x?c=a=b", "/x", #"[["c","a=b"]]"#), ("/x?c=a+b", "/x", #"[["c","a b"]]"#),
        ("/x?c=a%2Bb", "/x", #"[["c","a+b"]]"#), ("/x?c=a%2Cb,c", "/x", #"[["c","a,b,c"]]"#),
        ("/x?c=%2Fa/b//c", "/x", #"[["c","/a/b//c"]]"#),
        ("/x?c=%C3%AB", "/x", #"[["c","ë"]]"#), ("/x?", "/x", "[]"), ("/", "/", "[]"), ("/x?c=a;;b", "/x", #"[["c","a;;b"]]"#),
        ("/x?c=a%2525", "/x", #"[["c","a%25"]]"#), ("/x?c=..%2F..", "/x", #"[["c","../.."]]"#),
    ]

    @Test("paths and queries are decoded once")
    func decoded() throws {
        try withServer { server in
            let peer = try server.plain()
            for (target, path, query) in Self.targets {
                try peer.send(text: Self.get(target))
                let answer = try peer.answer()
                #expect(answer.status == 200)
                #expect(Self.value(answer, "path") == "\(JSONValue.string(path).text),\"query\":\(query)}", "\(target)")
            }
        }
    }

    @Test("HEAD is answered without a body, with its length, and the connection goes on")
    func head() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: Self.get("/x", method: "HEAD"))
            let answer = try peer.answer(isHead: true)
            #expect(answer.status == 200)
            #expect(Int(answer.headers["content-length"] ?? "") ?? 0 > 10)
            try peer.send(text: Self.get("/y"))
            #expect(try peer.answer().text.contains("\"/y\""))
        }
    }

    @Test("every method arrives under its name")
    func methods() throws {
        try withServer { server in
            let peer = try server.plain()
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "POST", "GET"] {
                try peer.send(text: Self.get("/x", ["Content-Length: 0"], method: method))
                #expect(try peer.answer().text.contains("\"method\":\"\(method)\""))
            }
        }
    }

    @Test("a POST without any length has no body, and the next request is not taken for one")
    func noLength() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: Self.get("/x", method: "POST"))
            let answer = try peer.answer()
            #expect(answer.text.contains("\"body\":\"\""))
            if answer.headers["connection"] == "close" {
                #expect(try peer.ends())
            } else {
                try peer.send(text: Self.get("/y"))
                #expect(try peer.answer().text.contains("\"/y\""))
            }
        }
    }

    @Test("Connection: close and HTTP/1.0 end the connection behind the answer", arguments: [true, false])
    func closing(isOld: Bool) throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: isOld ? "GET /x HTTP/1.0\r\nHost: localhost\r\n\r\n" : Self.get("/x", ["Connection: close"]))
            #expect(try peer.answer().status == 200)
            #expect(try peer.ends())
        }
    }

    @Test("an offer to switch to HTTP/2 is ignored, as Java's client expects")
    func h2c() throws {
        try withServer { server in
            let peer = try server.plain()
            let offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"]
            try peer.send(text: Self.post("{\"a\":1}", offer))
            let answer = try peer.answer()
            #expect(answer.status == 200)
            #expect(answer.text.contains("\"method\":\"POST\""))
            #expect(answer.text.contains(#""body":"{\"a\":1}""#))
        }
    }

    @Test("a large answer arrives whole at a peer that reads slowly, and the next request is answered")
    func largeAnswer() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, request, reply in
            let body = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
            return HTTPResponse(status: 200, contentType: "application/octet-stream", body: body)
        }
        try withServer(behaviour) { server in
            let peer = try TestPeer(RawSocket(port: server.port, receiveBufferBytes: 8_192, segmentBytes: 2_048))
            for _ in 0..<2 {
                try peer.send(text: Self.get("/x"))
                let answer = try peer.answer()
                #expect(answer.body == (0..<500_000).map { UInt8(truncatingIfNeeded: $0 / 251) })
            }
            try peer.send(text: Self.get("/x", ["Connection: close"]))
            #expect(try peer.answer().body.count == 500_000)
            #expect(try peer.ends())
        }
    }

    @Test("a line break in a header of ours starts no new header")
    func headerInjection() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in HTTPResponse(status: 200, body: [], headers: [("X-Mine", "a\r\nX-Evil: b")]) }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get("/x"))
            let answer = try peer.answer()
            #expect(answer.headers["x-mine"] == "aX-Evil: b")
            #expect(answer.headers["x-evil"] == nil)
        }
    }

    @Test("garbage, huge heads and unfinished requests harm nobody else")
    func garbage() throws {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let bystander = try server.client()
            let attacks = [
                "\u{0}\u{1}\u{2}\u{3}\u{16}\u{3}\u{1}", "NONSENSE\r\n\r\n", "GET\r\n\r\n", "GET /x\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
                "GET /x HTTP/9.9\r\n\r\n", "\r\n\r\n\r\n\r\n", "BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n",
                "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
                "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET \(String(repeating: "/a", count: 20_000)) HTTP/1.1\r\nHost: h\r\n\r\n",
                Self.get("/x", ["X-Long: " + String(repeating: "y", count: 40_000)]),
                Self.get("/x", ["Authorization: " + String(repeating: "y", count: 9_000)]),
                Self.get("/x", (0..<2000).map { "X-\($0): y" }), Self.get("/x?" + String(repeating: "a=b&", count: 3000)),
                Self.get("/x", ["Upgrade: websocket", "Connection: Upgrade"]),
                Self.get("/x", ["Upgrade: nonsense", "Connection: Upgrade"]),
                "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", String(repeating: "x", count: 100_000),
            ]
            let port = server.port
            try concurrently(attacks.count) { index in
                let peer = try TestPeer(RawSocket(port: port))
                try? peer.send(text: attacks[index])
                // An answer or none; but no more of it once the request's time is up.
                while try !peer.stream.receive(4096).isEmpty {
                    try? peer.send(text: "\r\n\r\n")
                    break
                }
                peer.stream.close()
            }
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
            let peer = try server.plain()
            try peer.send(text: Self.get("/after"))
            #expect(try peer.answer().status == 200)
            peer.stream.close()
            #expect(try eventually { try server.on { $0.handle.load } == 1 })
            #expect(try server.on { $0.http.isEmpty })
        }
    }

    @Test(
        "a Content-Length that cannot be is refused and the connection ended",
        arguments: [
            ("-1", 400), ("+5", 400), ("5 5", 400), ("abc", 400), ("0x10", 400), ("99999999999999999999999", 400), ("2001", 413),
            ("5\r\nContent-Length: 6", 400),
        ])
    func badLength(length: String, status: Int) throws {
        var options = LoopOptions()
        options.bodyBytesMax = 2000
        try withServer(options: options) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get("/x", ["Content-Length: \(length)"], method: "POST") + "hello")
            let answer = try peer.answer()
            #expect(answer.status == status)
            #expect(answer.headers["connection"] == "close")
            #expect(try peer.ends())
            #expect(!server.seen.all.contains { if case .request = $0 { true } else { false } })
        }
    }

    @Test("a body of exactly the limit is taken; a longer one is told so although its sender goes on sending")
    func limit() throws {
        var options = LoopOptions()
        options.bodyBytesMax = 100_000
        try withServer(options: options) { server in
            let peer = try server.plain()
            try peer.send(text: Self.post(String(repeating: "b", count: 100_000)))
            #expect(try peer.answer().text.contains(String(repeating: "b", count: 100_000)))
            let over = try server.plain()
            try over.send(text: Self.post(String(repeating: "b", count: 100_001)))
            #expect(try over.answer().status == 413)
        }
    }

    @Test("whoever sends a refused body to its end reads the answer, whoever never ends it is cut off", arguments: [false, true])
    func lingering(isChunked: Bool) throws {
        var options = LoopOptions()
        options.bodyBytesMax = 1000
        try withServer(options: options) { server in
            let size = 8 << 20
            let head =
                isChunked
                ? ChunkedHTTPTests.head + "\(String(size, radix: 16))\r\n" : Self.get("/x", ["Content-Length: \(size)"], method: "POST")
            // The hub reads on for two seconds.
            let status = try keepingPace(within: .seconds(1)) {
                let whole = try server.plain()
                try whole.send(text: head)
                // More than the sockets' buffers hold: were it not read, this would fail or wait for ever.
                for _ in 0..<64 { try whole.send(text: String(repeating: "b", count: size / 64)) }
                return try whole.answer().status
            }
            #expect(status == 413)
            let half = try server.plain()
            try half.send(text: head + "half")
            #expect(try half.answer().status == 413)
            #expect(try half.ends(), "within LoopOptions.lingerTicks")
            #expect(!server.seen.all.contains { if case .request = $0 { true } else { false } })
        }
    }
}
