import HubCore
import Testing

@testable import HubTransport

@Suite("Inbound messages", .blocking)
struct MessageTests {
    private static func options(messageBytesMax: Int = 4096) -> LoopOptions {
        var options = LoopOptions()
        options.messageBytesMax = messageBytesMax
        return options
    }

    @Test("messages of every size arrive whole and once")
    func sizes() throws {
        try withServer(options: Self.options()) { server in
            let peer = try server.client()
            let buffer = 256
            let full: [Int] = [buffer, 2 * buffer, 4 * buffer]
            let counts: [Int] = [0, 1, 2, 125, 126, 127, 4095, 4096] + full.map { $0 - 1 } + full + full.map { $0 + 1 }
            for count in counts {
                let text = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
                try peer.sendFrame(1, text)
                #expect(try peer.frame().payload == text, "\(count) bytes")
            }
            #expect(server.seen.all.count { if case .text = $0 { true } else { false } } == counts.count)
        }
    }

    @Test("fragments with control frames in between make one message, whatever is empty")
    func fragments() throws {
        try withServer { server in
            let peer = try server.client()
            let long = String(repeating: "0123456789", count: 120)
            for pieces in [
                ["Hel", "lo"], ["", "Hello"], ["Hello", ""], ["", "", ""], ["a", "", "b"], [long, long, "."], [long, ""], ["", long],
            ] {
                for (index, piece) in pieces.enumerated() {
                    try peer.sendFrame(index == 0 ? 1 : 0, Array(piece.utf8), isFinal: index == pieces.count - 1)
                    if index < pieces.count - 1 {
                        try peer.sendFrame(9, Array("ping \(index)".utf8))
                        #expect(try peer.frame() == ReceivedFrame(opcode: 10, payload: Array("ping \(index)".utf8)))
                        try peer.sendFrame(10, Array("unasked".utf8))
                    }
                }
                #expect(try peer.frame().text == pieces.joined(), "\(pieces.map(\.count))")
            }
        }
    }

    @Test("every fragment of a message that goes on is told, also an empty one, and so is a PONG nobody asked for")
    func countedFrames() throws {
        var behaviour = Behaviour()
        behaviour.opened = { loop, connection, _ in loop.watchSilence(connection, pingAfter: .milliseconds(250), pongWithin: .seconds(20)) }
        try withServer(behaviour) { server in
            let peer = try server.client()
            let long = [UInt8](repeating: UInt8(ascii: "x"), count: 800)
            try peer.sendFrame(1, long, isFinal: false)
            for _ in 0..<99 { try peer.sendFrame(0, [], isFinal: false) }
            try peer.sendFrame(0, [])
            var frame = try peer.frame()
            while frame.opcode == 9 { frame = try peer.frame() }
            #expect(frame.payload == long)
            func count() -> Int { server.seen.all.count { if case .frame = $0 { true } else { false } } }
            #expect(count() == 100)
            // The first answers the loop's PING, the others nothing.
            while frame.opcode != 9 { frame = try peer.frame() }
            let known = try server.on { $0.counters.pings }
            for _ in 0..<50 { try peer.sendFrame(10, frame.payload) }
            try peer.sendText("done")
            while frame.text != "done" { frame = try peer.frame() }
            let further = try server.on { $0.counters.pings } - known
            #expect(count() <= 149 && count() >= 149 - Int(further))
        }
    }

    @Test("a message whose bytes arrive one at a time is the same message")
    func byteByByte() throws {
        try withServer { server in
            let peer = try server.client()
            let text = String(repeating: "ü", count: 70)
            for byte in TestPeer.frame(1, Array(text.utf8)) + TestPeer.frame(9, [1, 2, 3]) { try peer.stream.send([byte]) }
            #expect(try peer.frame().text == text)
            #expect(try peer.frame() == ReceivedFrame(opcode: 10, payload: [1, 2, 3]))
        }
    }

    @Test("frames cut at any byte by the network are the same frames")
    func everySplit() throws {
        try withServer { server in
            let peer = try server.client()
            let bytes =
                TestPeer.frame(1, Array("first".utf8)) + TestPeer.frame(1, Array("se".utf8), isFinal: false)
                + TestPeer.frame(9, Array("p".utf8)) + TestPeer.frame(0, Array("cond".utf8))
            for split in 1..<bytes.count {
                try peer.stream.send(Array(bytes[..<split]))
                try peer.stream.send(Array(bytes[split...]))
                var texts: [String] = []
                var pongs = 0
                while texts.count < 2 || pongs < 1 {
                    let frame = try peer.frame()
                    if frame.opcode == 10 { pongs += 1 } else { texts.append(frame.text) }
                }
                #expect(texts == ["first", "second"] && pongs == 1, "split at \(split)")
            }
        }
    }

    @Test("many messages in one segment are taken in order")
    func burst() throws {
        try withServer { server in
            let peer = try server.client()
            try peer.stream.send((0..<500).flatMap { TestPeer.frame(1, Array("message \($0)".utf8)) })
            for number in 0..<500 { #expect(try peer.frame().text == "message \(number)") }
        }
    }

    @Test("a message over the limit is reported once and dropped, in one frame or in many")
    func tooLong() throws {
        try withServer(options: Self.options()) { server in
            let inOne = try server.client()
            try inOne.sendFrame(1, [UInt8](repeating: 120, count: 4097))
            #expect(try inOne.frame().closeCode == 1009)
            let inMany = try server.client()
            // In one write: the server ends the connection soon after the fifth.
            try inMany.stream.send(
                (0..<50).flatMap { TestPeer.frame($0 == 0 ? 1 : 0, [UInt8](repeating: 120, count: 1000), isFinal: $0 == 49) })
            #expect(try inMany.frame().closeCode == 1009)
            #expect(server.seen.all.count { if case .tooMuch = $0 { true } else { false } } == 2)
            #expect(!server.seen.all.contains { if case .text = $0 { true } else { false } })
        }
    }

    @Test("unfinished messages of many connections have a bound together: who passes it is told to come back, the others go on")
    func unfinished() throws {
        var options = Self.options()
        options.assembledBytesMax = 10_000
        try withServer(options: options) { server in
            let patient = try (0..<3).map { _ in try server.client() }
            for (index, peer) in patient.enumerated() {
                try peer.sendFrame(1, [UInt8](repeating: 97, count: 3000), isFinal: false)
                #expect(try eventually { try server.on { $0.assemblies.bytes } == 3000 * (index + 1) })
            }
            let last = try server.client()
            try last.sendFrame(1, [UInt8](repeating: 98, count: 3000), isFinal: false)
            #expect(try last.frame().closeCode == 4100)
            for peer in patient {
                try peer.sendFrame(0, [99])
                #expect(try peer.frame().payload.count == 3001)
            }
            #expect(try server.on { $0.assemblies.isEmpty && $0.assemblies.bytes == 0 })
        }
    }

    @Test("a delegate that does not close gets the next message; the long one is gone")
    func tooLongAndOn() throws {
        var behaviour = Behaviour()
        behaviour.tooMuch = { _, _ in }
        try withServer(options: Self.options(), behaviour) { server in
            let peer = try server.client()
            for length in [4097, 10_000, 70_000] { try peer.sendFrame(1, [UInt8](repeating: 120, count: length)) }
            try peer.sendText("next")
            #expect(try peer.frame().text == "next")
            let connection = try server.waitOpened(1)[0]
            #expect(server.seen.all.count { $0 == .tooMuch(connection) } == 3)
            #expect(try server.on { $0.assemblies.isEmpty })
        }
    }

    @Test("binary messages are reported as such, short, long and in fragments")
    func binary() throws {
        try withServer { server in
            let peer = try server.client()
            try peer.sendFrame(2, [0, 255])
            try peer.sendFrame(2, [UInt8](repeating: 7, count: 2000))
            try peer.sendFrame(2, [1], isFinal: false)
            try peer.sendFrame(0, [2])
            try peer.sendText("text")
            #expect(try peer.frame().text == "text")
            let connection = try server.waitOpened(1)[0]
            let binary = server.seen.all.filter { if case .binary = $0 { true } else { false } }
            #expect(binary == [[0, 255], [UInt8](repeating: 7, count: 2000), [1, 2]].map { .binary(connection, $0) })
        }
    }
}
