import HubCore
import HubTesting
import Testing

@testable import HubTransport

@Suite("Bodies that come in pieces", .blocking)
struct UnfinishedBodyTests {
    /// Room for ten bodies of 1,000 bytes, four of one address.
    private static func options(tls: Bool = false) throws -> LoopOptions {
        var options = tls ? try TestCertificate().options() : LoopOptions()
        options.unfinishedBodiesBytesMax = 10_000
        options.unfinishedBodiesBytesPerAddressMax = 4_000
        options.forwarding.trusted = [try #require(IPNetwork("127.0.0.1"))]
        return options
    }

    private static func head(_ length: Int, from address: String = "203.0.113.1", path: String = "/x") -> String {
        "POST \(path) HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: \(address)\r\nContent-Length: \(length)\r\n\r\n"
    }

    private static func open(_ server: TestServer, tls: Bool) throws -> TestPeer {
        let socket = try RawSocket(port: server.port)
        return TestPeer(tls ? try TLSSocket(socket) : socket)
    }

    /// Sends all of a body but its last byte, and waits until it is counted or refused.
    private static func begin(_ server: TestServer, _ count: Int, from address: String, tls: Bool = false) throws -> TestPeer {
        let peer = try open(server, tls: tls)
        let before = server.group.unfinishedBodiesBytes
        try peer.send(text: head(count + 1, from: address) + String(repeating: "b", count: count))
        _ = eventually(seconds: 2) { server.group.unfinishedBodiesBytes == before + count }
        return peer
    }

    @Test("of all connections they share one bound, and those of an address a smaller one; beyond either: 503", arguments: [false, true])
    func bound(tls: Bool) throws {
        try withServer(loops: 2, options: Self.options(tls: tls)) { server in
            var open: [TestPeer] = []
            for index in 0..<4 { open.append(try Self.begin(server, 1000, from: "2001:db8::\(index)", tls: tls)) }
            #expect(server.group.unfinishedBodiesBytes == 4000)
            let beyond = try Self.begin(server, 1, from: "2001:db8::9", tls: tls)
            let refused = try beyond.answer()
            #expect(refused.status == 503 && refused.headers["retry-after"] == "1" && refused.headers["connection"] == "close")
            #expect(try beyond.ends())
            for index in 0..<6 { open.append(try Self.begin(server, 1000, from: "203.0.113.\(index)", tls: tls)) }
            #expect(server.group.unfinishedBodiesBytes == 10_000)
            #expect(try Self.begin(server, 1, from: "203.0.113.99", tls: tls).answer().status == 503)
            // A body that comes whole needs no room, and those that are full go on.
            let whole = try Self.open(server, tls: tls)
            try whole.send(text: Self.head(500) + String(repeating: "w", count: 500))
            #expect(try whole.answer().status == 200)
            for peer in open {
                try peer.send(text: "!")
                let answer = try peer.answer()
                #expect(answer.status == 200 && answer.text.contains("b!\""))
            }
            #expect(server.group.unfinishedBodiesBytes == 0)
        }
    }

    @Test("one has no more memory than is counted for it, whatever body was served before it")
    func ownRoom() throws {
        try withServer(options: Self.options()) { server in
            let before = try server.plain()
            try before.send(text: Self.head(12_000) + String(repeating: "w", count: 12_000))
            #expect(try before.answer().status == 200)
            let waiting = try Self.begin(server, 1, from: "203.0.113.1")
            #expect(server.group.unfinishedBodiesBytes == 1)
            #expect(try server.on { loop in loop.http.indices.compactMap { loop.http[$0]?.exchange?.bodyRoom }.allSatisfy { $0 < 1000 } })
            try waiting.send(text: "!")
            #expect(try waiting.answer().status == 200)
        }
    }

    @Test("who goes, or is late, gives its room back; chunks count as they come")
    func givenBack() throws {
        var options = try Self.options()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let gone = try Self.begin(server, 3000, from: "203.0.113.1")
            gone.stream.close()
            #expect(eventually { server.group.unfinishedBodiesBytes == 0 })
            let late = try Self.begin(server, 3000, from: "203.0.113.1")
            #expect(try late.answer().status == 408)
            #expect(eventually { server.group.unfinishedBodiesBytes == 0 })
            let chunked = try server.plain()
            try chunked.send(
                text: "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7D0\r\n" + String(repeating: "c", count: 2000))
            #expect(eventually { server.group.unfinishedBodiesBytes == 2000 })
            try chunked.send(text: "\r\n7D1\r\n" + String(repeating: "c", count: 2001))
            #expect(try chunked.answer().status == 503)
            #expect(eventually { server.group.unfinishedBodiesBytes == 0 })
        }
    }

    @Test("a body over the limit of its route is refused from its head with 413, a chunked one as it grows", arguments: [false, true])
    func routeLimit(tls: Bool) throws {
        var behaviour = Behaviour()
        let most = LoopOptions.unaskedBodyBytesMax
        behaviour.bodyLimit = { $0.path == "/long" ? .bytes(.max) : .bytes(most) }
        try withServer(options: tls ? TestCertificate().options() : LoopOptions(), behaviour) { server in
            for (path, length, status) in [
                ("/short", most, 200), ("/short", most + 1, 413), ("/long", most + 1, 200), ("/long", 1 << 20, 200),
            ] {
                let peer = try Self.open(server, tls: tls)
                try peer.send(text: Self.head(length, path: path))
                if status == 200 { try peer.send(text: String(repeating: "b", count: length)) }
                #expect(try peer.answer().status == status, "\(path) \(length)")
            }
            for (chunks, status) in [(most / 4096, 200), (most / 4096 + 1, 413)] {
                let peer = try Self.open(server, tls: tls)
                let chunk = "1000\r\n" + String(repeating: "c", count: 4096) + "\r\n"
                try peer.send(text: "POST /short HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in 0..<chunks { try? peer.send(text: chunk) }
                try? peer.send(text: "0\r\n\r\n")
                #expect(try peer.answer().status == status, "\(chunks) chunks")
            }
        }
    }

    @Test("a head that is refused is answered before its body comes, however long it is said to be")
    func refusedHead() throws {
        var behaviour = Behaviour()
        behaviour.bodyLimit = { $0.path == "/refused" ? .refused(.error(401, "who are you?")) : .bytes(.max) }
        try withServer(behaviour) { server in
            for length in [10, 1 << 17] {
                let peer = try server.plain()
                try peer.send(text: Self.head(length, path: "/refused"))
                let answer = try peer.answer()
                #expect(answer.status == 401 && answer.text.contains("who are you?"))
            }
            let half = try server.plain()
            try half.send(text: Self.head(10, path: "/refused") + "12345")
            #expect(try half.answer().status == 401)
            #expect(server.group.unfinishedBodiesBytes == 0)
            // A whole body is left to the delegate to refuse.
            let whole = try server.plain()
            try whole.send(text: Self.head(10, path: "/refused") + "1234567890")
            #expect(try whole.answer().status == 200)
        }
    }
}
