import HubCore
import Testing

@testable import HubTransport

@Suite("Slow consumers", .serialized)
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
                        guard frame.payload.starts(with: Array("\(number) ".utf8)) else { throw StreamError("frame \(number): \(frame.text.prefix(20))") }
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
        try withServer(options: options) { server in
            let stuck = try TestPeer.upgraded(RawSocket(port: server.port, receiveBufferBytes: 4_096, segmentBytes: 1_024))
            let connection = try server.waitOpened(1)[0]
            let frame = Frame.text([UInt8](repeating: UInt8(ascii: "x"), count: 60_000))
            #expect(
                try eventually {
                    try server.on { $0.send(frame, to: connection) }
                    return server.seen.all.contains(.slow(connection))
                })
            #expect(server.seen.wait { $0.contains(.closed(connection)) }, "after LoopOptions.closeSeconds")
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
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
