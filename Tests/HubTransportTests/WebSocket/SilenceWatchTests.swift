import Foundation
import HubCore
import Testing

@testable import HubTransport

@Suite("Silence watch", .blocking)
struct SilenceWatchTests {
    /// Watches every connection as soon as it is open; the durations come with the query.
    private static func watching(pingAfter: Duration = .milliseconds(250), pongWithin: Duration = .milliseconds(500)) -> Behaviour {
        var behaviour = Behaviour()
        behaviour.opened = { loop, connection, _ in loop.watchSilence(connection, pingAfter: pingAfter, pongWithin: pongWithin) }
        return behaviour
    }

    @Test("a silent peer is sent one PING and reported when nothing answers it")
    func silent() throws {
        try withServer(Self.watching()) { server in
            let peer = try server.client()
            #expect(try peer.frame().opcode == 9)
            let close = try peer.frame()
            #expect(close.closeCode == 4201)
            let connection = try server.waitOpened(1)[0]
            #expect(server.seen.all.count { $0 == .silent(connection) } == 1)
            #expect(try server.on { $0.counters.pings } == 1)
        }
    }

    @Test("a peer that only answers PINGs stays, PING after PING")
    func onlyPongs() throws {
        // Three seconds for an answer, so that a machine that stands still for a moment fails no test. The next PING comes
        // after them, however early the answer is.
        try withServer(Self.watching(pongWithin: .seconds(3))) { server in
            let peer = try server.client()
            for _ in 0..<3 {
                let ping = try peer.frame()
                #expect(ping.opcode == 9)
                // The library reports no PONG without payload: an empty PING would end everybody (RFC 6455, 5.5.3).
                #expect(!ping.payload.isEmpty)
                try peer.sendFrame(10, ping.payload)
            }
            let connection = try server.waitOpened(1)[0]
            #expect(!server.seen.all.contains(.silent(connection)))
            #expect(try server.on { $0.counters.pings } >= 3)
        }
    }

    @Test(
        "a PONG nobody asked for, a PONG with a payload and any message are signs of life",
        arguments: ["pong", "text", "binary", "fragment"])
    func life(kind: String) throws {
        try withServer(Self.watching(pongWithin: .seconds(2))) { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            var isFirst = true
            for _ in 0..<2 {
                // Answers each PING, but not with what belongs to it.
                var frame = try peer.frame()
                while frame.opcode != 9 { frame = try peer.frame() }
                switch kind {
                case "pong": try peer.sendFrame(10, Array("something else".utf8))
                case "text": try peer.sendText("hello")
                case "binary": try peer.sendFrame(2, [1])
                default: try peer.sendFrame(isFirst ? 1 : 0, [65], isFinal: false)
                }
                isFirst = false
            }
            #expect(!server.seen.all.contains(.silent(connection)))
        }
    }

    @Test("a peer's own PINGs are signs of life, though the library answers them by itself")
    func ownPings() throws {
        try withServer(Self.watching(pingAfter: .seconds(1), pongWithin: .seconds(1))) { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            for _ in 0..<3 {
                // Answers each PING with one of its own.
                while try peer.frame().opcode != 9 {}
                try peer.sendFrame(9, Array("are you there".utf8))
            }
            #expect(!server.seen.all.contains(.silent(connection)))
            // Then it falls silent.
            #expect(server.seen.wait { $0.contains(.silent(connection)) })
        }
    }

    @Test("a peer that talks is not sent PINGs, and one that stops talking is")
    func talking() throws {
        try withServer(Self.watching(pingAfter: .milliseconds(1500), pongWithin: .seconds(10))) { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            let firstTick = try server.on { $0.tick }
            // Talks all along for longer than the six ticks that silence would need. A machine that stood still for as long
            // has made the peer silent, and then a PING is right.
            var longestSilence: UInt32 = 0
            while try server.on(0, { $0.tick }) < firstTick + 8 {
                let silence = try server.on { $0.tick - $0.table.base[connection.slot].lastInboundTick }
                longestSilence = max(longestSilence, silence)
                try peer.sendText("x")
                if longestSilence < 5 { #expect(try peer.frame().text == "x") }
            }
            if longestSilence < 5 { #expect(try server.on { $0.counters.pings } == 0) }
            var frame = try peer.frame()
            while frame.opcode == 1 { frame = try peer.frame() }
            #expect(frame.opcode == 9)
            #expect(!server.seen.all.contains(.silent(connection)))
        }
    }

    @Test("asking again changes the durations")
    func rearmed() throws {
        try withServer(Self.watching(pingAfter: .seconds(1000))) { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            try server.on { $0.watchSilence(connection, pingAfter: .milliseconds(250), pongWithin: .milliseconds(250)) }
            #expect(try peer.frame().opcode == 9)
            #expect(try peer.frame().closeCode == 4201)
        }
    }

    @Test("a connection that closes takes its watch along")
    func closedWhileArmed() throws {
        try withServer(Self.watching(pingAfter: .milliseconds(500))) { server in
            let first = try server.client()
            let connection = try server.waitOpened(1)[0]
            try first.sendClose(1000)
            #expect(try first.frame().closeCode == 1000)
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
            let second = try server.client()
            #expect(try second.frame().opcode == 9)
            #expect(try server.on { $0.counters.pings } == 1)
        }
    }

    @Test("a PONG is reported with its payload, that of the silence watch is not")
    func pongs() throws {
        try withServer { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            try server.on { $0.send([0x89, 0x03] + Array("r17".utf8), to: connection) }
            let ping = try peer.frame()
            #expect(ping.opcode == 9 && ping.payload == Array("r17".utf8))
            try peer.sendFrame(10, [Loop.silenceMark])
            try peer.sendFrame(10, ping.payload)
            try peer.sendFrame(10, Array(repeating: 0x72, count: 125))
            #expect(server.seen.wait { $0.contains(.pong(connection, Array(repeating: 0x72, count: 125))) })
            let pongs = server.seen.all.filter { if case .pong = $0 { true } else { false } }
            #expect(pongs == [.pong(connection, Array("r17".utf8)), .pong(connection, Array(repeating: 0x72, count: 125))])
        }
    }
}
