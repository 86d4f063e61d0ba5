import COpenSSL
import Foundation
import Glibc
import HubCore
import HubTesting
import Synchronization
import Testing

@testable import HubTransport

/// Peers that take too long with a handshake, a head or a body, over plain connections and through TLS.
@Suite("Request time-outs", .blocking, .serialized)
struct TimeoutTests {
    /// How peers are slow. All of them would go on for longer than any test waits.
    enum Slowness: String, CaseIterable, Sendable {
        case silent
        case halfHello = "half a ClientHello"
        case trickledHello = "a ClientHello byte by byte"
        case silentBehindHandshake, head, upgradeHead, body, chunkedBody, noBody, halfBody, halfChunk

        /// Needs TLS to be what it is.
        var isOfTLS: Bool { [.halfHello, .trickledHello, .silentBehindHandshake].contains(self) }
        /// The head is complete: an answer is possible.
        var isOfBody: Bool { [.body, .chunkedBody, .noBody, .halfBody, .halfChunk].contains(self) }
        /// Says nothing, or stops before any TLS can be.
        var isRaw: Bool { [.silent, .halfHello, .trickledHello].contains(self) }

        /// Bytes sent at once, and bytes that follow in pieces.
        var bytes: (atOnce: [UInt8], piecemeal: [UInt8]) {
            let filler = String(repeating: "a", count: 1000)
            func text(_ atOnce: String, _ piecemeal: String = "") -> ([UInt8], [UInt8]) { (Array(atOnce.utf8), Array(piecemeal.utf8)) }
            let post = "POST /x HTTP/1.1\r\nHost: h\r\n"
            // The beginning of a record and a ClientHello of 1000 bytes.
            let hello: [UInt8] = [0x16, 0x03, 0x01, 0x03, 0xE8, 0x01, 0x00, 0x03, 0xE4, 0x03, 0x03]
            return switch self {
            case .silent, .silentBehindHandshake: ([], [])
            case .halfHello: (hello + Array(repeating: 7, count: 100), [])
            case .trickledHello: ([], hello + Array(repeating: 7, count: 900))
            case .head: text("", "GET /x HTTP/1.1\r\nHost: h\r\nX-Long: " + filler)
            case .upgradeHead:
                text("GET /app/k HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", "Sec-WebSocket-Protocol: " + filler)
            case .body: text(post + "Content-Length: 1000\r\n\r\n", filler)
            case .chunkedBody: text(post + "Transfer-Encoding: chunked\r\n\r\n", String(repeating: "1\r\na\r\n", count: 80))
            case .noBody: text(post + "Content-Length: 1000\r\n\r\n")
            case .halfBody: text(post + "Content-Length: 1000\r\n\r\n" + filler.prefix(999))
            case .halfChunk: text(post + "Transfer-Encoding: chunked\r\n\r\n3E8\r\n" + filler.prefix(500))
            }
        }
    }

    private static func options(tls: Bool, seconds: Int) throws -> LoopOptions {
        var options = tls ? try TestCertificate().options() : LoopOptions()
        options.requestTimeoutSeconds = seconds
        return options
    }

    /// TLS 1.2, because nothing but what is asked for arrives there behind the handshake.
    private static func stream(_ port: Int, tls: Bool) throws -> any ByteStream {
        let socket = try RawSocket(port: port)
        return tls ? try TLSSocket(socket, .init(version: TLS1_2_VERSION)) : socket
    }

    /// Sends piecemeal until the server ends the connection, and returns what it said before.
    private static func outlast(_ stream: any ByteStream, _ slowness: Slowness) throws -> [UInt8] {
        let (atOnce, piecemeal) = slowness.bytes
        var answer: [UInt8] = []
        if !atOnce.isEmpty { try stream.send(atOnce) }
        for byte in piecemeal {
            var readable = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&readable, 1, 50) > 0 { break }
            do { try stream.send([byte]) } catch { break }
        }
        while true {
            let more = try stream.receive(4096)
            if more.isEmpty { return answer }
            answer += more
        }
    }

    @Test("whoever is too slow is let go in time, with 408 once there is a head; nobody else notices", arguments: [false, true])
    func tooSlow(tls: Bool) throws {
        // Those who are not slow have to be in time under a sanitizer, too.
        let seconds = 2 * SlowBuild.factor
        try withServer(options: Self.options(tls: tls, seconds: seconds)) { server in
            let port = server.port
            let kinds = Slowness.allCases.filter { tls || !$0.isOfTLS }
            let slow = Atomic<Int>(kinds.count)
            try concurrently(kinds.count + 1) { index in
                guard index < kinds.count else {
                    let peer = try TestPeer.upgraded(Self.stream(port, tls: tls))
                    while slow.load(ordering: .acquiring) > 0 {
                        try peer.sendText("beside them")
                        guard try peer.frame().text == "beside them" else { throw StreamError("disturbed") }
                        let asking = try TestPeer(Self.stream(port, tls: tls))
                        try asking.send(text: "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                        guard try asking.answer().status == 200 else { throw StreamError("disturbed") }
                        _ = poll(nil, 0, 20)
                    }
                    return
                }
                defer { slow.subtract(1, ordering: .acquiringAndReleasing) }
                let kind = kinds[index]
                let stream = try kind.isRaw ? RawSocket(port: port) : Self.stream(port, tls: tls)
                let began = ContinuousClock.now
                let answer = String(decoding: try Self.outlast(stream, kind), as: UTF8.self)
                let took = ContinuousClock.now - began
                // A second of the library's, and what a busy machine adds.
                guard took > .seconds(seconds) - .milliseconds(100), took < .seconds(seconds + 30 * SlowBuild.factor) else {
                    throw StreamError("\(kind.rawValue) ended after \(took)")
                }
                let isExpected =
                    kind.isOfBody ? answer.hasPrefix("HTTP/1.1 408 ") && answer.contains("\"error\":") : answer.isEmpty || !kind.isRaw
                guard isExpected else { throw StreamError("\(kind.rawValue) was answered \(answer)") }
                if kind.isOfBody, !answer.lowercased().contains("connection: close") { throw StreamError("\(kind.rawValue): \(answer)") }
            }
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
            #expect(try server.on { $0.http.isEmpty })
        }
    }

    @Test("whoever is slow and just inside the limit is served", arguments: [false, true])
    func slowEnough(tls: Bool) throws {
        let seconds = 4
        // Four fifths of it, in ten steps.
        let step = Int32(seconds * 80)
        try withServer(options: Self.options(tls: tls, seconds: seconds)) { server in
            let port = server.port
            @Sendable func inSteps(_ text: String, _ stream: any ByteStream) throws {
                let bytes = Array(text.utf8)
                let size = (bytes.count + 9) / 10
                let began = ContinuousClock.now
                let outcome = Result {
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        _ = poll(nil, 0, step)
                        try stream.send(Array(bytes[start..<min(start + size, bytes.count)]))
                    }
                }
                if ContinuousClock.now - began > .milliseconds(950 * seconds) { throw FellBehind() }
                try outcome.get()
            }
            @Sendable func served(_ index: Int) throws {
                let socket = try RawSocket(port: port)
                // A handshake that begins late.
                if index == 4 { _ = poll(nil, 0, step * 10) }
                let stream: any ByteStream = tls ? try TLSSocket(socket, .init(version: TLS1_2_VERSION)) : socket
                let peer = TestPeer(stream)
                switch index {
                case 0:
                    // A slow head, then a slow body: each has its own time.
                    try inSteps("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\n", stream)
                    try inSteps(String(repeating: "a", count: 30), stream)
                case 1:
                    try inSteps(
                        "GET /app/k HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", stream)
                    guard try peer.answer(isHead: true).status == 101 else { throw StreamError("no upgrade") }
                    try peer.sendText("slow and steady")
                    guard try peer.frame().text == "slow and steady" else { throw StreamError("no echo") }
                    return
                case 2:
                    try stream.send(Array("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
                    try inSteps(String(repeating: "1\r\na\r\n", count: 10) + "0\r\n\r\n", stream)
                default: try stream.send(Array("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
                }
                let status = try peer.answer().status
                guard status == 200 else { throw StreamError("peer \(index) was answered \(status)") }
            }
            try concurrently(5) { index in
                // A machine that stands still for longer makes a slow peer of anybody. One of them has two phases.
                try keepingPace(within: .milliseconds((index == 0 ? 1750 : 950) * seconds)) { try served(index) }
            }
        }
    }

    @Test("a second request of a connection has a time of its own, and an idle connection none of it")
    func keepAlive() throws {
        try withServer(options: Self.options(tls: false, seconds: 1)) { server in
            let peer = try server.plain()
            for _ in 0..<2 {
                try peer.send(text: "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
                #expect(try peer.answer().status == 200)
                _ = poll(nil, 0, 2500)
            }
            try peer.send(text: "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{")
            #expect(try peer.answer().status == 408)
            #expect(try peer.ends())
        }
    }

    @Test("plain text to a TLS port and TLS to a plain port end at once", arguments: [false, true])
    func wrongProtocol(tls: Bool) throws {
        // Long enough to tell the two ways of ending apart.
        try withServer(options: Self.options(tls: tls, seconds: 60)) { server in
            let bystander = try TestPeer.upgraded(Self.stream(server.port, tls: tls))
            for _ in 0..<50 {
                let socket = try RawSocket(port: server.port)
                if tls {
                    try socket.send(Array("GET /app/key HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n".utf8))
                    while try !socket.receive(4096).isEmpty {}
                } else {
                    #expect(throws: StreamError.self) { _ = try TLSSocket(socket) }
                }
            }
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
            bystander.stream.close()
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
        }
    }
}
