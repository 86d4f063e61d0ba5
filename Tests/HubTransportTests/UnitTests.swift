import HubCore
import Testing

@testable import HubTransport

@Suite("IdleWheel and ConnectionTable")
struct TableTests {
    /// Never dereferenced: the table only keeps it.
    private static var wsi: OpaquePointer { OpaquePointer(bitPattern: 0x1000)! }

    @Test("slots are handed out once, reused after removal under a new generation, and refused when all are taken")
    func table() {
        var table = ConnectionTable(capacity: 3)
        var slots: [UInt32?] = []
        for _ in 0..<4 { slots.append(table.insert(Self.wsi, tick: 7)) }
        #expect(slots == [0, 1, 2, nil])
        let full = table.count
        #expect(full == 3)
        let generation = table.base[1].generation
        #expect(Self.has(&table, 1, generation))
        let tick = table.base[1].lastInboundTick
        #expect(tick == 7)
        table.remove(1)
        #expect(!Self.has(&table, 1, generation))
        let count = table.count
        #expect(count == 2)
        let reused = table.insert(Self.wsi, tick: 9)
        #expect(reused == 1)
        #expect(!Self.has(&table, 1, generation))
        #expect(Self.has(&table, 1, generation + 1))
        #expect(!Self.has(&table, 3, 1))
        #expect(!Self.has(&table, ConnectionID.slotsMax - 1, 1))
    }

    /// The testing macros take no move-only values.
    private static func has(_ table: inout ConnectionTable, _ slot: Int, _ generation: UInt32) -> Bool {
        table.lookup(slot: slot, generation: generation) != nil
    }

    @Test("a slot is due in its tick, once, wherever the wheel stands; re-arming moves it and disarming takes it out")
    func wheel() {
        var table = ConnectionTable(capacity: 8)
        for _ in 0..<8 { _ = table.insert(Self.wsi, tick: 0) }
        for start: UInt32 in [0, 511, 512, 1_000_000, .max - 3] {
            var wheel = IdleWheel()
            var due: [UInt32] = []
            wheel.arm(0, in: 1, now: start, table: table.base)
            wheel.arm(1, in: 5, now: start, table: table.base)
            wheel.arm(2, in: 5, now: start, table: table.base)
            wheel.arm(3, in: 5, now: start, table: table.base)
            wheel.arm(4, in: 5, now: start, table: table.base)
            wheel.arm(5, in: 0, now: start, table: table.base)
            wheel.arm(6, in: 100_000, now: start, table: table.base)
            wheel.arm(1, in: 2, now: start, table: table.base)
            wheel.disarm(3, table: table.base)
            wheel.disarm(3, table: table.base)
            wheel.disarm(7, table: table.base)
            var seen: [UInt32: [UInt32]] = [:]
            for ahead in 1...UInt32(IdleWheel.bucketCount - 1) {
                wheel.takeDue(at: start &+ ahead, into: &due, table: table.base)
                if !due.isEmpty { seen[ahead] = due.sorted() }
            }
            #expect(seen == [1: [0, 5], 2: [1], 5: [2, 4], UInt32(IdleWheel.bucketCount - 1): [6]], "from tick \(start)")
        }
    }

    @Test("armed and disarmed at random, from a printed seed, everything is due exactly when it should be")
    func randomWheel() {
        let seed = UInt64.random(in: 1...UInt64.max)
        var state = seed
        func next(_ end: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % end
        }
        var table = ConnectionTable(capacity: 50)
        for _ in 0..<50 { _ = table.insert(Self.wsi, tick: 0) }
        var wheel = IdleWheel()
        var dueAt = [UInt32?](repeating: nil, count: 50)
        var due: [UInt32] = []
        for tick in UInt32(1)...3000 {
            wheel.takeDue(at: tick, into: &due, table: table.base)
            #expect(Set(due) == Set((0..<50).filter { dueAt[Int($0)] == tick }.map(UInt32.init)), "seed \(seed), tick \(tick)")
            for slot in due { dueAt[Int(slot)] = nil }
            for _ in 0..<next(4) {
                let slot = UInt32(next(50))
                if next(4) == 0 {
                    wheel.disarm(slot, table: table.base)
                    dueAt[Int(slot)] = nil
                } else {
                    let ticks = UInt32(next(511)) + 1
                    wheel.arm(slot, in: ticks, now: tick, table: table.base)
                    dueAt[Int(slot)] = tick + ticks
                }
            }
        }
    }
}

@Suite("SendQueue, ReceiveBuffer and Mailbox")
struct QueueTests {
    /// The testing macros call nothing that mutates.
    private static func append(_ bytes: [UInt8], _ queue: inout SendQueue, bytesMax: Int = 1 << 20) -> Bool {
        queue.append(bytes.withUnsafeBytes { Batch(copying: $0) }, queuedBytesMax: bytesMax)
    }

    @Test("batches come out in order, and bytes are counted both ways")
    func order() {
        var queue = SendQueue()
        for number in 0..<100 { #expect(Self.append([UInt8](repeating: UInt8(number), count: number + 1), &queue)) }
        #expect(queue.queuedBytes == 5050)
        var expected: UInt8 = 0
        while let batch = queue.popFirst() {
            #expect(batch.bytes.count == Int(expected) + 1 && batch.bytes.first == expected)
            expected += 1
            if expected == 50 { #expect(Self.append([100] + [UInt8](repeating: 0, count: 100), &queue)) }
        }
        #expect(expected == 101 && queue.isEmpty && queue.queuedBytes == 0)
        let isOver = queue.popFirst() == nil
        #expect(isOver)
    }

    @Test("the bounds in bytes and in batches are kept, and what is refused is not taken")
    func bounds() {
        var queue = SendQueue()
        #expect(Self.append([1, 2, 3], &queue, bytesMax: 5))
        #expect(!Self.append([4, 5, 6], &queue, bytesMax: 5))
        #expect(Self.append([4, 5], &queue, bytesMax: 5))
        #expect(queue.queuedBytes == 5)
        _ = queue.popFirst()
        #expect(Self.append([7, 8, 9], &queue, bytesMax: 5))
        var many = SendQueue()
        for _ in 0..<SendQueue.batchesMax { #expect(Self.append([1], &many)) }
        #expect(!Self.append([1], &many))
        _ = many.popFirst()
        #expect(Self.append([1], &many))
    }

    @Test("a message grows to its bound and not beyond; the rest of a long one is skipped and reported once")
    func receiveBuffer() {
        var buffer = ReceiveBuffer()
        for (piece, count, overflowed) in [([UInt8]("abc".utf8), 3, false), ([], 3, false), ([UInt8]("de".utf8), 5, false), ([UInt8]("f".utf8), 0, true), ([UInt8]("g".utf8), 0, false)] {
            piece.withUnsafeBytes { buffer.append($0, bytesMax: 5) }
            #expect(buffer.bytes.count == count && buffer.justOverflowed == overflowed)
        }
        #expect(buffer.isTooLarge)
    }

    @Test("a mailbox keeps the order of each sender and loses nothing; offers are bounded")
    func mailbox() throws {
        try withServer { server in
            let mailbox = Mailbox<Int>(waker: server.group.handles[0].waker)
            try concurrently(4) { sender in for number in 0..<5000 { mailbox.post(sender * 10_000 + number) } }
            var messages: [Int] = [-1]
            mailbox.drain(into: &messages)
            #expect(messages.count == 20_000)
            for sender in 0..<4 { #expect(messages.filter { $0 / 10_000 == sender } == (0..<5000).map { sender * 10_000 + $0 }) }
            mailbox.drain(into: &messages)
            #expect(messages.isEmpty)
            #expect((0..<5).map { mailbox.offer($0, limit: 3) } == [true, true, true, false, false])
            mailbox.post(9)
            #expect(!mailbox.offer(10, limit: 3))
            mailbox.drain(into: &messages)
            #expect(messages == [0, 1, 2, 9])
            #expect(mailbox.offer(11, limit: 3))
        }
    }
}

@Suite("HTTPExchange and ChunkedBody")
struct ExchangeTests {
    @Test(
        "how a body is delimited",
        arguments: [
            (nil, nil, .success(.none)), ("0", nil, .success(.none)), ("5", nil, .success(.length(5))), ("100", nil, .success(.length(100))),
            ("101", nil, .failure(413)), ("-1", nil, .failure(400)), ("", nil, .failure(400)), ("1 ", nil, .failure(400)), ("٣", nil, .failure(400)),
            ("5,5", nil, .failure(400)), ("9223372036854775808", nil, .failure(400)), (nil, "chunked", .success(.chunked)), (nil, "Chunked", .success(.chunked)),
            ("5", "chunked", .failure(400)), (nil, "gzip", .failure(400)), (nil, "gzip, chunked", .failure(400)), (nil, "", .failure(400)),
        ] as [(String?, String?, Framing)])
    func framing(length: String?, encoding: String?, expected: Framing) {
        switch HTTPExchange.framing(contentLength: length, transferEncoding: encoding, bodyBytesMax: 100) {
        case .success(let framing): #expect(expected == .success(framing))
        case .failure(let refusal): #expect(expected == .failure(refusal.status))
        }
    }

    enum Framing: Equatable, Sendable {
        case success(HTTPExchange.Framing)
        case failure(Int)
    }

    /// Feeds a body in pieces of that size until it ends or fails.
    private static func decode(_ text: String, pieces: Int = 1, bodyBytesMax: Int = 1000) -> (progress: ChunkedBody.Progress, body: String) {
        var chunks = ChunkedBody()
        var body: [UInt8] = []
        let bytes = Array(text.utf8)
        var progress = ChunkedBody.Progress.incomplete
        for start in stride(from: 0, to: bytes.count, by: pieces) where progress == .incomplete {
            progress = bytes[start..<min(start + pieces, bytes.count)].withUnsafeBytes { chunks.receive($0, into: &body, bodyBytesMax: bodyBytesMax) }
        }
        return (progress, String(decoding: body, as: UTF8.self))
    }

    @Test(
        "chunks become a body, in pieces of every size",
        arguments: [
            ("0\r\n\r\n", ""), ("3\r\nabc\r\n0\r\n\r\n", "abc"), ("003\r\nabc\r\n0\r\n\r\n", "abc"), ("a\r\n0123456789\r\n1\r\n\n\r\n0\r\n\r\n", "0123456789\n"),
            ("3;x=y;z\r\nabc\r\n0;last\r\nA: b\r\nC: d\r\n\r\n", "abc"), ("3 \r\n\r\n\r\r\n000\r\n\r\nignored", "\r\n\r"),
        ])
    func chunks(text: String, body: String) {
        for pieces in 1...text.utf8.count {
            let (progress, decoded) = Self.decode(text, pieces: pieces)
            #expect(progress == .complete && decoded == body, "pieces of \(pieces)")
        }
    }

    @Test("malformed chunks", arguments: ["g\r\n", "\r\n", ";\r\n", "3\r\nabcd", "3\nabc", "3\r\rabc", "000000001\r\n", "3\r\nabc\r\n\r\n", "0\r\nA: b\r\r", "-3\r\n"])
    func malformed(text: String) {
        for pieces in 1...text.utf8.count { #expect(Self.decode(text, pieces: pieces).progress == .malformed) }
    }

    @Test("bounds: the body's, and that of extensions and trailers over all chunks")
    func bounds() {
        #expect(Self.decode("3e8\r\n" + String(repeating: "x", count: 1000) + "\r\n0\r\n\r\n").progress == .complete)
        #expect(Self.decode("3e9\r\n").progress == .tooLarge)
        #expect(Self.decode("ffffffff\r\n").progress == .tooLarge)
        #expect(Self.decode("3e8\r\n" + String(repeating: "x", count: 1000) + "\r\n1\r\n").progress == .tooLarge)
        #expect(Self.decode("1;" + String(repeating: "x", count: 5000)).progress == .malformed)
        #expect(Self.decode("0\r\nA: " + String(repeating: "x", count: 5000)).progress == .malformed)
        #expect(Self.decode(String(repeating: "1;" + String(repeating: "e", count: 400) + "\r\nx\r\n", count: 11)).progress == .malformed)
    }
}
