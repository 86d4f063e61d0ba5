import Glibc
import HubCore
import HubTesting
import Testing

@testable import HubTransport

@Suite("The PROXY protocol's header")
struct ProxyHeaderTests {
    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    /// Version 2, with so many bytes behind the fixed ones.
    static func block(command: UInt8 = 0x21, family: UInt8 = 0x11, _ addresses: [UInt8], notes: Int = 0) -> [UInt8] {
        let count = addresses.count + notes
        return signature + [command, family, UInt8(count >> 8), UInt8(count & 0xFF)] + addresses + [UInt8](repeating: 4, count: notes)
    }

    static let four: [UInt8] = [203, 0, 113, 9, 192, 0, 2, 1, 0x12, 0x34, 0x01, 0xBB]
    static let six: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [9] + [UInt8](repeating: 1, count: 20)

    /// The header is read whole, nothing behind it is, and no part of it is enough.
    private func expect(_ header: [UInt8], _ address: String?, _ comment: Comment = "") {
        let rest = Array("GET / HTTP/1.1".utf8)
        #expect(ProxyHeader.read(header + rest) == .complete(bytes: header.count, address.flatMap { IPAddress($0) }), comment)
        for count in 1..<header.count { #expect(ProxyHeader.read(Array(header.prefix(count))) == .incomplete, "\(comment) \(count)") }
    }

    @Test("version 1 names the client, or says that it is not known")
    func lines() {
        expect(Array("PROXY TCP4 203.0.113.9 192.0.2.1 56324 443\r\n".utf8), "203.0.113.9")
        expect(Array("PROXY TCP6 2001:db8::9 2001:db8::1 0 65535\r\n".utf8), "2001:db8::9")
        expect(Array("PROXY UNKNOWN\r\n".utf8), nil)
        expect(Array("PROXY UNKNOWN ffff::1 whatever 1 2 3\r\n".utf8), nil)
    }

    @Test("version 2 names the client; a proxy that speaks for itself, other families and notes beside the addresses are taken as well")
    func blocks() {
        expect(Self.block(Self.four), "203.0.113.9", "IPv4")
        expect(Self.block(family: 0x21, Self.six), "2001:db8::9", "IPv6")
        expect(Self.block(Self.four, notes: 100), "203.0.113.9", "notes")
        expect(Self.block(command: 0x20, family: 0x00, []), nil, "LOCAL")
        expect(Self.block(command: 0x20, Self.four), nil, "LOCAL with addresses")
        expect(Self.block(family: 0x00, []), nil, "UNSPEC")
        expect(Self.block(family: 0x31, [UInt8](repeating: 0x61, count: 216)), nil, "a UNIX socket")
        expect(Self.block(family: 0x12, Self.four), nil, "datagrams")
    }

    @Test("the longest headers pass, and a byte more does not")
    func bounds() {
        func line(_ count: Int) -> [UInt8] { Array("PROXY UNKNOWN \(String(repeating: "x", count: count - 16))\r\n".utf8) }
        expect(line(ProxyHeader.lineBytesMax), nil, "line")
        #expect(ProxyHeader.read(line(ProxyHeader.lineBytesMax + 1)) == .invalid)
        let notes = ProxyHeader.blockBytesMax - 16 - Self.four.count
        #expect(
            ProxyHeader.read(Self.block(Self.four, notes: notes)) == .complete(bytes: ProxyHeader.blockBytesMax, IPAddress("203.0.113.9")))
        #expect(ProxyHeader.read(Array(Self.block(Self.four, notes: notes + 1).prefix(16))) == .invalid, "known from its length")
    }

    @Test(
        "what is no such header is none",
        arguments: [
            "GET / HTTP/1.1\r\n", "PROXY\r\n", "PROXY TCP4\r\n", "PROXY TCP4 203.0.113.9 192.0.2.1 56324\r\n",
            "PROXY TCP4 203.0.113.9 192.0.2.1 1 2 3\r\n",
            "PROXY TCP4 203.0.113.9 192.0.2.1 56324 65536\r\n", "PROXY TCP4 203.0.113.9 192.0.2.1 +1 2\r\n",
            "PROXY TCP4 2001:db8::9 2001:db8::1 1 2\r\n",
            "PROXY TCP6 203.0.113.9 192.0.2.1 1 2\r\n", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "PROXY  TCP4 203.0.113.9 192.0.2.1 1 2\r\n",
            "PROXY TCP4 203.0.113.9 192.0.2.1 1 2\n", "proxy UNKNOWN\r\n", "PROXY UDP4 203.0.113.9 192.0.2.1 1 2\r\n",
            "\r\n\r\n\0\r\nQUIX\n", "\u{16}\u{3}\u{1}",
        ])
    func invalid(text: String) {
        #expect(ProxyHeader.read(Array(text.utf8)) == .invalid)
    }

    @Test("a block of another version, with another command, or too short for its addresses is none")
    func invalidBlocks() {
        #expect(ProxyHeader.read(Self.block(command: 0x11, Self.four)) == .invalid)
        #expect(ProxyHeader.read(Self.block(command: 0x22, Self.four)) == .invalid)
        #expect(ProxyHeader.read(Self.block(Array(Self.four.dropLast()))) == .invalid)
        #expect(ProxyHeader.read(Self.block(family: 0x21, Array(Self.six.dropLast()))) == .invalid)
    }
}

@Suite("Connections behind a proxy", .blocking)
struct ProxyTests {
    private static let get = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let line = Array("PROXY TCP4 203.0.113.9 192.0.2.1 56324 443\r\n".utf8)

    /// Requests are answered with the address they count for; WebSockets are greeted with theirs.
    private static var telling: Behaviour {
        var behaviour = Behaviour()
        behaviour.request = { loop, _, reply in
            HTTPResponse(status: 200, contentType: "text/plain", body: Array(loop.remoteAddress(of: reply).utf8))
        }
        behaviour.upgraded = { loop, connection, request in
            loop.send(Frame.text(Array(loop.remoteAddress(of: connection, request).utf8)), to: connection)
        }
        return behaviour
    }

    private static func options(tls: Bool = false, trusted: [String] = [], seconds: Int = 10) throws -> LoopOptions {
        var options = tls ? try TestCertificate().options() : LoopOptions()
        options.requestTimeoutSeconds = seconds
        options.forwarding.trusted = try trusted.map { try #require(IPNetwork($0)) }
        return options
    }

    /// A connection that has sent its header and, with TLS, shaken hands.
    private static func stream(_ server: TestServer, _ header: [UInt8], tls: Bool) throws -> any ByteStream {
        let socket = try RawSocket(port: server.port)
        try socket.send(header)
        return tls ? try TLSSocket(socket) : socket
    }

    @Test("the address in the header is that of its requests and of its WebSocket", arguments: [false, true])
    func addresses(tls: Bool) throws {
        let headers: [([UInt8], String)] = [
            (Self.line, "203.0.113.9"), (ProxyHeaderTests.block(family: 0x21, ProxyHeaderTests.six, notes: 40), "2001:db8::9"),
            (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1"), (ProxyHeaderTests.block(command: 0x20, family: 0, []), "127.0.0.1"),
        ]
        try withServer(options: Self.options(tls: tls), proxy: ProxyDoor(trusted: []), Self.telling) { server in
            var open: [TestPeer] = []
            for (header, address) in headers {
                let peer = TestPeer(try Self.stream(server, header, tls: tls))
                open.append(peer)
                for _ in 0..<2 {
                    try peer.send(text: Self.get)
                    #expect(try peer.answer().text == address)
                }
                let socket = try TestPeer.upgraded(Self.stream(server, header, tls: tls))
                open.append(socket)
                #expect(try socket.frame().text == address)
            }
            #expect(try server.on { $0.peers.count } == 4, "two of two each, and none for those who named nobody")
            for peer in open { peer.stream.close() }
            #expect(try eventually { try server.on { $0.peers.isEmpty } })
        }
    }

    @Test("a header in pieces, and one that the request follows at once, are the same")
    func pieces() throws {
        try withServer(options: Self.options(), proxy: ProxyDoor(trusted: []), Self.telling) { server in
            for header in [Self.line, ProxyHeaderTests.block(ProxyHeaderTests.four)] {
                let slow = try RawSocket(port: server.port)
                for byte in header + Array(Self.get.utf8) { try slow.send([byte]) }
                #expect(try TestPeer(slow).answer().text == "203.0.113.9")
                let quick = try RawSocket(port: server.port)
                try quick.send(header + Array(Self.get.utf8))
                #expect(try TestPeer(quick).answer().text == "203.0.113.9")
            }
            #expect(eventually { server.acceptor.waitingCount == 0 })
        }
    }

    @Test("without a header, with half of one and nothing more to come, and with a late one the connection is closed")
    func refused() throws {
        let options = try Self.options(seconds: 1)
        try withServer(options: options, proxy: ProxyDoor(trusted: []), Self.telling) { server in
            for bytes in [Array(Self.get.utf8), [0x16, 0x03, 0x01], Array("PROXY TCP4 x\r\n".utf8)] {
                let peer = try server.plain()
                try peer.stream.send(bytes)
                #expect(try peer.ends())
            }
            let half = try server.plain()
            try half.stream.send(Array(Self.line.dropLast()))
            shutdown(half.stream.descriptor, Int32(SHUT_WR))
            #expect(try half.ends())
            // One who sends nothing, one who stops in the middle, one who stops behind it.
            for count in [0, 20, Self.line.count] {
                let late = try server.plain()
                try late.stream.send(Array(Self.line.prefix(count)))
                #expect(try late.ends())
            }
            #expect(eventually { server.acceptor.waitingCount == 0 })
            #expect(server.seen.all.isEmpty)
        }
    }

    @Test("only trusted proxies may speak it where some are named")
    func trusted() throws {
        let others = try #require(IPNetwork("10.0.0.0/8"))
        try withServer(options: Self.options(), proxy: ProxyDoor(trusted: [others]), Self.telling) { server in
            let peer = try server.plain()
            try? peer.stream.send(Self.line + Array(Self.get.utf8))
            #expect(throws: (any Error).self) { try peer.answer() }
        }
        let own = try #require(IPNetwork("127.0.0.0/8"))
        try withServer(options: Self.options(), proxy: ProxyDoor(trusted: [others, own]), Self.telling) { server in
            let peer = TestPeer(try Self.stream(server, Self.line, tls: false))
            try peer.send(text: Self.get)
            #expect(try peer.answer().text == "203.0.113.9")
        }
    }

    @Test("X-Forwarded-For of a trusted proxy counts, over all its lines, and nobody else's")
    func forwarded() throws {
        let request = { (lines: [String]) in (["GET /x HTTP/1.1", "Host: localhost"] + lines).joined(separator: "\r\n") + "\r\n\r\n" }
        let strangers = Recorder<String>()
        for trusted in [["127.0.0.1", "10.0.0.0/8"], []] {
            var options = try Self.options(trusted: trusted)
            options.forwarding.noteStranger = { strangers.append($0) }
            try withServer(options: options, Self.telling) { server in
                let peer = try server.plain()
                func address(_ lines: [String]) throws -> String {
                    try peer.send(text: request(lines))
                    return try peer.answer().text
                }
                let isTrusted = !trusted.isEmpty
                #expect(try address([]) == "127.0.0.1")
                #expect(try address(["X-Forwarded-For: 203.0.113.9"]) == (isTrusted ? "203.0.113.9" : "127.0.0.1"))
                #expect(try address(["X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.0.0.7"]) == (isTrusted ? "203.0.113.9" : "127.0.0.1"))
                #expect(
                    try address(["X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 10.0.0.7"])
                        == (isTrusted ? "203.0.113.9" : "127.0.0.1"))
                let socket = try server.client(headers: ["X-Forwarded-For: 198.51.100.1, 203.0.113.9"])
                #expect(try socket.frame().text == (isTrusted ? "203.0.113.9" : "127.0.0.1"))
            }
        }
        #expect(strangers.all == Array(repeating: "127.0.0.1", count: 4), "told of each, only where it is not trusted")
    }

    @Test(
        "the right-most hop that is no trusted proxy counts; what cannot be read ends the walk",
        arguments: [
            ("203.0.113.9", "203.0.113.9"), (" 203.0.113.9\t", "203.0.113.9"), ("evil, 203.0.113.9", "203.0.113.9"),
            ("198.51.100.1,203.0.113.9,10.0.0.7,10.0.0.8", "203.0.113.9"), ("10.0.0.9, 10.0.0.8", "10.0.0.9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("2001:db8::9", "2001:db8::9"), ("[2001:db8::9]", "2001:db8::9"), ("[2001:DB8::9]:443", "2001:db8::9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("203.0.113.9, unknown", "127.0.0.1"), ("203.0.113.9, unknown, 10.0.0.7", "10.0.0.7"), ("203.0.113.9,", "127.0.0.1"),
            ("", "127.0.0.1"),
            ("203.0.113.9:", "127.0.0.1"), ("203.0.113.9:x", "127.0.0.1"), ("[2001:db8::9", "127.0.0.1"), ("[2001:db8::9]x", "127.0.0.1"),
            ("[203.0.113.9]:1", "203.0.113.9"), ("203.0.113.9 10.0.0.7", "127.0.0.1"), ("\"203.0.113.9\"", "127.0.0.1"),
        ])
    func walk(header: String, address: String) throws {
        var forwarding = Forwarding()
        forwarding.trusted = [try #require(IPNetwork("127.0.0.1")), try #require(IPNetwork("10.0.0.0/8"))]
        #expect(forwarding.address(peer: "127.0.0.1", header: header) == address)
        #expect(forwarding.address(peer: "192.0.2.66", header: header) == "192.0.2.66", "a peer that is no proxy of ours")
    }
}
