import HubCore
import Testing

@testable import HubTransport

@Suite("Slow consumers", .blocking, .serialized)
struct SlowConsumerTests {
    @Test("who never reads is closed with 4100 past the bound; who reads gets everything meanwhile")
    func neverReads() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 256 << 10
        try withServer(options: options) { server in
            let stuck = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            _ = try server.waitOpened(1)
            let count = 400
            let payload = [UInt8](repeating: UInt8(ascii: "x"), count: 20_000)
            let port = server.port
            try concurrently(4) { index in
                if index < 3 {
                    let peer = try TestPeer.upgraded(RawSocket(port: port))
                    for number in 0..<count {
                        let frame = try peer.frame()
                        guard frame.payload.starts(with: Array("\(number) ".utf8)) else {
                            throw StreamError("frame \(number): \(frame.text.prefix(20))")
                        }
                    }
                    return
                }
                let opened = try server.waitOpened(4)
                for number in 0..<count {
                    let frame = Frame.text(Array("\(number) ".utf8) + payload)
                    let queued = try server.on { loop in
                        for connection in opened { loop.send(frame, to: connection) }
                        return loop.queues.values.reduce(0) { $0 + $1.queuedBytes }
                    }
                    // One queue per connection, and none beyond its bound: 8 MB were published.
                    guard queued <= 4 * (256 << 10) else { throw StreamError("\(queued) bytes queued") }
                    // The readers go on reading between publishes: only the stuck one may fall behind for long.
                    _ = try eventually { try server.on { loop in loop.queues.keys.allSatisfy { $0 == 0 } } }
                }
            }
            let opened = server.opened
            #expect(server.seen.wait { $0.contains(.slow(opened[0])) })
            #expect(server.seen.all.count { if case .slow = $0 { true } else { false } } == 1)
            #expect(try server.on { $0.counters.slowConsumers } == 1)
            // It gets what it was sent, whole, then the close frame, and nothing behind it.
            var last: ReceivedFrame?
            while let frame = try stuck.nextFrame() {
                if last?.opcode == 8 { Issue.record("a frame behind the close frame: \(frame)") }
                last = frame
                if frame.opcode == 8 { try stuck.sendClose(4100) }
            }
            #expect(last?.closeCode == 4100)
            #expect(server.seen.wait { $0.contains(.closed(opened[0])) })
        }
    }

    @Test("a slow consumer that does not read even the close frame is dropped")
    func neverReadsTheClose() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 64 << 10
        options.closeTicksMax = 8
        try withServer(options: options) { server in
            let stuck = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            let connection = try server.waitOpened(1)[0]
            let frame = Frame.text([UInt8](repeating: UInt8(ascii: "x"), count: 60_000))
            #expect(
                try eventually {
                    try server.on { $0.send(frame, to: connection) }
                    return server.seen.all.contains(.slow(connection))
                })
            #expect(server.seen.wait { $0.contains(.closed(connection)) }, "after LoopOptions.closeTicksMax")
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
            stuck.stream.close()
        }
    }

    /// Fills the sockets' buffers of these connections, so that whatever comes next waits; returns the frames each was sent.
    private static func stall(_ connections: [ConnectionID], on server: TestServer) throws -> Int {
        var count = 0
        let isStalled = try eventually {
            count += 1
            return try server.on { loop in
                for connection in connections { loop.send(filler, to: connection) }
                return connections.allSatisfy { (loop.queues[UInt32($0.slot)]?.queuedBytes ?? 0) > 0 }
            }
        }
        #expect(isStalled)
        return count
    }

    /// Has something wait again. The kernel may have taken a little since `stall`, and takes nothing more within a turn.
    private static func refill(_ connection: ConnectionID, on loop: Loop) {
        for _ in 0..<1000 where loop.queues[UInt32(connection.slot)]?.isEmpty != false { loop.send(filler, to: connection) }
    }

    private static let filler = Frame.text([UInt8](repeating: UInt8(ascii: "-"), count: 20_000))

    @Test("past the bound of all together those furthest behind are closed, and nobody else")
    func total() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 8 << 20
        options.sendQueueBytesTotalMax = 1 << 20
        try withServer(options: options) { server in
            let peers = try (0..<3).map { _ in
                try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            }
            let opened = try server.waitOpened(3)
            let reader = try server.client()
            let readers = [try server.waitOpened(4)[3]]
            _ = try Self.stall(opened, on: server)
            let seen = server.seen
            // All in one turn: between turns the kernel may take more after all.
            let steps = try server.on { loop in
                let frame = Frame.text([UInt8](repeating: UInt8(ascii: "x"), count: 10_000))
                func fill(_ connection: ConnectionID, _ count: Int) -> (memory: Int, slow: [Seen]) {
                    var most = 0
                    for _ in 0..<count {
                        loop.send(frame, to: connection)
                        most = max(most, loop.queuedMemory.bytes)
                    }
                    return (most, seen.all.filter { if case .slow = $0 { true } else { false } })
                }
                // The first is furthest behind: it goes, although the second asks. Then the second is, and asks: it goes itself, and what
                // little the third has stays.
                return [fill(opened[0], 60), fill(opened[1], 50), fill(opened[1], 70)]
            }
            #expect(steps.allSatisfy { $0.memory <= 1 << 20 }, "memory of all queues")
            #expect(steps.map(\.slow) == [[], [.slow(opened[0])], [.slow(opened[0]), .slow(opened[1])]])
            try server.on { loop in for connection in readers + [opened[2]] { loop.send(Frame.text(Array("last".utf8)), to: connection) } }
            #expect(try reader.frame().text == "last")
            var text = ""
            while text != "last" { text = try peers[2].frame().text }
            #expect(try server.on { $0.counters.slowConsumers } == 2)
            for peer in peers { peer.stream.close() }
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } == 0 })
        }
    }

    @Test("a list longer than the bound reaches who is behind; of many such those go that do not fit under the bound of all together")
    func lists() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 64 << 10
        options.sendQueueBytesTotalMax = 1 << 20
        try withServer(options: options) { server in
            let peers = try (0..<4).map { _ in
                try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            }
            let opened = try server.waitOpened(4)
            // One that is behind already, and one that is not.
            _ = try Self.stall([opened[0]], on: server)
            let list = Frame.text([UInt8](repeating: UInt8(ascii: "l"), count: 300_000))
            try server.on { loop in
                for connection in opened.prefix(2) {
                    loop.send(list, to: connection, isList: true)
                    loop.send(Frame.text(Array("last".utf8)), to: connection)
                }
            }
            for peer in peers.prefix(2) {
                var lengths: [Int] = []
                while true {
                    let frame = try peer.frame()
                    if frame.text == "last" { break }
                    lengths.append(frame.payload.count)
                }
                #expect(lengths.last == 300_000)
            }
            // Lists that wait count, too.
            for connection in opened { _ = try Self.stall([connection], on: server) }
            let huge = Frame.text([UInt8](repeating: UInt8(ascii: "h"), count: 700_000))
            let memory = try server.on { loop in
                for connection in opened {
                    // How much the kernel takes of one huge frame is not known.
                    Self.refill(connection, on: loop)
                    loop.send(huge, to: connection, isList: true)
                }
                return loop.queuedMemory.bytes
            }
            #expect(memory <= 1 << 20)
            #expect(try server.on { $0.counters.slowConsumers } >= 2)
            for peer in peers { peer.stream.close() }
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } == 0 })
        }
    }

    @Test("rests of frames that were cut count too: who keeps one and was told to go is cut off when others need the room")
    func cutFrames() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 64 << 10
        options.sendQueueBytesTotalMax = 1 << 20
        try withServer(options: options) { server in
            let sockets = try (0..<5).map { _ in try RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024) }
            let peers = try sockets.map { try TestPeer.upgraded($0) }
            let opened = try server.waitOpened(5)
            _ = try Self.stall([opened[4]], on: server)
            let huge = Frame.text([UInt8](repeating: UInt8(ascii: "h"), count: 900_000))
            let most = try server.on { loop in
                opened.prefix(4).map { connection in
                    loop.send(huge, to: connection, isList: true)
                    loop.send(Frame.text(Array("small".utf8)), to: opened[4])
                    return loop.queuedMemory.bytes
                }
            }
            #expect(most.allSatisfy { $0 <= 1 << 20 }, "\(most)")
            #expect(try server.on { $0.counters.slowConsumers } >= 3)
            for peer in peers { peer.stream.close() }
            #expect(try eventually { try server.on { $0.queuedMemory.bytes } == 0 })
        }
    }

    @Test("who is behind gets the newest event of a cache channel, and everything of the others")
    func latestOnly() throws {
        try withServer { server in
            let peer = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            let reader = try server.client()
            let opened = try server.waitOpened(2)
            let fillers = try Self.stall([opened[0]], on: server)
            let slots = opened.map { UInt32($0.slot) }
            let ping: [UInt8] = [0x89, 2, UInt8(ascii: "r"), UInt8(ascii: "1")]
            // All in one turn: between turns the kernel may take more after all, and then nobody is behind.
            try server.on { loop in
                Self.refill(opened[0], on: loop)
                for number in 0..<500 {
                    // An event of the cache channel, one of another, and in the middle a PING behind both.
                    let event = Frame.text(Array("cache \(number)".utf8))
                    let frames = event + (number == 250 ? ping : []) + Frame.text(Array("plain \(number)".utf8))
                    let marks = [LatestOnlyFrame(start: 0, end: event.count, line: 7)]
                    frames.withUnsafeBytes { bytes in
                        slots.withUnsafeBufferPointer { slots in
                            marks.withUnsafeBufferPointer { loop.deliver(bytes, to: slots, latestOnly: $0) }
                        }
                    }
                }
            }
            for name in (0..<500).flatMap({ ["cache \($0)", "plain \($0)"] }) {
                var frame = try reader.frame()
                if frame.opcode == 9 { frame = try reader.frame() }
                #expect(frame.text == name, "who keeps up gets all")
            }
            var texts: [String] = []
            while texts.last != "plain 499" {
                let frame = try peer.frame()
                if frame.opcode == 9 { texts.append("PING") } else if frame.payload.first != UInt8(ascii: "-") { texts.append(frame.text) }
            }
            #expect(texts.filter { $0.hasPrefix("cache") } == ["cache 499"])
            #expect(texts.filter { $0.hasPrefix("plain") } == (0..<500).map { "plain \($0)" })
            #expect(texts.firstIndex(of: "PING") == 250, "the PING stays where it was")
            #expect(texts.suffix(2) == ["cache 499", "plain 499"] && fillers > 0)
        }
    }

    @Test("one that does not read among many: memory grows by no more than its bound, and the others get everything")
    func oneAmongMany() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 128 << 10
        try withServer(options: options) { server in
            let stuck = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            _ = try server.waitOpened(1)
            let others = try (0..<100).map { _ in try server.client() }
            let slots = try server.waitOpened(101).map { UInt32($0.slot) }
            let stuckSlot = slots[0]
            var wasBehind = false
            // All of it fits into the others' sockets, so that none of them can fall behind before it reads.
            for number in 0..<2000 where !server.seen.all.contains(.slow(server.opened[0])) {
                let frame = Frame.text(Array("\(number) ".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: 10_000))
                let (memory, behind) = try server.on { loop in
                    frame.withUnsafeBytes { bytes in slots.withUnsafeBufferPointer { loop.deliver(bytes, to: $0) } }
                    return (loop.queuedMemory.bytes, loop.queues.keys.filter { $0 != stuckSlot }.count)
                }
                #expect(memory <= (128 << 10) + 64 * SendQueue.pieceBytes + frame.count && behind == 0)
                wasBehind = wasBehind || memory > 100 << 10
                for other in others { #expect(try other.frame().payload.starts(with: Array("\(number) ".utf8))) }
            }
            let connection = server.opened[0]
            #expect(wasBehind && server.seen.all.contains(.slow(connection)))
            #expect(try server.on { $0.queuedMemory.bytes } < 11_000, "what waited for it is gone, but for the rest of one frame")
            stuck.stream.close()
        }
    }

    @Test("one connection that is behind does not change what the others of the same write get")
    func sharesOneBatch() throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 8 << 20
        try withServer(options: options) { server in
            let stuck = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            _ = try server.waitOpened(1)
            let quick = try server.client()
            let slots = try server.waitOpened(2).map { UInt32($0.slot) }
            let big = Frame.text([UInt8](repeating: UInt8(ascii: "b"), count: 60_000))
            #expect(
                try eventually {
                    try server.on { loop in
                        loop.send(big, to: loop.id(slots[0]))
                        return loop.queues.count == 1
                    }
                })
            for number in 0..<20 {
                let frame = Frame.text(Array("small \(number)".utf8))
                try server.on { loop in
                    frame.withUnsafeBytes { bytes in slots.withUnsafeBufferPointer { loop.deliver(bytes, to: $0) } }
                }
                #expect(try quick.frame().text == "small \(number)")
            }
            var smalls = 0
            while smalls < 20 {
                let frame = try stuck.frame()
                if frame.payload.count == 60_000 {
                    #expect(smalls == 0, "a large frame behind a later small one")
                } else {
                    #expect(frame.text == "small \(smalls)")
                    smalls += 1
                }
            }
            #expect(try eventually { try server.on { $0.queues.isEmpty && $0.table.base[Int(slots[0])].condition == .open } })
            try server.on { $0.send(Frame.text(Array("open again".utf8)), to: $0.id(slots[0])) }
            #expect(try stuck.frame().text == "open again")
        }
    }
}
