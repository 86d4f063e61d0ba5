import HubCore
import Testing

@testable import HubTransport

@Suite("IdleWheel and ConnectionTable")
struct TableTests {
    /// Never dereferenced: the table only keeps it.
    private static var socket: SocketPointer { SocketPointer(bitPattern: 0x1000)! }

    @Test("slots are handed out once, reused after removal under a new generation, and refused when all are taken")
    func table() {
        var table = ConnectionTable(capacity: 3)
        var slots: [UInt32?] = []
        for _ in 0..<4 { slots.append(table.insert(Self.socket, descriptor: -1, tick: 7)) }
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
        let reused = table.insert(Self.socket, descriptor: -1, tick: 9)
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
        for _ in 0..<8 { _ = table.insert(Self.socket, descriptor: -1, tick: 0) }
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
        for _ in 0..<50 { _ = table.insert(Self.socket, descriptor: -1, tick: 0) }
        var wheel = IdleWheel()
        var dueAt = [UInt32?](repeating: nil, count: 50)
        var due: [UInt32] = []
        for tick in UInt32(1)...3000 {
            wheel.takeDue(at: tick, into: &due, table: table.base)
            let expected = Set((UInt32(0)..<50).filter { (slot: UInt32) -> Bool in dueAt[Int(slot)] == tick })
            #expect(Set(due) == expected, "seed \(seed), tick \(tick)")
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

@Suite("SendQueue")
struct QueueTests {
    /// The testing macros call nothing that mutates.
    private static func append(_ bytes: [UInt8], _ queue: inout SendQueue, bytesMax: Int = 1 << 20, lines: [LatestOnlyFrame] = []) -> Bool {
        queue.append(batch(bytes, lines: lines), queuedBytesMax: bytesMax)
    }

    private static func batch(_ bytes: [UInt8], lines: [LatestOnlyFrame] = [], memory: QueuedMemory = QueuedMemory()) -> Batch {
        bytes.withUnsafeBytes { bytes in lines.withUnsafeBufferPointer { Batch(copying: bytes, latestOnly: $0, memory: memory) } }
    }

    /// Everything that waits, in order.
    private static func drain(_ queue: inout SendQueue) -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = queue.popFirst() { bytes += piece.batch.bytes[piece.start..<piece.end] }
        return bytes
    }

    @Test("one list may be longer than the bound; what waits beside it, and a second list, may not")
    func list() {
        var queue = SendQueue()
        func append(_ count: Int, isList: Bool = false) -> Bool {
            queue.append(Self.batch([UInt8](repeating: 1, count: count)), queuedBytesMax: 10, isList: isList)
        }
        var taken = [append(8), append(100, isList: true), append(2), append(1), append(20, isList: true), append(0)]
        #expect(taken == [true, true, true, false, false, true] && queue.queuedBytes == 110)
        let small = queue.popFirst()
        let list = queue.popFirst()
        #expect(small?.isList == false && list?.isList == true)
        if let list { queue.putBack(list) }
        taken = [append(8), append(1)]
        #expect(taken == [true, false])
        _ = queue.popFirst()
        taken = [append(1), append(50, isList: true)]
        #expect(taken == [false, true], "who is let off once more is not let off twice at a time")
    }

    @Test("who is furthest behind is found in a few looks, however many are behind")
    func furthest() {
        var laggards = Laggards()
        var bytes: [UInt32: Int] = [:]
        for slot in 0..<10_000 as Range<UInt32> {
            bytes[slot] = 1 + Int(UInt64(slot) &* 0x9E37_79B9_7F4A_7C15 % (1 << UInt64(slot % 30)))
            laggards.move(slot, from: 0, to: bytes[slot]! / 2)
            laggards.move(slot, from: bytes[slot]! / 2, to: bytes[slot]!)
        }
        let begun = laggards.looks
        while let found = laggards.furthest() {
            let behind = bytes.removeValue(forKey: found.slot)!
            #expect(Laggards.rank(behind) == found.rank)
            if bytes.count % 997 == 0 { #expect(bytes.values.allSatisfy { $0 <= behind + behind / 8 }) }
            laggards.move(found.slot, from: behind, to: 0)
        }
        #expect(bytes.isEmpty && laggards.looks - begun <= 8 * 10_001)
        for value in 1..<5000 { #expect(Laggards.rank(value) >= Laggards.rank(value - 1)) }
        #expect(Laggards.rank(.max) < 512)
    }

    @Test("batches come out in order, and bytes are counted both ways")
    func order() {
        var queue = SendQueue()
        for number in 0..<100 { #expect(Self.append([UInt8](repeating: UInt8(number), count: number + 1), &queue)) }
        #expect(queue.queuedBytes == 5050 && queue.ownBytes == 100 * SendQueue.pieceBytes)
        var expected: UInt8 = 0
        while let piece = queue.popFirst() {
            #expect(piece.end - piece.start == Int(expected) + 1 && piece.batch.bytes.first == expected)
            expected += 1
            if expected == 50 { #expect(Self.append([100] + [UInt8](repeating: 0, count: 100), &queue)) }
        }
        #expect(expected == 101 && queue.isEmpty && queue.queuedBytes == 0 && queue.ownBytes == 0)
        let isOver = queue.popFirst() == nil
        #expect(isOver)
    }

    @Test("the bounds in bytes and in pieces are kept, and what is refused is not taken")
    func bounds() {
        var queue = SendQueue()
        #expect(Self.append([1, 2, 3], &queue, bytesMax: 5))
        #expect(!Self.append([4, 5, 6], &queue, bytesMax: 5))
        #expect(Self.append([4, 5], &queue, bytesMax: 5))
        #expect(queue.queuedBytes == 5)
        _ = queue.popFirst()
        #expect(Self.append([7, 8, 9], &queue, bytesMax: 5))
        var many = SendQueue()
        for _ in 0..<SendQueue.piecesMax { #expect(Self.append([1], &many)) }
        #expect(!Self.append([1], &many))
        _ = many.popFirst()
        #expect(Self.append([1], &many))
    }

    @Test("a batch is taken from a place on, and what was not sent of a piece goes back in front")
    func pieces() {
        var queue = SendQueue()
        let first = queue.append(Self.batch([1, 2, 3, 4]), from: 1, queuedBytesMax: 100)
        #expect(first && Self.append([5], &queue) && queue.queuedBytes == 4)
        for _ in 0..<3 {
            guard var piece = queue.popFirst() else { break }
            piece.start += 1
            if piece.start < piece.end { queue.putBack(piece) }
        }
        #expect(queue.queuedBytes == 1)
        let left = Self.drain(&queue)
        #expect(left == [5])
    }

    @Test("of the frames of one line only the newest waits, in its own place; everything else stays")
    func latestOnly() {
        var queue = SendQueue()
        // A PING between two events of line 7, one of line 8, and what has no line.
        #expect(Self.append([1, 10, 2, 20], &queue, lines: [.init(start: 0, end: 1, line: 7), .init(start: 2, end: 3, line: 7)]))
        #expect(Self.append([3], &queue, lines: [.init(start: 0, end: 1, line: 8)]))
        #expect(Self.append([30], &queue))
        #expect(queue.queuedBytes == 5)
        #expect(Self.append([4, 40], &queue, lines: [.init(start: 0, end: 1, line: 7)]))
        #expect(queue.queuedBytes == 6 && queue.ownBytes == 6 * SendQueue.pieceBytes)
        var copy = queue
        let all = Self.drain(&copy)
        #expect(all == [10, 20, 3, 30, 4, 40])
        // A frame that was taken out is under way: the next of its line does not remove it.
        let sent = (0..<5).compactMap { _ in queue.popFirst() }
        #expect(sent.count == 5)
        #expect(Self.append([5], &queue, lines: [.init(start: 0, end: 1, line: 7)]))
        let left = Self.drain(&queue)
        #expect(left == [40, 5] && queue.isEmpty && queue.queuedBytes == 0)
    }

    @Test("a line that is published on for ever takes no more than one place, and its old batches are freed")
    func latestOnlyForEver() {
        let memory = QueuedMemory()
        var queue = SendQueue()
        for number in 0..<50_000 {
            let line = LatestOnlyFrame(start: 0, end: 2, line: UInt32(1 + number % 3))
            guard queue.append(Self.batch([UInt8(number & 255), UInt8(number >> 8)], lines: [line], memory: memory), queuedBytesMax: 6)
            else {
                Issue.record("refused at \(number)")
                return
            }
            // A little of it is sent now and then.
            if number % 1000 == 0, let piece = queue.popFirst(), number % 2000 == 0 { queue.putBack(piece) }
            if memory.bytes > 6 || queue.ownBytes > 3 * SendQueue.pieceBytes { Issue.record("\(memory.bytes) bytes at \(number)") }
        }
        let left = Self.drain(&queue)
        let newest: [UInt8] = [0x4D, 0xC3, 0x4E, 0xC3, 0x4F, 0xC3]
        #expect(left == newest, "49,997 to 49,999")
        #expect(memory.bytes == 0)
    }

    @Test("a batch is counted once however many wait for it, and no longer than the last of them")
    func shared() {
        let memory = QueuedMemory()
        var queues = [SendQueue](repeating: SendQueue(), count: 10)
        do {
            let batch = Self.batch([UInt8](repeating: 1, count: 100), memory: memory)
            for index in queues.indices { _ = queues[index].append(batch, queuedBytesMax: 100) }
        }
        #expect(memory.bytes == 100)
        for index in 1..<10 { _ = queues[index].popFirst() }
        #expect(memory.bytes == 100)
        _ = queues[0].popFirst()
        #expect(memory.bytes == 0)
    }

    @Test("a cut is found at the end of its frame, whatever the frames' lengths")
    func boundaries() {
        var bytes: [UInt8] = []
        var ends = [0]
        for count in [0, 1, 125, 126, 127, 65_535, 65_536, 3] {
            bytes += Frame.text([UInt8](repeating: 0xFF, count: count))
            ends.append(bytes.count)
        }
        bytes.withUnsafeBytes { frames in
            var cuts = Array(0..<800)
            for end in ends { cuts += [end - 1, end, end + 1] }
            for cut in cuts where cut >= 0 && cut <= frames.count {
                let found = Frame.boundary(in: frames, atOrBehind: cut)
                let end = ends.first { $0 >= cut }
                #expect(found == end, "cut at \(cut)")
            }
            // Bytes that are no whole frames end where the bytes end.
            #expect(Frame.boundary(in: UnsafeRawBufferPointer(rebasing: frames[..<5]), atOrBehind: 4) == 5)
        }
    }
}
