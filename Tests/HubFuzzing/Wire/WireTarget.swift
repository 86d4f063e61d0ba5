import HubTesting
import HubWire

/// Client WebSocket frames as bytes. The first two bytes of an input control how the rest is split into pieces.
enum WireTarget {
    private static let messageBytesMax = 300
    /// A header and a control frame's payload may wait in addition to a message.
    private static let heldBytesMax = messageBytesMax + 14 + CloseFrame.payloadBytesMax

    @Sendable static func make() -> FuzzTarget {
        let source = InputSource("wire", tokens: ["\u{81}", "\0", "\u{7F}", "ä", "𤭢", "\u{FFFD}"]) { random in
            var bytes = [UInt8(random.below(256)), UInt8(random.below(256))]
            for _ in 0..<random.below(8) { bytes += frame(&random) }
            return bytes
        }
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func frame(_ random: inout SeededRandom) -> [UInt8] {
        var frame = ClientFrame(random.element(of: [1, 1, 1, 2, 0, 0, 0, 8, 9, 9, 10, UInt8(random.below(16))]))
        frame.isFinal = !random.chance(1, in: frame.opcode < 8 ? 2 : 20)
        let count = random.element(of: [0, 1, 5, 125, 126, 127, random.below(200), random.below(2000)])
        frame.payload = (0..<count).map { _ in UInt8(random.below(128)) }
        if random.chance(1, in: 3) { frame.payload = Array(String(repeating: "aä€𤭢", count: count / 10).utf8) }
        if random.chance(1, in: 8) { frame.payload.append(UInt8(random.below(256))) }
        if frame.opcode == 8, random.chance(1, in: 2) { frame.payload = [3, UInt8(0xE0 + random.below(24))] + frame.payload.prefix(20) }
        if random.chance(1, in: 40) { frame.reserved = UInt8(random.below(8)) }
        if random.chance(1, in: 40) { frame.isMasked = false }
        if random.chance(1, in: 30) { frame.length = .eightBytes }
        if random.chance(1, in: 30) { frame.length = .claimed(random.next() >> UInt64(random.below(64))) }
        return random.chance(1, in: 20) ? frame.header : frame.bytes
    }

    /// A comparable event.
    private enum Seen: Equatable {
        case message(isBinary: Bool, [UInt8])
        case fragment, tooLong
        case ping([UInt8])
        case pong([UInt8])
        case close([UInt8])
        case violation(UInt16)
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 2 else { return nil }
        let input = Array(bytes.dropFirst(2))
        var random = SeededRandom(state: UInt64(bytes[0]))
        let most = 1 + Int(bytes[1])
        let whole = read(input) { input.count }
        let pieces = read(input) { 1 + random.below(most) }
        if let sentence = whole.sentence ?? pieces.sentence { return sentence }
        if whole.events != pieces.events { return "in pieces it is \(pieces.events), at once \(whole.events)" }
        let expected = reference(input)
        return whole.events == expected ? nil : "it is \(whole.events), by the reference \(expected)"
    }

    private static func read(_ bytes: [UInt8], piece: () -> Int) -> (events: [Seen], sentence: String?) {
        var reader = FrameReader()
        var events: [Seen] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + max(1, piece()))
            // Unmasked in place.
            var part = Array(bytes[position..<end])
            position = end
            let left = part.withUnsafeMutableBytes { raw -> Int in
                var input = raw
                while let event = reader.next(&input, messageBytesMax: messageBytesMax) {
                    switch event {
                    case .message(let isBinary, let payload): events.append(.message(isBinary: isBinary, payload.withBytes { Array($0) }))
                    case .fragment: events.append(.fragment)
                    case .tooLong: events.append(.tooLong)
                    case .ping(let payload): events.append(.ping(payload.withBytes { Array($0) }))
                    case .pong(let payload): events.append(.pong(payload.withBytes { Array($0) }))
                    case .close(let payload): events.append(.close(payload.withBytes { Array($0) }))
                    case .violation(let violation):
                        events.append(.violation(violation.code))
                        return -1
                    }
                }
                return input.count
            }
            if left < 0 { return (events, nil) }
            if left > 0 { return (events, "\(left) bytes are left over") }
            if reader.heldBytes > heldBytesMax { return (events, "\(reader.heldBytes) bytes are held") }
            if reader.isIdle, reader.heldBytes > 0 { return (events, "an idle reader holds \(reader.heldBytes) bytes") }
        }
        return (events, nil)
    }

    /// The frames, decoded at once from all bytes (RFC 6455, 5).
    private static func reference(_ bytes: [UInt8]) -> [Seen] {
        var events: [Seen] = []
        var rest = bytes[...]
        var message: (isBinary: Bool, bytes: [UInt8], isTooLong: Bool)?
        while let first = rest.first {
            let opcode = first & 15
            if first & 0x70 != 0 { return events + [.violation(1002)] }
            guard let second = rest.dropFirst().first else { return events }
            if second < 128 { return events + [.violation(1002)] }
            let form = second & 127
            if form > 125, opcode > 7 { return events + [.violation(1002)] }
            let lengthBytes = form < 126 ? 0 : form == 126 ? 2 : 8
            guard rest.count >= 2 + lengthBytes + 4 else { return events }
            let numbers = Array(rest.prefix(2 + lengthBytes + 4))
            let length = lengthBytes == 0 ? UInt64(form) : numbers[2..<2 + lengthBytes].reduce(0) { $0 << 8 | UInt64($1) }
            let isMinimal = lengthBytes == 0 || length > (lengthBytes == 2 ? 125 : 0xFFFF)
            let isKnown = opcode < 3 || (8...10).contains(opcode)
            let isInOrder = opcode > 7 ? first > 127 : (opcode == 0) == (message != nil)
            if !isMinimal || length >> 63 != 0 || !isKnown || !isInOrder { return events + [.violation(1002)] }
            let key = Array(numbers.suffix(4))
            rest = rest.dropFirst(numbers.count)
            let count = min(rest.count, Int(length))
            let payload = rest.prefix(count).enumerated().map { $0.element ^ key[$0.offset & 3] }
            rest = rest.dropFirst(count)
            let isWhole = UInt64(count) == length
            if opcode > 7 {
                guard isWhole else { return events }
                events.append(opcode == 8 ? .close(payload) : opcode == 9 ? .ping(payload) : .pong(payload))
                continue
            }
            let isBinary = message?.isBinary ?? (opcode == 2)
            var (bytes, isTooLong) = (message?.bytes ?? [], message?.isTooLong ?? false)
            if !isTooLong, length > UInt64(messageBytesMax - bytes.count) {
                isTooLong = true
                events.append(.tooLong)
            }
            if !isTooLong {
                bytes += payload
                let isEnd = isWhole && first > 127
                if !isBinary, !isText(bytes, isEnd: isEnd) { return events + [.violation(1007)] }
            }
            guard isWhole else { return events }
            message = first > 127 ? nil : (isBinary, bytes, isTooLong)
            if first < 128 { events.append(.fragment) } else if !isTooLong { events.append(.message(isBinary: isBinary, bytes)) }
        }
        return events
    }

    /// Whether the bytes are UTF-8, or a prefix of valid UTF-8.
    private static func isText(_ bytes: [UInt8], isEnd: Bool) -> Bool {
        if String(validating: bytes, as: UTF8.self) != nil { return true }
        guard !isEnd else { return false }
        let ends: [[UInt8]] = [[0x80], [0x9F], [0xA0], [0x8F], [0x90], [0xBF]]
        for end in ends {
            for count in 0..<3 {
                let whole = bytes + end + [UInt8](repeating: 0x80, count: count)
                if String(validating: whole, as: UTF8.self) != nil { return true }
            }
        }
        return false
    }
}
