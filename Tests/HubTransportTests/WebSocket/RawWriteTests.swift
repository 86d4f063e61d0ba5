import HubCore
import HubTesting
import Synchronization
import Testing

@testable import HubTransport

/// The write path of all deliveries: whole joined frames, written past the library if it has nothing waiting, and through its buffer
/// otherwise.
///
/// A short write leaves the rest of a frame in the library. Anything else in front of it (a PONG, a later batch) would break the stream for
/// good. So these tests use small windows, far larger writes, and PINGs throughout.
@Suite("Raw writes", .blocking, .serialized)
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

    @Test(
        "small writes straight to the socket, cut ones, PONGs of every size and close frames in the middle make one stream",
        arguments: 1...4)
    func mixed(seed: UInt64) throws {
        var options = LoopOptions()
        options.sendQueueBytesMax = 64 << 20
        // Clients read all that the kernel holds, however long it takes them, before they answer a close frame.
        options.closeAnswerTicks = 500
        try withServer(options: options) { server in
            let port = server.port
            let written = Recorder<[Int]>()
            try concurrently(Self.readers + 1) { index in
                if index < Self.readers {
                    let peer = try TestPeer.upgraded(RawSocket(port: port, receiveBufferBytes: 16_384, segmentBytes: 2_048))
                    // A client that reads from the beginning may keep up with a slow publisher to the end.
                    #expect(try eventually { try server.on { $0.counters.cutWrites > 0 } })
                    try Self.readToClose(peer, seed: seed &* 100 &+ UInt64(index))
                    return
                }
                written.append(try Self.publishAndClose(on: server, seed: seed))
            }
            #expect(written.all.first?.count == Self.readers, "each was closed in the middle of what the others went on getting")
            let counters = try server.on { $0.counters }
            #expect(counters.cutWrites > 0 && counters.writes > 10 * counters.cutWrites, "both ways were taken: \(counters)")
            #expect(server.seen.wait { $0.count { if case .closed = $0 { true } else { false } } == Self.readers })
            #expect(try server.on { $0.queues.isEmpty && $0.queuedMemory.bytes == 0 })
        }
    }

    /// Writes of every size to all who are left, one of whom is closed now and then. Returns after how many frames each was.
    private static func publishAndClose(on server: TestServer, seed: UInt64) throws -> [Int] {
        var random = SeededRandom(state: seed)
        var left = try server.waitOpened(readers)
        var number = 0
        var ends: [Int] = []
        while !left.isEmpty {
            var frames: [UInt8] = []
            // Mostly what fits anywhere; sometimes what fits nowhere.
            let count =
                Int.random(in: 0..<12, using: &random) == 0
                ? Int.random(in: 100...1200, using: &random) : Int.random(in: 1...3, using: &random)
            for _ in 0..<count {
                frames += Frame.text(payload(number))
                number += 1
            }
            let (batch, slots) = (frames, left.map { UInt32($0.slot) })
            try server.on { loop in batch.withUnsafeBytes { bytes in slots.withUnsafeBufferPointer { loop.deliver(bytes, to: $0) } } }
            let isCut = try server.on { $0.counters.cutWrites > 0 }
            guard isCut, number > 4000, Int.random(in: 0..<20, using: &random) == 0 else { continue }
            let connection = left.remove(at: Int.random(in: left.indices, using: &random))
            let farewell = Frame.text(Array("last".utf8))
            try server.on { $0.close(connection, code: 4200, reason: "enough", farewell: farewell) }
            ends.append(number)
        }
        return ends
    }

    /// Reads until the close frame: every frame and every PONG is whole and in order. Only frames that waited when the close frame was
    /// written are left out.
    private static func readToClose(_ peer: TestPeer, seed: UInt64) throws {
        var random = SeededRandom(state: seed)
        var expected = 0
        var sent: [[UInt8]] = []
        var answered = 0
        var isLast = false
        while true {
            if sent.count - answered < 2 {
                sent.append((0..<Int.random(in: 0...125, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
                try peer.sendFrame(9, sent[sent.count - 1])
            }
            guard let frame = try peer.nextFrame(upTo: Int.random(in: 1...4000, using: &random)) else {
                throw StreamError("ended after frame \(expected)")
            }
            switch frame.opcode {
            case 8:
                guard isLast, frame.closeCode == 4200, frame.closeReason == "enough" else { throw StreamError("closed with \(frame)") }
                try? peer.sendClose(4200)
                // After the close frame only data is forbidden (RFC 6455, 5.5.1); the library answers PINGs that it read before.
                while let late = try peer.nextFrame() {
                    guard late.opcode == 10, sent[answered...].contains(late.payload) else {
                        throw StreamError("behind the close frame: \(late)")
                    }
                }
                return
            case 10:
                // A PONG may answer the newest PING only (RFC 6455, 5.5.3).
                guard let index = sent[answered...].firstIndex(of: frame.payload) else { throw StreamError("a PONG of \(frame.payload)") }
                answered = index + 1
            case 1 where frame.text == "last": isLast = true
            case 1:
                guard !isLast, frame.payload == payload(expected) else {
                    throw StreamError("frame \(expected) is '\(frame.text.prefix(80))'")
                }
                expected += 1
            default: throw StreamError("opcode \(frame.opcode) after frame \(expected)")
            }
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
                guard behind.wait({ $0.contains(Self.readers) }) else {
                    throw StreamError("not every connection fell behind: \(behind.all)")
                }
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
