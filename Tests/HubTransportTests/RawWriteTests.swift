import HubCore
import HubTesting
import Synchronization
import Testing

@testable import HubTransport

/// The write path that everything rests on: whole joined frames written raw, over the library's own buffering. A short write
/// leaves a remainder in the library; if anything else got in front of it (a PONG, a later batch), the stream would be broken
/// for good. So: small windows, writes far larger than they are, and PINGs all along.
@Suite("Raw writes", .serialized)
struct RawWriteTests {
    static let readers = 8
    static let batches = 60
    static let batchBytes = 60_000

    @Test("every byte arrives in order and every PONG whole, though the kernel takes most writes in part")
    func plain() throws {
        try prove(options: LoopOptions()) { port in try RawSocket(port: port, receiveBufferBytes: 16_384, segmentBytes: 2_048) }
    }

    @Test("the same through TLS")
    func tls() throws {
        try prove(options: TestCertificate().options()) { port in
            try TLSSocket(RawSocket(port: port, receiveBufferBytes: 16_384, segmentBytes: 2_048))
        }
    }

    private func prove(options: LoopOptions, connect: @escaping @Sendable (_ port: Int) throws -> any ByteStream) throws {
        var options = options
        options.sendQueueBytesMax = 64 << 20
        try withServer(options: options) { server in
            let behind = Recorder<Int>()
            let pongs = Atomic<Int>(0)
            let port = server.port
            let publisher = Recorder<Bool>()
            try concurrently(Self.readers + 1) { index in
                if index == Self.readers {
                    try Self.publish(on: server, behind: behind)
                    publisher.append(true)
                    return
                }
                let peer = try TestPeer.upgraded(connect(port))
                // Nobody reads before all connections are behind, so that partial writes are certain and not a matter of luck.
                guard behind.wait({ $0.contains(Self.readers) }) else { throw StreamError("not every connection fell behind: \(behind.all)") }
                pongs.add(try Self.read(peer, as: index), ordering: .relaxed)
                peer.stream.close()
            }
            #expect(pongs.load(ordering: .relaxed) >= Self.readers, "PINGs were answered in the middle of the stream")
            #expect(try server.on { $0.counters.slowConsumers } == 0)
            #expect(server.seen.wait { $0.count { if case .closed = $0 { true } else { false } } == Self.readers })
            #expect(try server.on { $0.queues.isEmpty && $0.connectionCount == 0 })
        }
    }

    /// Frames that say their number, joined to batches; each batch in a turn of its own.
    private static func publish(on server: TestServer, behind: Recorder<Int>) throws {
        let slots = try server.waitOpened(readers).map { UInt32($0.slot) }
        var number = 0
        for _ in 0..<batches {
            var batch: [UInt8] = []
            while batch.count < batchBytes {
                batch += Frame.text(payload(number))
                number += 1
            }
            let frames = batch
            behind.append(
                try server.on { loop in
                    frames.withUnsafeBytes { bytes in slots.withUnsafeBufferPointer { loop.deliver(bytes, to: $0) } }
                    return loop.queues.count
                })
        }
        let last = number
        try server.on { loop in
            for connection in server.opened { loop.send(Frame.text(Array("last \(last)".utf8)), to: connection) }
        }
    }

    private static func payload(_ number: Int) -> [UInt8] {
        // Lengths on both sides of the header's switch to two bytes.
        Array("\(number) ".utf8) + [UInt8](repeating: UInt8(ascii: "a") + UInt8(number % 26), count: number * 37 % 300)
    }

    /// Reads everything, with a PING in flight nearly all the time. Returns how many PONGs came before the last frame.
    private static func read(_ peer: TestPeer, as reader: Int) throws -> Int {
        var expected = 0
        var pings = 0
        var pongs = 0
        while true {
            if pings == pongs {
                pings += 1
                try peer.sendFrame(9, Array("reader \(reader) ping \(pings)".utf8))
            }
            guard let frame = try peer.nextFrame(upTo: 3000) else { throw StreamError("ended before frame \(expected)") }
            switch frame.opcode {
            case 10:
                pongs += 1
                guard frame.text == "reader \(reader) ping \(pongs)" else { throw StreamError("PONG \(pongs) says '\(frame.text)'") }
            case 1 where frame.text == "last \(expected)":
                guard pongs > 0 else { throw StreamError("no PONG in the middle of the stream") }
                return pongs
            case 1:
                guard frame.payload == payload(expected) else { throw StreamError("frame \(expected) is '\(frame.text.prefix(80))'") }
                expected += 1
            default: throw StreamError("opcode \(frame.opcode) after frame \(expected)")
            }
        }
    }
}
