/// Client mistakes that Autobahn does not cover, and messages around a server's limit.
package enum WireCases {
    /// All cases that hold for every limit.
    package static let all = masks + lengths + control + reserved + text

    private static func failed(_ name: String, _ frames: [ClientFrame], answers: [WireFrame] = [], code: Int = 1002) -> WireCase {
        WireCase(name, [.send(frames.flatMap(\.bytes), inPiecesOf: nil)], answers: answers, .failed([code]))
    }

    /// Sends only the header of the last frame, which is sufficient.
    private static func failedByHeader(_ name: String, _ frame: ClientFrame, code: Int = 1002) -> WireCase {
        WireCase(name, [.send(frame.header, inPiecesOf: nil)], .failed([code]))
    }

    private static let words = Array("words".utf8)
    private static let stars126 = [UInt8](repeating: 42, count: 126)
    private static let begin = ClientFrame(1, words, isFinal: false)

    private static let masks: [WireCase] = [
        failed("text without a mask", [ClientFrame(1, words, isMasked: false)]),
        failed(
            "text without a mask behind one with a mask", [ClientFrame(1, words), ClientFrame(1, words, isMasked: false)],
            answers: [WireFrame(1, words)]),
        failed("nothing without a mask", [ClientFrame(1, isMasked: false)]),
        failed("binary without a mask", [ClientFrame(2, words, isMasked: false)]),
        failed("a continuation without a mask", [begin, ClientFrame(0, words, isMasked: false)]),
        failed("PING without a mask", [ClientFrame(9, words, isMasked: false)]),
        failed("PONG without a mask", [ClientFrame(10, isMasked: false)]),
        failed("close without a mask", [ClientFrame(8, [0x03, 0xE8], isMasked: false)]),
        failedByHeader("a long text without a mask, header only", ClientFrame(1, [UInt8](repeating: 42, count: 400), isMasked: false)),
    ]

    private static let lengths: [WireCase] = [
        failedByHeader("a length with its top bit", ClientFrame(1, length: .claimed(1 << 63))),
        failedByHeader("a length of ones only", ClientFrame(2, length: .claimed(.max))),
        failedByHeader("the longest length", ClientFrame(1, length: .claimed(1 << 63 - 1)), code: 1009),
        failedByHeader("a length of 4 GB", ClientFrame(2, length: .claimed(1 << 32)), code: 1009),
        failed("0 in two bytes", [ClientFrame(1, length: .twoBytes)]),
        failed("125 in two bytes", [ClientFrame(1, [UInt8](repeating: 42, count: 125), length: .twoBytes)]),
        failed("0 in eight bytes", [ClientFrame(1, length: .eightBytes)]),
        failed("125 in eight bytes", [ClientFrame(2, [UInt8](repeating: 42, count: 125), length: .eightBytes)]),
        failed("126 in eight bytes", [ClientFrame(1, [UInt8](repeating: 42, count: 126), length: .eightBytes)]),
        failed("300 in eight bytes, of a continuation", [begin, ClientFrame(0, [UInt8](repeating: 42, count: 300), length: .eightBytes)]),
        failed("PING with 5 in two bytes", [ClientFrame(9, words, length: .twoBytes)]),
        failed("PING with 5 in eight bytes", [ClientFrame(9, words, length: .eightBytes)]),
    ]

    private static let control: [WireCase] = [
        failed("PING of 126 bytes within a message", [begin, ClientFrame(9, [UInt8](repeating: 42, count: 126))]),
        failed("PONG of 126 bytes", [ClientFrame(10, [UInt8](repeating: 42, count: 126))]),
        failedByHeader("PING of 70,000 bytes, header only", ClientFrame(9, [UInt8](repeating: 42, count: 70_000))),
        failed("a close in fragments", [ClientFrame(8, [0x03, 0xE8], isFinal: false), ClientFrame(0)]),
        failed("a fragmented PING within a message", [begin, ClientFrame(9, words, isFinal: false)]),
        WireCase(
            "PING and PONG within a message, and a close",
            [.send([begin, ClientFrame(9, words), ClientFrame(10, words), .close(1000)].flatMap(\.bytes), inPiecesOf: nil)],
            answers: [WireFrame(10, words)], .undefined([1000])),
    ]

    private static let reserved: [WireCase] = [
        failed("a reserved bit of a continuation", [begin, ClientFrame(0, words, reserved: 4)]),
        failed("a reserved bit of a PONG", [ClientFrame(10, reserved: 1)]),
        failedByHeader("a reserved bit, header only", ClientFrame(1, [UInt8](repeating: 42, count: 300), reserved: 2)),
        failed("a reserved opcode within a message", [begin, ClientFrame(3, words)]),
        failed("a reserved control opcode within a message", [begin, ClientFrame(11)]),
        failed("binary within a text", [begin, ClientFrame(2, words)]),
        failed("nothing to continue behind a whole message", [ClientFrame(2), ClientFrame(0, words)], answers: [WireFrame(2, [])]),
    ]

    private static let text: [WireCase] = [
        failed("a code point that ends with the message, cut off", [begin, ClientFrame(0, [0xE2, 0x82])], code: 1007),
        failed("a code point that is cut off by another message's end", [ClientFrame(1, [0xC3]), ClientFrame(1, [0xA4])], code: 1007),
        failed(
            "no UTF-8 behind a PING within the message", [begin, ClientFrame(9), ClientFrame(0, [0xFF])], answers: [.pong()],
            code: 1007),
        failed("no UTF-8 in a message that goes on", [ClientFrame(1, [0xC0, 0x80], isFinal: false)], code: 1007),
        WireCase(
            "binary need not be UTF-8", [.send(ClientFrame(2, [0xC0, 0x80, 0xFF]).bytes, inPiecesOf: nil)],
            answers: [WireFrame(2, [0xC0, 0x80, 0xFF])],
            .closedByClient),
        WireCase(
            "a code point in two fragments with a PING between",
            [.send([ClientFrame(1, [0xC3], isFinal: false), ClientFrame(9), ClientFrame(0, [0xA4])].flatMap(\.bytes), inPiecesOf: nil)],
            answers: [.pong(), .text("ä")], .closedByClient),
    ]

    /// Messages at and above a server's limit, whole and in fragments of every size.
    package static func limits(messageBytesMax: Int) -> [WireCase] {
        let most = [UInt8](repeating: UInt8(ascii: "*"), count: messageBytesMax)
        let more = most + [42]
        var cases = [
            WireCase("at the bound", [.send(ClientFrame(1, most).bytes, inPiecesOf: nil)], answers: [WireFrame(1, most)], .closedByClient),
            failed("beyond the bound", [ClientFrame(1, more)], code: 1009),
            failed("binary beyond the bound", [ClientFrame(2, more)], code: 1009),
            failedByHeader("beyond the bound, header only", ClientFrame(1, more), code: 1009),
            WireCase(
                "at the bound, in pieces", [.send(ClientFrame(1, most).bytes, inPiecesOf: 61)], answers: [WireFrame(1, most)],
                .closedByClient),
        ]
        for count in [64, 256, 1024, 4096] {
            let (fitting, tooMuch) = (AutobahnCases.fragments(of: most, count: count), AutobahnCases.fragments(of: more, count: count))
            cases.append(
                WireCase(
                    "at the bound by \(count)", [.send(fitting.flatMap { $0 }, inPiecesOf: nil)], answers: [WireFrame(1, most)],
                    .closedByClient))
            cases.append(WireCase("beyond the bound by \(count)", [.send(tooMuch.flatMap { $0 }, inPiecesOf: nil)], .failed([1009])))
        }
        return cases
    }
}
