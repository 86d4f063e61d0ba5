/// The cases of the Autobahn test suite's fuzzing client (sections 1 to 7 and 10), rewritten from RFC 6455 with the same numbers. A server
/// that fails one of these fails the suite's. Limits (9) have no standard answer, and compression (12, 13) is not negotiated.
package enum AutobahnCases {
    /// All cases, in the suite's order of sections.
    package static let all = framing + pings + reservedBits + opcodes + fragments + AutobahnTextCases.all + closing + automaticFragments

    /// Number of cases per section of the suite.
    package static let counts = [1: 16, 2: 11, 3: 7, 4: 10, 5: 20, 6: 145, 7: 37, 10: 1]

    /// The cases that need no application which echoes messages.
    package static let withoutEcho = all.filter(\.needsNoEcho)

    private static let greeting = "Hello, world!"
    private static let octets: [UInt8] = [0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF]

    static func bytes(_ opcode: UInt8, of payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        ClientFrame(opcode, payload, isFinal: isFinal).bytes
    }

    private static func bytes(_ opcode: UInt8, _ text: String = "", isFinal: Bool = true, reserved: UInt8 = 0) -> [UInt8] {
        ClientFrame(opcode, Array(text.utf8), isFinal: isFinal, reserved: reserved).bytes
    }

    /// One write per frame.
    static func send(_ frames: [[UInt8]]) -> [WireCase.Step] { frames.map { .send($0, inPiecesOf: nil) } }
    /// One write for all frames.
    private static func sendAtOnce(_ frames: [[UInt8]]) -> [WireCase.Step] { [.send(frames.flatMap { $0 }, inPiecesOf: nil)] }
    private static func sendByOctets(_ frames: [[UInt8]]) -> [WireCase.Step] { frames.map { .send($0, inPiecesOf: 1) } }

    /// A message of one frame at each length where the header changes, and once more in pieces.
    private static let framing: [WireCase] = lengths("1.1", opcode: 1, UInt8(ascii: "*")) + lengths("1.2", opcode: 2, 0xFE)

    private static func lengths(_ number: String, opcode: UInt8, _ byte: UInt8) -> [WireCase] {
        let forms: [(count: Int, piece: Int?)] = [
            (0, nil), (125, nil), (126, nil), (127, nil), (128, nil), (65_535, nil), (65_536, nil), (65_536, 997),
        ]
        var cases: [WireCase] = []
        for (count, piece) in forms {
            let payload = [UInt8](repeating: byte, count: count)
            let steps = [WireCase.Step.send(bytes(opcode, of: payload), inPiecesOf: piece)]
            cases.append(WireCase("\(number).\(cases.count + 1)", steps, answers: [WireFrame(opcode, payload)], .closedByClient))
        }
        return cases
    }

    private static let pings: [WireCase] = {
        let longest = [UInt8](repeating: 0xFE, count: 125)
        let ten: [String] = (0..<10).map { "payload-\($0)" }
        let tenFrames: [[UInt8]] = ten.map { bytes(9, $0) }
        let tenPongs: [WireFrame] = ten.map { .pong($0) }
        let unasked = bytes(10, "nobody asked for this")
        let pings: [WireCase] = [
            WireCase("2.1", send([bytes(9)]), answers: [.pong()], .closedByClient),
            WireCase("2.2", send([bytes(9, greeting)]), answers: [.pong(greeting)], .closedByClient),
            WireCase("2.3", send([bytes(9, of: octets)]), answers: [WireFrame(10, octets)], .closedByClient),
            WireCase("2.4", send([bytes(9, of: longest)]), answers: [WireFrame(10, longest)], .closedByClient),
            WireCase("2.5", send([bytes(9, of: longest + [0xFE])]), .failed([1002])),
            WireCase("2.6", sendByOctets([bytes(9, of: longest)]), answers: [WireFrame(10, longest)], .closedByClient),
            WireCase("2.7", send([bytes(10), ClientFrame.close(1000).bytes]), .closeAnswered([1000])),
            WireCase("2.8", send([unasked, ClientFrame.close(1000).bytes]), .closeAnswered([1000])),
            WireCase("2.9", send([unasked, bytes(9, "asked")]), answers: [.pong("asked")], .closedByClient),
            WireCase("2.10", send(tenFrames), answers: tenPongs, .closedByClient),
            WireCase("2.11", sendByOctets(tenFrames), answers: tenPongs, .closedByClient),
        ]
        return pings
    }()

    /// A greeting, then a mistake, then a PING that must stay unanswered.
    private static func behindGreeting(_ number: String, _ mistake: [UInt8], _ steps: ([[UInt8]]) -> [WireCase.Step]) -> WireCase {
        WireCase(number, steps([bytes(1, greeting), mistake, bytes(9)]), answers: [.text(greeting)], .failed([1002]))
    }

    private static let reservedBits: [WireCase] = [
        WireCase("3.1", send([bytes(1, greeting, reserved: 1)]), .failed([1002])),
        behindGreeting("3.2", bytes(1, greeting, reserved: 2), sendAtOnce),
        behindGreeting("3.3", bytes(1, greeting, reserved: 3), send),
        behindGreeting("3.4", bytes(1, greeting, reserved: 4), sendByOctets),
        WireCase("3.5", send([ClientFrame(2, octets, reserved: 5).bytes]), .failed([1002])),
        WireCase("3.6", send([bytes(9, greeting, reserved: 6)]), .failed([1002])),
        WireCase("3.7", send([bytes(8, reserved: 7)]), .failed([1002])),
    ]

    /// Undefined opcodes: five for messages (from 3), five for control frames (from 11).
    private static let opcodes: [WireCase] = meaningless("4.1", from: 3) + meaningless("4.2", from: 11)

    private static func meaningless(_ number: String, from first: UInt8) -> [WireCase] {
        [
            WireCase(number + ".1", send([bytes(first)]), .failed([1002])),
            WireCase(number + ".2", send([bytes(first + 1, "without a meaning")]), .failed([1002])),
            behindGreeting(number + ".3", bytes(first + 2), sendAtOnce),
            behindGreeting(number + ".4", bytes(first + 3, greeting), sendAtOnce),
            behindGreeting(number + ".5", bytes(first + 4, greeting), sendByOctets),
        ]
    }

    private static let fragments: [WireCase] = {
        let begin = bytes(1, "one, ", isFinal: false)
        let end = bytes(0, "two")
        let whole = WireFrame.text("one, two")
        let stray = bytes(0, "continues nothing")
        let openStray = bytes(0, "continues nothing", isFinal: false)
        /// Three numbers, one per way to write: at once, frame by frame, octet by octet.
        func inThreeWays(from first: Int, _ frames: [[UInt8]], answers: [WireFrame] = [], _ end: WireCase.End) -> [WireCase] {
            [
                WireCase("5.\(first)", sendAtOnce(frames), answers: answers, end),
                WireCase("5.\(first + 1)", send(frames), answers: answers, end),
                WireCase("5.\(first + 2)", sendByOctets(frames), answers: answers, end),
            ]
        }
        func longStory(_ number: Int, _ write: ([[UInt8]]) -> [WireCase.Step]) -> WireCase {
            let first = write([bytes(1, "a", isFinal: false), bytes(0, "b", isFinal: false), bytes(9, "early")])
            let second = write([bytes(0, "c", isFinal: false), bytes(0, "d", isFinal: false), bytes(9, "late"), bytes(0, "e")])
            return WireCase(
                "5.\(number)", first + [.answers(1), .quiet] + second, answers: [.pong("early"), .pong("late"), .text("abcde")],
                .closedByClient)
        }
        var cases = [
            WireCase("5.1", sendAtOnce([bytes(9, "one, ", isFinal: false), end]), .failed([1002])),
            WireCase("5.2", sendAtOnce([bytes(10, "one, ", isFinal: false), end]), .failed([1002])),
        ]
        cases += inThreeWays(from: 3, [begin, end], answers: [whole], .closedByClient)
        cases += inThreeWays(from: 6, [begin, bytes(9, "between"), end], answers: [.pong("between"), whole], .closedByClient)
        cases += inThreeWays(from: 9, [stray, bytes(1, greeting)], .failed([1002]))
        cases += inThreeWays(from: 12, [openStray, bytes(1, greeting)], .failed([1002]))
        cases.append(WireCase("5.15", sendAtOnce([begin, end, openStray, bytes(1, greeting)]), answers: [whole], .failed([1002])))
        cases.append(WireCase("5.16", sendAtOnce([openStray, begin, end, openStray, begin, end]), .failed([1002])))
        cases.append(WireCase("5.17", sendAtOnce([stray, begin, end, stray, begin, end]), .failed([1002])))
        cases.append(WireCase("5.18", sendAtOnce([begin, bytes(1, "two")]), .failed([1002])))
        return cases + [longStory(19, sendAtOnce), longStory(20, send)]
    }()

    private static let closing: [WireCase] = {
        func close(_ code: Int?, _ reason: [UInt8] = []) -> [UInt8] { ClientFrame.close(code, reason).bytes }
        let long = Array("0123456789abcdef".utf8)
        let quarter: [UInt8] = (0..<16_384).flatMap { _ in long }
        let stars = [UInt8](repeating: UInt8(ascii: "*"), count: 124)
        let notUTF8 = Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] as [UInt8]
        var cases: [WireCase] = [
            WireCase("7.1.1", send([bytes(1, greeting)]), answers: [.text(greeting)], .closedByClient),
            WireCase("7.1.2", sendAtOnce([close(1000), close(nil)]), .closeAnswered([1000])),
            WireCase("7.1.3", sendAtOnce([close(1000), bytes(9)]), .closeAnswered([1000])),
            WireCase("7.1.4", sendAtOnce([close(1000), bytes(1, greeting)]), .closeAnswered([1000])),
            WireCase("7.1.5", sendAtOnce([bytes(1, "one, ", isFinal: false), close(1000), bytes(0, "two")]), .closeAnswered([1000])),
            // A server may answer the long message with its close frame only: it may be busy, or the message may exceed its limit.
            WireCase(
                "7.1.6", sendAtOnce([bytes(1, of: quarter), bytes(1, greeting), close(1000), bytes(9)]),
                answers: [WireFrame(1, quarter), .text(greeting)], .undefined([1000, 1009])),
            WireCase("7.3.1", send([close(nil)]), .closeAnswered([nil, 1000])),
            WireCase("7.3.2", send([bytes(8, "a")]), .failed([1002])),
            WireCase("7.3.3", send([close(1000)]), .closeAnswered([1000])),
            WireCase("7.3.4", send([close(1000, Array(greeting.utf8))]), .closeAnswered([1000])),
            WireCase("7.3.5", send([close(1000, Array(stars.dropLast()))]), .closeAnswered([1000])),
            WireCase("7.3.6", send([close(1000, stars)]), .failed([1002])),
            WireCase("7.5.1", send([close(1000, notUTF8)]), .failed([1002, 1007])),
        ]
        for (index, code) in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].enumerated() {
            cases.append(WireCase("7.7.\(index + 1)", send([close(code)]), .closeAnswered([code])))
        }
        for (index, code) in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999].enumerated() {
            cases.append(WireCase("7.9.\(index + 1)", send([close(code)]), .failed([1002])))
        }
        for (index, code) in [5000, 65_535].enumerated() {
            cases.append(WireCase("7.13.\(index + 1)", send([close(code)]), .undefined([1000, 1002, code])))
        }
        return cases
    }()

    /// A long message in many fragments, like a library's automatic fragmentation.
    private static let automaticFragments: [WireCase] = {
        let message = [UInt8](repeating: UInt8(ascii: "*"), count: 65_536)
        return [WireCase("10.1.1", sendAtOnce(fragments(of: message, count: 1_300)), answers: [WireFrame(1, message)], .closedByClient)]
    }()

    /// A text message in frames of `count` bytes each.
    package static func fragments(of message: [UInt8], count: Int) -> [[UInt8]] {
        stride(from: 0, to: message.count, by: count).map { start in
            let end = min(start + count, message.count)
            return bytes(start == 0 ? 1 : 0, of: Array(message[start..<end]), isFinal: end == message.count)
        }
    }
}
