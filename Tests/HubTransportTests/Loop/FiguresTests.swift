import COpenSSL
import HubCore
import HubTesting
import Testing

@testable import HubTransport

/// Counters of loops and acceptor, for metrics.
@Suite("Figures", .blocking, .serialized)
struct FiguresTests {
    @Test("messages, bytes, writes, answers and ends of connections are counted where they happen")
    func counted() throws {
        try withServer { server in
            let peers = try (0..<3).map { _ in try server.client() }
            let opened = try server.waitOpened(3)
            try peers[0].sendText("hello")
            #expect(try peers[0].frame().text == "hello")
            let frame = Frame.text(Array("to everybody".utf8))
            _ = try server.on { loop in
                frame.withUnsafeBytes { bytes in opened.map { UInt32($0.slot) }.withUnsafeBufferPointer { loop.deliver(bytes, to: $0) } }
            }
            for peer in peers { #expect(try peer.frame().text == "to everybody") }
            var figures = try server.on { $0.figures }
            #expect(figures.connections == 3 && figures.behind == 0 && figures.backlogBytes == 0)
            #expect(figures.counters.opened == 3 && figures.counters.received == 1 && figures.counters.receivedBytes == 5)
            #expect(figures.counters.deliveries == 4 && figures.counters.writes == 4)
            #expect(figures.counters.bytes == UInt64(7 + 3 * frame.count))
            #expect(figures.turns.count > 0 && figures.turns.sum > 0 && figures.cpuNanoseconds > 0)
            #expect(figures.handshakes.begun == 0)

            try peers[0].sendClose(1000)
            peers[1].stream.close()
            _ = try server.on { $0.close(opened[2], code: 4001, reason: "x") }
            _ = try peers[2].frame()
            try peers[2].sendClose(4001)
            #expect(server.seen.wait { seen in opened.allSatisfy { seen.contains(.closed($0)) } })
            figures = try server.on { $0.figures }
            #expect(figures.connections == 0)
            #expect(figures.counters.closedByPeer == 1 && figures.counters.lost == 1 && figures.counters.closedByServer == 1)
        }
    }

    @Test("answers are counted by the class of their status, those of the transport's own included")
    func responses() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try eventually { try server.on { $0.figures.counters.responses[2] } == 1 })
            let refused = try server.plain()
            try refused.send(text: "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n")
            #expect(try eventually { try server.on { $0.figures.counters.responses[4] } == 1 })
            #expect(try server.on { $0.figures.counters.responses } == [0, 0, 1, 0, 1, 0])
            #expect(server.counts.acceptedCount == 2 && server.counts.refusedCount == 0)
        }
    }

    @Test("a turn is measured from its first event to the end of its writes, and told then")
    func turns() throws {
        try withServer { server in
            let peer = try server.client()
            _ = try server.waitOpened(1)
            let before = try server.on { ($0.turnBeganAt, $0.figures.turns.count) }
            #expect(before.0 > 0, "in the middle of a turn")
            try peer.sendText("hello")
            _ = try peer.frame()
            let after = try server.on { ($0.turnBeganAt, $0.figures.turns.count) }
            #expect(after.0 > before.0 && after.1 > before.1)
        }
    }

    @Test("TLS handshakes that fail are told from those that are completed and those that are resumed")
    func handshakes() throws {
        try withServer(options: TestCertificate().options()) { server in
            _ = try TestPeer.upgraded(try server.tls())
            #expect(throws: StreamError.self) { _ = try server.tls(.init(version: TLS1_2_VERSION, ciphers: "AES256-SHA")) }
            #expect(try eventually { try server.on { $0.figures.handshakes.begun } == 2 })
            let figures = try server.on { $0.figures.handshakes }
            #expect(figures.completed == 1 && figures.resumed == 0)
        }
    }
}
