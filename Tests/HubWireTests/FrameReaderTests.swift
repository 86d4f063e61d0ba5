import HubTesting
import Testing

@testable import HubWire

/// Parts of a stream of frames, as a test sees them.
private enum Seen: Equatable {
    case text([UInt8])
    case binary([UInt8])
    case fragment
    case ping([UInt8])
    case pong([UInt8])
    case close([UInt8])
    case tooLong
    case violation(UInt16)
}

@Suite("FrameReader")
struct FrameReaderTests {
    private static func frame(_ first: UInt8, _ payload: [UInt8], lengthBytes: Int? = nil, isMasked: Bool = true) -> [UInt8] {
        let mask: UInt8 = isMasked ? 0x80 : 0
        let bytes = lengthBytes ?? (payload.count < 126 ? 0 : payload.count <= 0xFFFF ? 2 : 8)
        var frame = [first, bytes == 0 ? mask | UInt8(payload.count) : mask | (bytes == 2 ? 126 : 127)]
        for shift in stride(from: bytes * 8 - 8, through: 0, by: -8) { frame.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
        guard isMasked else { return frame + payload }
        let key: [UInt8] = [0x12, 0xFE, 0x00, 0x9B]
        return frame + key + payload.enumerated().map { $1 ^ key[$0 & 3] }
    }

    /// Reads the stream in those pieces, to its end or its first violation.
    private static func read(_ bytes: [UInt8], max: Int = 1000, piece: () -> Int) -> (seen: [Seen], reader: FrameReader) {
        var (reader, seen) = (FrameReader(), [Seen]())
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + piece())
            var chunk = Array(bytes[start..<end])
            start = end
            let isOver = chunk.withUnsafeMutableBytes { buffer in
                var input = buffer
                while let event = reader.next(&input, messageBytesMax: max) {
                    switch event {
                    case .message(true, let payload): seen.append(.binary(payload.withBytes { Array($0) }))
                    case .message(false, let payload): seen.append(.text(payload.withBytes { Array($0) }))
                    case .fragment: seen.append(.fragment)
                    case .ping(let payload): seen.append(.ping(payload.withBytes { Array($0) }))
                    case .pong(let payload): seen.append(.pong(payload.withBytes { Array($0) }))
                    case .close(let payload): seen.append(.close(payload.withBytes { Array($0) }))
                    case .tooLong: seen.append(.tooLong)
                    case .violation(let violation):
                        seen.append(.violation(violation.code))
                        return true
                    }
                }
                return false
            }
            if isOver { break }
        }
        return (seen, reader)
    }

    private static let text = Array("Grüße, 世界 🙂".utf8)

    @Test("messages and control frames come out whole, however the network cuts them, and nothing is held between two")
    func whole() {
        let long = [UInt8](repeating: 7, count: 700)
        let stream =
            Self.frame(0x81, Self.text) + Self.frame(0x82, long) + Self.frame(0x89, [1, 2]) + Self.frame(0x01, Array(Self.text[..<3]))
            + Self.frame(0x8A, []) + Self.frame(0x00, Array(Self.text[3..<12])) + Self.frame(0x00, [])
            + Self.frame(0x80, Array(Self.text[12...]))
            + Self.frame(0x81, []) + Self.frame(0x88, [3, 232])
        let expected: [Seen] = [
            .text(Self.text), .binary(long), .ping([1, 2]), .fragment, .pong([]), .fragment, .fragment, .text(Self.text), .text([]),
            .close([3, 232]),
        ]
        for size in 1...stream.count {
            let (seen, reader) = Self.read(stream) { size }
            #expect(seen == expected && reader.isIdle && reader.heldBytes == 0, "pieces of \(size)")
        }
    }

    @Test(
        "what RFC 6455 forbids is a violation, at the first byte that shows it",
        arguments: [
            (frame(0x81, [97], isMasked: false), 1002), (frame(0xC1, [97]), 1002), (frame(0xA1, [97]), 1002), (frame(0x91, [97]), 1002),
            (frame(0x83, []), 1002), (frame(0x87, []), 1002), (frame(0x8B, []), 1002), (frame(0x8F, []), 1002), (frame(0x80, [97]), 1002),
            (frame(0x00, [97]), 1002), (frame(0x01, [97]) + frame(0x81, [97]), 1002), (frame(0x02, []) + frame(0x02, []), 1002),
            (frame(0x09, []), 1002), (frame(0x08, []), 1002), (frame(0x89, [UInt8](repeating: 1, count: 126)), 1002),
            (frame(0x81, [97], lengthBytes: 2), 1002), (frame(0x81, [97], lengthBytes: 8), 1002),
            (frame(0x82, [UInt8](repeating: 1, count: 125), lengthBytes: 2), 1002),
            ([0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], 1002),
            (frame(0x81, [0xFF]), 1007), (frame(0x81, [0xC3]), 1007), (frame(0x81, [0xED, 0xA0, 0x80]), 1007),
            (frame(0x81, [0xC0, 0xAF]), 1007),
            (frame(0x81, [0xF4, 0x90, 0x80, 0x80]), 1007), (frame(0x01, [0xC3]) + frame(0x80, [0x28]), 1007),
            (frame(0x01, [0xE2, 0x82]) + frame(0x80, []), 1007),
            (frame(0x01, [0xF4, 0x90]), 1007),
        ] as [([UInt8], UInt16)])
    func violations(stream: [UInt8], code: UInt16) {
        for size in 1...stream.count { #expect(Self.read(stream) { size }.seen.last == .violation(code), "pieces of \(size)") }
    }

    @Test("a message past the bound is told once, from its header; the next one is read")
    func tooLong() {
        let long = [UInt8](repeating: 97, count: 1001)
        let inMany = (0..<20).map { Self.frame($0 == 0 ? 0x01 : $0 == 19 ? 0x80 : 0x00, [UInt8](repeating: 97, count: 100)) }
        let stream = Self.frame(0x81, long) + inMany.flatMap { $0 } + Self.frame(0x81, Self.text)
        for size in [1, 7, 100, stream.count] {
            let (seen, reader) = Self.read(stream) { size }
            #expect(seen.filter { $0 == .tooLong }.count == 2 && seen.last == .text(Self.text) && reader.isIdle)
        }
        // A length is believed before a byte of it is there.
        #expect(Self.read([0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4]) { 14 }.seen == [.tooLong])
    }

    @Test("streams cut at random, from a printed seed, are the same streams, and hold no more than a message")
    func random() {
        var random = SeededRandom(state: UInt64.random(in: 0...UInt64.max))
        let seed = random.state
        for _ in 0..<200 {
            var stream: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<12, using: &random) {
                let payload = (0..<Int.random(in: 0..<(Int.random(in: 0..<4, using: &random) == 0 ? 300 : 20), using: &random)).map { _ in
                    UInt8.random(in: 0...(Int.random(in: 0..<9, using: &random) == 0 ? 255 : 127), using: &random)
                }
                stream += Self.frame([0x81, 0x82, 0x01, 0x80, 0x00, 0x89, 0x8A, 0x88][Int.random(in: 0..<8, using: &random)], payload)
            }
            let whole = Self.read(stream) { Swift.max(1, stream.count) }
            let cut = Self.read(stream) { 1 + Int.random(in: 0..<40, using: &random) }
            #expect(whole.seen == cut.seen, "seed \(seed)")
            #expect(cut.reader.heldBytes <= 1000 + 14 + 125)
        }
    }
}

@Suite("UTF8Check")
struct UTF8CheckTests {
    @Test("judges as the standard library does, whole and in pieces, all of two bytes and the edges of longer forms")
    func all() {
        var samples: [[UInt8]] = []
        for first in 0...255 { for second in stride(from: 0, through: 255, by: 3) { samples.append([UInt8(first), UInt8(second)]) } }
        let edges: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
        for first in [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5] as [UInt8] {
            for second in edges {
                for third in edges { samples += [[first, second, third], [first, second, third, 0x80], [first, second, third, 0xC0]] }
            }
        }
        for sample in samples {
            for bytes in [sample, Array("ASCII before it, eight bytes and more".utf8) + sample] {
                let isText = String(validating: bytes, as: UTF8.self) != nil
                var check = UTF8Check()
                let isTaken = bytes.allSatisfy { byte in [byte].withUnsafeBytes { check.take($0) } }
                #expect((isTaken && check.isComplete) == isText && bytes.withUnsafeBytes { UTF8Check.isText($0) } == isText, "\(sample)")
            }
        }
    }
}
