import HubCore
import Testing

@testable import HubTransport

@Suite("HTTP with chunked bodies", .blocking)
struct ChunkedHTTPTests {
    static let head = "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let body = "5;name=value\r\nhello\r\n1\r\n \r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

    @Test("the body is put together, with extensions and trailers left out; the next request follows")
    func whole() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: Self.head + Self.body)
            let answer = try peer.answer()
            #expect(answer.status == 200)
            #expect(answer.text.contains(#""body":"hello 0123456789""#))
            #expect(answer.headers["connection"] == nil)
            try peer.send(text: Self.head + "1\r\nx\r\n0\r\n\r\n" + Self.head + "0\r\n\r\n")
            #expect(try peer.answer().text.contains(#""body":"x""#))
            #expect(try peer.answer().text.contains(#""body":"""#))
        }
    }

    @Test("the same when the network cuts it at any byte")
    func everySplit() throws {
        try withServer { server in
            let body = Array(Self.body.utf8)
            for split in 0..<body.count {
                let peer = try server.plain()
                try peer.stream.send(Array(Self.head.utf8) + body[..<split])
                try peer.stream.send(Array(body[split...]))
                #expect(try peer.answer().text.contains(#""body":"hello 0123456789""#), "split at \(split)")
            }
        }
    }

    @Test("one byte at a time, and answered later")
    func byteByByteLater() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in nil }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            for byte in (Self.head + Self.body).utf8 { try peer.stream.send([byte]) }
            #expect(server.seen.wait { !$0.isEmpty })
            guard case .request(let reply) = server.seen.all[0] else { throw StreamError("no request") }
            try server.on { $0.respond(reply, .json(["late": true])) }
            let answer = try peer.answer()
            #expect(answer.text == #"{"late":true}"#)
        }
    }

    @Test(
        "what is malformed is answered with 400",
        arguments: [
            "x\r\n", "\r\n", "5\r\nhelloX", "5\r\nhello\rX", "5\nhello\r\n", "-1\r\n", "5\r\nhello\r\nzz\r\n", "123456789\r\n",
            "0\r\nTrailer: x\rX",
        ])
    func malformed(body: String) throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: Self.head + body)
            #expect(try peer.answer().status == 400)
            #expect(try peer.ends())
            #expect(!server.seen.all.contains { if case .request = $0 { true } else { false } })
        }
    }

    @Test("what is too large is answered with 413, announced in one chunk or grown in many")
    func tooLarge() throws {
        var options = LoopOptions()
        options.bodyBytesMax = 1000
        try withServer(options: options) { server in
            for body in ["3E9\r\n", "7fffffff\r\n", String(repeating: "64\r\n" + String(repeating: "x", count: 100) + "\r\n", count: 11)] {
                let peer = try server.plain()
                try peer.send(text: Self.head + body)
                #expect(try peer.answer().status == 413)
                #expect(try peer.ends())
            }
            let fits = try server.plain()
            try fits.send(text: Self.head + "3E8\r\n" + String(repeating: "x", count: 1000) + "\r\n0\r\n\r\n")
            #expect(try fits.answer().status == 200)
        }
    }

    @Test("a Content-Length beside it, and any other coding, is refused (RFC 9112, 6.1)")
    func smuggling() throws {
        try withServer { server in
            for headers in [
                "Transfer-Encoding: chunked\r\nContent-Length: 5", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
            ] {
                let peer = try server.plain()
                try peer.send(text: "POST /x HTTP/1.1\r\nHost: localhost\r\n\(headers)\r\n\r\n0\r\n\r\n")
                let answer = try peer.answer()
                #expect(answer.status == 400, "\(headers)")
                #expect(try peer.ends())
            }
        }
    }
}
