import COpenSSL
import Foundation
import HubCore
import HubTesting
import Testing

@testable import HubTransport

extension TestCertificate {
    func load() throws -> ServerCertificate {
        try ServerCertificate.load(certificatePath: certificatePath, keyPath: keyPath)
    }

    /// Options of a server that uses it.
    func options() throws -> LoopOptions {
        var options = LoopOptions()
        options.certificate = try load()
        return options
    }
}

extension TestServer {
    func tls(_ wishes: TLSSocket.Wishes = .init()) throws -> TLSSocket {
        try TLSSocket(RawSocket(port: port), wishes)
    }
}

@Suite("TLS", .blocking, .serialized)
struct TLSTests {
    private static func echo(_ peer: TestPeer, _ text: String) throws -> Bool {
        try peer.sendText(text)
        return try peer.frame().text == text
    }

    @Test("TLS 1.2 and 1.3 are spoken, 1.0 and 1.1 are refused in words a client understands")
    func versions() throws {
        try withServer(options: TestCertificate().options()) { server in
            for (version, name) in [(TLS1_2_VERSION, "TLSv1.2"), (TLS1_3_VERSION, "TLSv1.3")] {
                let socket = try server.tls(.init(version: version))
                #expect(socket.version == name)
                #expect(try Self.echo(TestPeer.upgraded(socket), name))
            }
            for version in [TLS1_VERSION, TLS1_1_VERSION] {
                let error = #expect(throws: StreamError.self) { _ = try server.tls(.init(version: version)) }
                #expect(error?.description.contains("alert protocol version") == true, "\(error?.description ?? "")")
            }
        }
    }

    @Test("ciphers without forward secrecy or authenticated encryption are refused")
    func ciphers() throws {
        try withServer(options: TestCertificate(.init(rsaBits: 2048)).options()) { server in
            for refused in ["AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256"] {
                let error = #expect(throws: StreamError.self) { _ = try server.tls(.init(version: TLS1_2_VERSION, ciphers: refused)) }
                #expect(error?.description.contains("handshake failure") == true, "\(refused): \(error?.description ?? "")")
            }
            for accepted in ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"] {
                let socket = try server.tls(.init(version: TLS1_2_VERSION, ciphers: accepted))
                #expect(socket.version == "TLSv1.2")
            }
        }
    }

    /// The shorter key has the smaller connection, and who has no AES in hardware is slow with it.
    @Test("AES with the shorter key comes first, unless the client has put ChaCha20 in front")
    func preference() throws {
        try withServer(options: TestCertificate().options()) { server in
            let (aes128, aes256, chacha) = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
            for (offer, choice) in [
                ([aes256, chacha, aes128], aes128), ([chacha, aes256, aes128], chacha), ([aes256, chacha], aes256), ([aes256], aes256),
            ] {
                let socket = try server.tls(.init(version: TLS1_3_VERSION, suites: offer.joined(separator: ":")))
                #expect(socket.cipher == choice, "\(offer)")
            }
            let family = "ECDHE-ECDSA-"
            for (offer, choice) in [
                (["AES256-GCM-SHA384", "CHACHA20-POLY1305", "AES128-GCM-SHA256"], "AES128-GCM-SHA256"),
                (["CHACHA20-POLY1305", "AES128-GCM-SHA256"], "CHACHA20-POLY1305"),
                (["AES256-GCM-SHA384", "CHACHA20-POLY1305"], "AES256-GCM-SHA384"),
            ] {
                let socket = try server.tls(.init(version: TLS1_2_VERSION, ciphers: offer.map { family + $0 }.joined(separator: ":")))
                #expect(socket.cipher == family + choice, "\(offer)")
            }
        }
    }

    @Test("the intermediates of a chain file are sent, so that a client that knows only the root trusts the server", arguments: [0, 1, 2])
    func chain(intermediates: Int) throws {
        let certificate = try TestCertificate(.init(intermediates: intermediates))
        try withServer(options: certificate.options()) { server in
            let socket = try server.tls(.init(authorityPath: certificate.authorityPath))
            #expect(socket.chainCount == 1 + intermediates)
            let stranger = try TestCertificate()
            #expect(throws: StreamError.self) { _ = try server.tls(.init(authorityPath: stranger.authorityPath)) }
        }
    }

    @Test("a client that offers HTTP/2 is given HTTP/1.1, and one that offers nothing else is answered all the same")
    func protocols() throws {
        try withServer(options: TestCertificate().options()) { server in
            for (offer, choice) in [(["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), (["h2"], ""), ([], "")] {
                let socket = try server.tls(.init(protocols: offer))
                #expect(socket.chosenProtocol == choice)
                let peer = TestPeer(socket)
                try peer.send(text: "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try peer.answer().status == 200)
            }
        }
    }

    @Test("a peer that wants to renegotiate is refused, and nobody else notices")
    func renegotiation() throws {
        try withServer(options: TestCertificate().options()) { server in
            let bystander = try TestPeer.upgraded(server.tls())
            let socket = try server.tls(.init(version: TLS1_2_VERSION))
            _ = try TestPeer.upgraded(socket)
            #expect(!socket.renegotiate())
            #expect(try Self.echo(bystander, "still here"))
        }
    }

    @Test("a session is resumed, also on another loop", arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func resumption(version: Int32) throws {
        try withServer(loops: 2, options: TestCertificate().options()) { server in
            let first = try server.tls(.init(version: version))
            let peer = try TestPeer.upgraded(first)
            #expect(try Self.echo(peer, "first") && !first.wasResumed)
            let session = first.resumption
            // Kept, because OpenSSL does not resume a session of a connection that was dropped without a word.
            var resumed: [TLSSocket] = []
            for _ in 0..<4 {
                let next = try server.tls(.init(version: version, session: session))
                #expect(next.wasResumed)
                #expect(try Self.echo(TestPeer.upgraded(next), "next"))
                resumed.append(next)
            }
            #expect(Set(try server.waitOpened(5).map(\.loop)) == [0, 1])
        }
    }

    @Test(
        "a replaced certificate is what new handshakes get; open connections go on, and old sessions are not resumed",
        arguments: [(nil, nil), (nil, 2048), (2048, nil), (2048, 2048)] as [(Int?, Int?)])
    func replacement(formerBits: Int?, newBits: Int?) throws {
        let former = try TestCertificate(.init(name: "former", rsaBits: formerBits, intermediates: 1))
        let new = try TestCertificate(.init(name: "new", rsaBits: newBits))
        try withServer(loops: 2, options: former.options()) { server in
            let sockets = try (0..<4).map { _ in try server.tls() }
            let peers = try sockets.map { try TestPeer.upgraded($0) }
            for peer in peers { #expect(try Self.echo(peer, "before")) }
            // In the middle of its handshake when the certificate changes.
            let half = try RawSocket(port: server.port)
            try half.send([0x16, 0x03, 0x01])
            #expect(try eventually { try server.on(0) { $0.handle.load } + server.on(1) { $0.handle.load } == 5 })

            server.group.replace(try new.load())
            for _ in 0..<4 {
                let socket = try server.tls(.init(session: sockets[0].resumption))
                #expect(socket.serverName == "new" && socket.chainCount == 1 && !socket.wasResumed)
                // Also for one that could do with the former key only.
                let ciphers = formerBits == nil ? "ECDHE-ECDSA-AES128-GCM-SHA256" : "ECDHE-RSA-AES128-GCM-SHA256"
                let particular = try? server.tls(.init(version: TLS1_2_VERSION, ciphers: ciphers))
                #expect(particular?.serverName == ((formerBits == nil) == (newBits == nil) ? "new" : nil))
            }
            for (peer, socket) in zip(peers, sockets) {
                #expect(socket.serverName == "former")
                #expect(try Self.echo(peer, String(repeating: "after", count: 4000)))
            }
        }
    }

    @Test("nothing happens to plain loops that are given a certificate")
    func replacementOnPlainLoops() throws {
        try withServer { server in
            server.group.replace(try TestCertificate().load())
            #expect(try Self.echo(server.client(), "plain"))
        }
    }

    /// A partly read record is held by OpenSSL, where the event loop cannot see the rest.
    @Test(
        "bodies and messages arrive whole whatever the size of their records",
        arguments: [1, 4_000, 4_096, 10_240, 16_384, 40_000, 400_000])
    func records(bytes: Int) throws {
        var options = try TestCertificate().options()
        options.messageBytesMax = 1 << 20
        try withServer(options: options) { server in
            let text = String((0..<bytes).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
            let peer = TestPeer(try server.tls())
            for chunked in [false, false, true] {
                let framing = chunked ? "Transfer-Encoding: chunked" : "Content-Length: \(bytes)"
                let body = chunked ? "\(String(bytes, radix: 16))\r\n\(text)\r\n0\r\n\r\n" : text
                // In one write: the head shares a record with the body, or stands before records that are full.
                try peer.send(text: "POST /x HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\n\r\n\(body)")
                let answer = try peer.answer()
                #expect(answer.status == 200 && answer.text.contains("\"body\":\"\(text)\""))
            }
            let socket = try TestPeer.upgraded(server.tls())
            for _ in 0..<3 { #expect(try Self.echo(socket, text)) }
        }
    }

    // MARK: Files

    private static func problem(_ certificatePath: String, _ keyPath: String) -> (CertificateError.Culprit, String)? {
        let error = #expect(throws: CertificateError.self) {
            _ = try ServerCertificate.load(certificatePath: certificatePath, keyPath: keyPath)
        }
        return error.map { ($0.culprit, $0.description) }
    }

    @Test("files that cannot be used are named with what to do about them")
    func badFiles() throws {
        let good = try TestCertificate()
        func file(_ name: String, _ text: String) throws -> String {
            let url = good.folder.appendingPathComponent(name)
            try Data(text.utf8).write(to: url)
            return url.path
        }
        let certificate = try String(contentsOfFile: good.certificatePath, encoding: .utf8)
        let garbage = try file("garbage", "not PEM at all\n")
        let cut = try file("cut", String(certificate.prefix(certificate.count / 2)))
        let damaged = try file("damaged", certificate + certificate.replacing("MII", with: "AAA"))
        let large = try file("large", String(repeating: "x", count: ServerCertificate.fileBytesMax + 1))
        for (path, words) in [
            ("/nowhere/cert.pem", "No such file"), (good.folder.path, "Is a directory"), (garbage, "holds no certificate"),
            (good.keyPath, "holds no certificate"), (try file("empty", ""), "holds no certificate"), (cut, "damaged"),
            (damaged, "number 2"), (large, "bytes"), ("/dev/zero", "bytes"),
        ] {
            let problem = Self.problem(path, good.keyPath)
            #expect(
                problem?.0 == .certificate && problem?.1.contains(words) == true && problem?.1.contains(path) == true,
                "\(path): \(problem as Any)")
        }
        let encrypted = try TestCertificate(.init(password: "secret"))
        for (path, words) in [
            ("/nowhere/key.pem", "No such file"), (garbage, "no private key"), (good.certificatePath, "no private key"),
            (encrypted.keyPath, "encrypted"),
        ] {
            let problem = Self.problem(good.certificatePath, path)
            #expect(
                problem?.0 == .key && problem?.1.contains(words) == true && problem?.1.contains(path) == true, "\(path): \(problem as Any)")
        }
        let other = try TestCertificate(.init(rsaBits: 2048))
        #expect(Self.problem(good.certificatePath, other.keyPath)?.0 == .pair)
        let reversed = try TestCertificate(.init(intermediates: 1, isReversed: true))
        let problem = Self.problem(reversed.certificatePath, reversed.keyPath)
        #expect(problem?.0 == .pair && problem?.1.contains("number 2") == true)
        let weak = try TestCertificate(.init(rsaBits: 1024))
        #expect(Self.problem(weak.certificatePath, weak.keyPath)?.1.contains("too small") == true)
    }

    @Test("a file that may not be read is named", .enabled(if: geteuid() != 0, "root may read everything"))
    func forbiddenFile() throws {
        let good = try TestCertificate()
        chmod(good.keyPath, 0)
        let problem = Self.problem(good.certificatePath, good.keyPath)
        #expect(problem?.0 == .key && problem?.1.contains("Permission denied") == true)
    }

    @Test("what clients will mind is warned of, and the certificate used all the same")
    func warnings() throws {
        let now = Int64(Date().timeIntervalSince1970)
        #expect(try TestCertificate(.init(intermediates: 2)).load().warnings(now: now).isEmpty)
        let expired = try TestCertificate(.init(validUntil: -60))
        #expect(try expired.load().warnings(now: now).map { $0.contains("expired on 20") } == [true])
        #expect(try TestCertificate(.init(validFrom: 3600)).load().warnings(now: now).map { $0.contains("not valid before 20") } == [true])
        let strange = try TestCertificate(.init(intermediates: 1))
        let chain =
            try String(contentsOfFile: strange.certificatePath, encoding: .utf8)
            + String(contentsOfFile: expired.certificatePath, encoding: .utf8)
        try Data(chain.utf8).write(to: URL(fileURLWithPath: strange.certificatePath))
        #expect(try strange.load().warnings(now: now).map { $0.contains("not a chain") } == [true])
        try withServer(options: expired.options()) { server in
            let socket = try server.tls()
            #expect(socket.serverName == "localhost")
        }
    }

    @Test("a certificate says its name, its intermediates and its last day")
    func summary() throws {
        let certificate = try TestCertificate(.init(name: "hub.example", intermediates: 2, validUntil: 86_400)).load()
        #expect(certificate.name == "hub.example" && certificate.intermediateCount == 2)
        #expect(abs(certificate.expiresAt - Int64(Date().timeIntervalSince1970) - 86_400) < 60)
        #expect(certificate.expiryDay.wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil)
    }
}
