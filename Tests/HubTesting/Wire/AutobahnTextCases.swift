/// Section 6 of Autobahn's cases: valid UTF-8, and invalid UTF-8 that fails the connection with 1007 (RFC 6455, 8.1). The sequences are
/// those that break decoders: first and last of each length, overlong forms, surrogates, cut-off sequences.
enum AutobahnTextCases {
    static let all = emptyFragments + valid + invalid + early + sequences

    private static let kosme = Array("\u{3BA}\u{1F79}\u{3C3}\u{3BC}\u{3B5}".utf8)
    private static let surrogate: [UInt8] = [0xED, 0xA0, 0x80]
    /// The code point after the last valid one.
    private static let beyond: [UInt8] = [0xF4, 0x90, 0x80, 0x80]
    private static let tail = Array("tail".utf8)

    /// A text message in fragments.
    private static func message(_ fragments: [[UInt8]]) -> [WireCase.Step] {
        var frames: [[UInt8]] = []
        for fragment in fragments {
            frames.append(AutobahnCases.bytes(frames.isEmpty ? 1 : 0, of: fragment, isFinal: frames.count == fragments.count - 1))
        }
        return AutobahnCases.send(frames)
    }

    private static func echoed(_ number: String, _ fragments: [[UInt8]]) -> WireCase {
        WireCase(number, message(fragments), answers: [WireFrame(1, fragments.flatMap { $0 })], .closedByClient)
    }

    private static func refused(_ number: String, _ fragments: [[UInt8]]) -> WireCase {
        WireCase(number, message(fragments), .failed([1007]))
    }

    private static let emptyFragments = [
        echoed("6.1.1", [[]]), echoed("6.1.2", [[], [], []]), echoed("6.1.3", [[], Array("in the middle".utf8), []]),
    ]

    private static let valid: [WireCase] = {
        let words = Array("Hello-µ@ßöäüàá-UTF-8!!".utf8)
        let half = Array("Hello-µ@ßöä".utf8).count
        return [
            echoed("6.2.1", [words]), echoed("6.2.2", [Array(words[..<half]), Array(words[half...])]), echoed("6.2.3", words.map { [$0] }),
            echoed("6.2.4", kosme.map { [$0] }),
        ]
    }()

    private static let invalid = [
        refused("6.3.1", [kosme + surrogate + tail]), refused("6.3.2", (kosme + surrogate + tail).map { [$0] }),
    ]

    /// The mistake is sent some time before the message's end, and can be detected at once.
    private static let early: [WireCase] = [
        // After the mistake's first byte a code point may still be valid; its second byte decides.
        earlyInFragments("6.4.1", kosme.count, kosme.count + 4), earlyInFragments("6.4.2", kosme.count + 1, kosme.count + 2),
        earlyInPieces("6.4.3", kosme.count, kosme.count + 4), earlyInPieces("6.4.4", kosme.count + 1, kosme.count + 2),
    ]

    private static func earlyInFragments(_ number: String, _ first: Int, _ second: Int) -> WireCase {
        let whole = kosme + beyond + tail
        let steps = message([Array(whole[..<first]), Array(whole[first..<second]), Array(whole[second...])])
        // The PONG shows that the server has read the beginning and found no mistake yet.
        let ping = WireCase.Step.send(ClientFrame(9).bytes, inPiecesOf: nil)
        return WireCase(number, [steps[0], ping, .answers(1), .quiet, steps[1], .moment, steps[2]], answers: [.pong()], .failed([1007]))
    }

    private static func earlyInPieces(_ number: String, _ first: Int, _ second: Int) -> WireCase {
        let frame = ClientFrame(1, kosme + beyond + tail)
        let bytes = frame.bytes
        let (first, second) = (frame.header.count + first, frame.header.count + second)
        let steps = AutobahnCases.send([Array(bytes[..<first]), Array(bytes[first..<second]), Array(bytes[second...])])
        return WireCase(number, [steps[0], .quiet, steps[1], .moment, steps[2]], .failed([1007]))
    }

    /// Encodes a code point in `count` bytes, whether or not UTF-8 allows it: UTF-8's first edition went up to six.
    private static func encoded(_ value: UInt32, in count: Int) -> [UInt8] {
        guard count > 1 else { return [UInt8(value)] }
        var rest = value
        var bytes: [UInt8] = []
        for _ in 1..<count {
            bytes.insert(0x80 | UInt8(rest & 0x3F), at: 0)
            rest >>= 6
        }
        let mark = UInt8(truncatingIfNeeded: 0xFF00 >> count)
        return [mark | UInt8(rest)] + bytes
    }

    /// The highest value that fits `count` bytes.
    private static func highest(in count: Int) -> UInt32 {
        count == 1 ? 0x7F : (1 << UInt32(5 * count + 1)) - 1
    }

    private static func shortest(_ value: UInt32) -> [UInt8] {
        encoded(value, in: (1...6).first { value <= highest(in: $0) } ?? 6)
    }

    private typealias Sequences = [(isValid: Bool, bytes: [UInt8])]
    private static func valid(_ list: [[UInt8]]) -> Sequences { list.map { (true, $0) } }
    private static func invalid(_ list: [[UInt8]]) -> Sequences { list.map { (false, $0) } }
    private static func scalars(_ values: [UInt32]) -> Sequences { valid(values.map { shortest($0) }) }
    /// One sequence per count of bytes.
    private static func invalid(_ counts: ClosedRange<Int>, _ bytes: (Int) -> [UInt8]) -> Sequences { invalid(counts.map(bytes)) }

    private static let words: [[UInt8]] = ["hello$world", "hello¢world", "hello€world", "hello𤭢world"].map { Array($0.utf8) } + [kosme]
    /// Every prefix of a word; five end after a complete code point.
    private static let beginnings: Sequences = (1...kosme.count).map { ([2, 5, 7, 9, 11].contains($0), Array(kosme[..<$0])) }
    private static let continuations: [[UInt8]] = [
        [0x80], [0xBF], [0x80, 0xBF], [0x80, 0xBF, 0x80], [0x80, 0xBF, 0x80, 0xBF], [0x80, 0xBF, 0x80, 0xBF, 0x80],
        [0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF],
        Array(0x80...0xBF),
    ]
    private static let leads: [[UInt8]] = [
        alone(0xC0...0xDF), alone(0xE0...0xEF), alone(0xF0...0xF7), alone(0xF8...0xFB), alone(0xFC...0xFD),
    ]
    private static func alone(_ range: ClosedRange<UInt8>) -> [UInt8] { range.flatMap { [$0, 0x20] } }
    private static let cutOff: [[UInt8]] = {
        let lowest: [[UInt8]] = (2...6).map { encoded(0, in: $0).dropLast() }
        let most: [[UInt8]] = (2...6).map { encoded(highest(in: $0), in: $0).dropLast() }
        return lowest + most
    }()
    private static let highSurrogates: [UInt32] = [0xD800, 0xDB7F, 0xDB80, 0xDBFF]
    private static let lowSurrogates: [UInt32] = [0xDC00, 0xDF80, 0xDFFF]
    private static let pairs: [[UInt8]] = highSurrogates.flatMap { high in
        [encoded(high, in: 3) + encoded(0xDC00, in: 3), encoded(high, in: 3) + encoded(0xDFFF, in: 3)]
    }
    private static let nonCharacters: [UInt32] = (0...16).flatMap { (plane: UInt32) in [plane << 16 | 0xFFFE, plane << 16 | 0xFFFF] }

    /// The groups by subsection from 6.5 on; each sequence is one message of one frame.
    private static let groups: [Sequences] = {
        var groups: [Sequences] = [valid(words), beginnings]
        groups.append(scalars([0, 0x80, 0x800, 0x10000]))
        groups.append(invalid([encoded(0x20_0000, in: 5), encoded(0x400_0000, in: 6)]))
        groups.append(scalars([0x7F, 0x7FF, 0xFFFF, 0x10_FFFF]))
        groups.append(invalid(4...6) { encoded(highest(in: $0), in: $0) })
        groups.append(scalars([0xD7FF, 0xE000, 0xFFFD, 0x10_FFFF]) + invalid([beyond]))
        groups.append(invalid(continuations))
        groups.append(invalid(leads))
        groups.append(invalid(cutOff))
        groups.append(invalid([cutOff.flatMap { $0 }]))
        groups.append(invalid([[0xFE], [0xFF], [0xFE, 0xFE, 0xFF, 0xFF]]))
        // Overlong forms: a slash, the highest value of one byte less, and zero.
        groups.append(invalid(2...6) { encoded(0x2F, in: $0) })
        groups.append(invalid(2...6) { encoded(highest(in: $0 - 1), in: $0) })
        groups.append(invalid(2...6) { encoded(0, in: $0) })
        groups.append(invalid((highSurrogates + lowSurrogates).map { encoded($0, in: 3) }))
        groups.append(invalid(pairs))
        groups.append(scalars(nonCharacters))
        groups.append(scalars([0xFFF9, 0xFFFA, 0xFFFB, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF]))
        return groups
    }()

    private static let sequences: [WireCase] = {
        var cases: [WireCase] = []
        for (group, list) in groups.enumerated() {
            for (index, item) in list.enumerated() {
                let number = "6.\(group + 5).\(index + 1)"
                cases.append(item.isValid ? echoed(number, [item.bytes]) : refused(number, [item.bytes]))
            }
        }
        return cases
    }()
}
