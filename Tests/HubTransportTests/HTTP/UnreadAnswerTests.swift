import Glibc
import HubCore
import HubTesting
import Synchronization
import Testing

@testable import HubTransport

/// Readers of HTTP answers who take their time, over plain connections and through TLS.
@Suite("Answers that nobody reads", .blocking, .serialized)
struct UnreadAnswerTests {
    private static let get = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    /// More than the kernel takes of it.
    private static let bytes = 24 << 20

    private static func options(tls: Bool, seconds: Int = 10) throws -> LoopOptions {
        var options = tls ? try TestCertificate().options() : LoopOptions()
        options.requestTimeoutSeconds = seconds
        return options
    }

    private static var long: Behaviour {
        var behaviour = Behaviour()
        behaviour.request = { _, request, _ in
            HTTPResponse(
                status: 200, contentType: "text/plain", body: [UInt8](repeating: 0x61, count: request.path == "/short" ? 10 : bytes))
        }
        return behaviour
    }

    private static func peer(_ server: TestServer, tls: Bool) throws -> TestPeer {
        let socket = try RawSocket(port: server.port, receiveBufferBytes: 4096)
        return TestPeer(tls ? try TLSSocket(socket) : socket)
    }

    @Test("count until they are read, and the connection goes on behind them", arguments: [false, true])
    func counted(tls: Bool) throws {
        try withServer(options: Self.options(tls: tls, seconds: 60), Self.long) { server in
            let peer = try Self.peer(server, tls: tls)
            try peer.send(text: Self.get)
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } > Self.bytes })
            #expect(try peer.answer().body.count == Self.bytes)
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } == 0 })
            try peer.send(text: "GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try peer.answer().body.count == 10)
        }
    }

    @Test("end with their connection when nothing is taken within the time-out", arguments: [false, true])
    func timeOut(tls: Bool) throws {
        try withServer(options: Self.options(tls: tls, seconds: 1), Self.long) { server in
            let peer = try Self.peer(server, tls: tls)
            try peer.send(text: Self.get)
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } > 0 })
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } == 0 })
            #expect(try server.on { $0.http.isEmpty })
            #expect(throws: (any Error).self) { try peer.answer() }
        }
    }

    @Test("go on for as long as something is taken, however long the whole takes", arguments: [false, true])
    func slowReader(tls: Bool) throws {
        let seconds = 2 * SlowBuild.factor
        try withServer(options: Self.options(tls: tls, seconds: seconds), Self.long) { server in
            let peer = try Self.peer(server, tls: tls)
            try peer.send(text: Self.get)
            // Half of it, evenly, while the time-out passes twice.
            let start = ContinuousClock.now
            let share = Self.bytes / 2 / (20 * (2 * seconds + 1))
            var taken = 0
            while start.duration(to: .now) < .seconds(2 * seconds + 1) {
                let goal = min(taken + share, Self.bytes / 2)
                while taken < goal { taken += try peer.stream.receive(16_384).count }
                _ = poll(nil, 0, 50)
            }
            var more = [UInt8](repeating: 0, count: 1)
            while taken <= Self.bytes, !more.isEmpty {
                more = try peer.stream.receive(1 << 16)
                taken += more.count
            }
            #expect(taken > Self.bytes, "the head as well")
        }
    }

    @Test("hold up the requests behind them, and an upgrade", arguments: [false, true])
    func pipelined(tls: Bool) throws {
        let (count, bytes) = (1200, 20_000)
        var behaviour = Behaviour()
        behaviour.request = { _, request, _ in
            HTTPResponse(status: 200, body: Array((request.path + " ").utf8) + [UInt8](repeating: 0x61, count: bytes))
        }
        try withServer(options: Self.options(tls: tls, seconds: 60), behaviour) { server in
            let peer = try Self.peer(server, tls: tls)
            let requests = (0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined()
            try peer.send(text: requests + TestPeer.upgradeRequest())
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } > 0 })
            #expect(try server.on { $0.queuedMemory.bytes } < 3 * LoopOptions.answerPieceBytes)
            #expect(server.seen.all.count < count)
            for index in 0..<count {
                let answer = try peer.answer()
                #expect(answer.text.hasPrefix("/\(index) ") && answer.body.count > bytes)
            }
            #expect(try peer.answer(isHead: true).status == 101)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test("that are short hold up an upgrade, too", arguments: [false, true])
    func upgradeBehind(tls: Bool) throws {
        try withServer(options: Self.options(tls: tls, seconds: 60)) { server in
            let peer = try Self.peer(server, tls: tls)
            try peer.send(text: Self.get)
            _ = try peer.answer()
            // A small buffer, so that the kernel takes answers of one read in part.
            try server.on { loop in
                var bytes: Int32 = 4096
                for socket in loop.http.indices.compactMap({ loop.http[$0]?.socket }) {
                    setsockopt(socket.pointee.descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
                }
            }
            try peer.send(text: String(repeating: Self.get, count: 150) + TestPeer.upgradeRequest())
            for _ in 0..<150 { #expect(try peer.answer().text.contains("\"/x\"")) }
            #expect(try peer.answer(isHead: true).status == 101)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test("end with their connection when all that waits would pass the bound", arguments: [false, true])
    func total(tls: Bool) throws {
        var options = try Self.options(tls: tls, seconds: 60)
        options.sendQueueBytesTotalMax = 2 * Self.bytes + 4096
        try withServer(options: options, Self.long) { server in
            var waiting: [TestPeer] = []
            for count in 1...2 {
                let peer = try Self.peer(server, tls: tls)
                try peer.send(text: Self.get)
                waiting.append(peer)
                #expect(try eventually { try server.on { $0.queuedMemory.bytes } > count * Self.bytes })
            }
            let beyond = try Self.peer(server, tls: tls)
            try beyond.send(text: Self.get)
            #expect(throws: (any Error).self) { try beyond.answer() }
            for peer in waiting { #expect(try peer.answer().body.count == Self.bytes) }
        }
    }
}

@Suite("HTTP connections of an address", .blocking)
struct CountedConnectionTests {
    private static let get = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// Counts as a hub does.
    private final class Door: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        let most: Int
        init(_ most: Int) { self.most = most }
        func count(_ address: String) -> Int { counts.withLock { $0[address, default: 0] } }
        func admit(_ address: String) -> Bool {
            counts.withLock { counts in
                guard counts[address, default: 0] < most else { return false }
                counts[address, default: 0] += 1
                return true
            }
        }
        func left(_ address: String) { counts.withLock { $0[address, default: 0] -= 1 } }
    }

    private static func behaviour(_ door: Door) -> Behaviour {
        var behaviour = Behaviour()
        behaviour.admits = { door.admit($0) }
        behaviour.left = { door.left($0) }
        return behaviour
    }

    @Test("one counts from its first request until it ends or becomes a WebSocket; one too many is a 429")
    func direct() throws {
        let door = Door(2)
        var options = LoopOptions()
        options.countsConnections = true
        try withServer(options: options, Self.behaviour(door)) { server in
            let peers = try (0..<3).map { _ in try server.plain() }
            for _ in 0..<3 {
                for peer in peers.prefix(2) {
                    try peer.send(text: Self.get)
                    #expect(try peer.answer().status == 200)
                }
            }
            #expect(door.count("127.0.0.1") == 2)
            try peers[2].send(text: "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123")
            let refused = try peers[2].answer()
            #expect(refused.status == 429 && refused.headers["retry-after"] == "1" && refused.headers["connection"] == "close")
            #expect(try peers[2].ends())
            #expect(try peers[0].upgrade().status == 101)
            #expect(eventually { door.count("127.0.0.1") == 1 })
            peers[1].stream.close()
            #expect(eventually { door.count("127.0.0.1") == 0 })
            #expect(try server.on { $0.counted.isEmpty })
        }
    }

    @Test("one of a trusted proxy counts for each client while its request is open")
    func forwarded() throws {
        let door = Door(1)
        var options = LoopOptions()
        options.countsConnections = true
        options.forwarding.trusted = [try #require(IPNetwork("127.0.0.1"))]
        var behaviour = Self.behaviour(door)
        behaviour.request = { _, request, _ in request.path == "/later" ? nil : .json([:]) }
        try withServer(options: options, behaviour) { server in
            func request(_ path: String, _ address: String) -> String {
                "GET \(path) HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: \(address)\r\n\r\n"
            }
            let peers = try (0..<3).map { _ in try server.plain() }
            for address in ["203.0.113.1", "203.0.113.2", "203.0.113.1"] {
                for peer in peers {
                    try peer.send(text: request("/x", address))
                    #expect(try peer.answer().status == 200)
                }
            }
            try peers[0].send(text: request("/later", "203.0.113.1"))
            #expect(eventually { door.count("203.0.113.1") == 1 })
            try peers[1].send(text: request("/x", "203.0.113.1"))
            #expect(try peers[1].answer().status == 429)
            try peers[2].send(text: request("/x", "203.0.113.2"))
            #expect(try peers[2].answer().status == 200)
            let reply = try #require(server.seen.all.compactMap { if case .request(let reply) = $0 { reply } else { nil } }.dropLast().last)
            try server.on { $0.respond(reply, .json([:])) }
            #expect(try peers[0].answer().status == 200)
            #expect(eventually { door.count("203.0.113.1") == 0 && door.count("203.0.113.2") == 0 })
        }
    }
}
