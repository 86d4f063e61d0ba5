import HubCore
import Testing

@testable import HubTransport

@Suite("Closing", .blocking)
struct CloseTests {
    @Test("the server's close frame has code and reason; the socket ends when the peer has echoed it, and not before")
    func serverCloses() throws {
        try withServer { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            try server.on { loop in
                loop.send(Frame.text(Array("error".utf8)), to: connection)
                loop.close(connection, code: 4001, reason: "Application does not exist")
                // All of this comes too late.
                loop.close(connection, code: 4200, reason: "again")
                loop.send(Frame.text(Array("late".utf8)), to: connection)
            }
            #expect(try peer.frame().text == "error")
            let close = try peer.frame()
            #expect(close.closeCode == 4001)
            #expect(close.closeReason == "Application does not exist")
            try peer.sendText("not read any more")
            #expect(try server.on { $0.connectionCount } == 1)
            try peer.sendClose(4001)
            #expect(try peer.ends())
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
            #expect(!server.seen.all.contains(.text(connection, Array("not read any more".utf8))))
            #expect(server.seen.all.contains(.ended(connection, .closedByServer)))
        }
    }

    @Test("a reason is cut between characters to what a close frame can hold")
    func longReason() throws {
        try withServer { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            try server.on { $0.close(connection, code: 4100, reason: String(repeating: "ü", count: 100)) }
            let close = try peer.frame()
            #expect(close.closeCode == 4100)
            #expect(close.closeReason == String(repeating: "ü", count: 61))
            try peer.sendClose(4100)
            #expect(try peer.ends())
        }
    }

    @Test("a peer that never answers the close frame is dropped after the bound")
    func noEcho() throws {
        try withServer { server in
            let peer = try server.client()
            let connection = try server.waitOpened(1)[0]
            try server.on { $0.close(connection, code: 4200, reason: "bye") }
            #expect(try peer.frame().closeCode == 4200)
            #expect(try peer.ends(), "after LoopOptions.closeAnswerTicks")
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
        }
    }

    @Test("a valid close of the peer is echoed", arguments: [1000, 1001, 1003, 1007, 1011, 3000, 3999, 4000, 4201, 4999])
    func echo(code: Int) throws {
        try withServer { server in
            let peer = try server.client()
            try peer.sendClose(code, "gute Nacht, Zoë")
            #expect(try peer.frame().closeCode == code)
            #expect(try peer.ends())
            let connection = try server.waitOpened(1)[0]
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
            #expect(server.seen.all.contains(.ended(connection, .closedByPeer(code: UInt16(code)))))
        }
    }

    @Test("a close without a code is echoed")
    func emptyClose() throws {
        try withServer { server in
            let peer = try server.client()
            try peer.sendFrame(8)
            let close = try peer.frame()
            #expect(close.opcode == 8 && close.payload.isEmpty)
            #expect(try peer.ends())
            let connection = try server.waitOpened(1)[0]
            #expect(server.seen.wait { $0.contains(.ended(connection, .closedByPeer(code: 1005))) })
        }
    }

    @Test(
        "a close that RFC 6455 does not allow is answered with 1002, and one whose reason is no text with 1007",
        arguments: [
            [0x03], [0x03, 0xF8], [0x04, 0x4C], [0x07, 0xD0], [0x03, 0xED], [0x03, 0xEC], [0x03, 0xEE], [0x03, 0xF7], [0xFF, 0xFF], [0, 0],
            [0x03, 0xE7], [0x0B, 0xB7],
            [0x13, 0x88], [0x03, 0xE8, 0xFF], [0x03, 0xE8, 0x61, 0xC3], [0x03, 0xE8, 0xED, 0xA0, 0x80],
        ] as [[UInt8]])
    func invalid(payload: [UInt8]) throws {
        try withServer { server in
            let peer = try server.client()
            try peer.sendFrame(8, payload)
            #expect(try peer.frame().closeCode == (payload.count > 2 ? 1007 : 1002))
            #expect(try peer.ends())
            let connection = try server.waitOpened(1)[0]
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
        }
    }

    @Test("a peer that goes without a word is noticed, and its id is not used again")
    func abrupt() throws {
        try withServer { server in
            let first = try server.client()
            let connection = try server.waitOpened(1)[0]
            first.stream.close()
            #expect(server.seen.wait { $0.contains(.closed(connection)) })
            #expect(server.seen.all.contains(.ended(connection, .lost)))
            let second = try server.client()
            let next = try server.waitOpened(2)[1]
            #expect(next.slot == connection.slot, "the slot is reused")
            #expect(next.generation != connection.generation)
            // Late messages for the one that is gone reach nobody.
            try server.on { loop in
                loop.send(Frame.text(Array("for the dead".utf8)), to: connection)
                loop.close(connection, code: 4000, reason: "for the dead")
                loop.watchSilence(connection, pingAfter: .milliseconds(1), pongWithin: .milliseconds(1))
                loop.send(Frame.text(Array("for the living".utf8)), to: next)
            }
            #expect(try second.frame().text == "for the living")
            #expect(try server.on { $0.table.base[next.slot].pingAfterTicks } == 0)
        }
    }
}
