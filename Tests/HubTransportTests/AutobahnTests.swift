import HubCore
import Testing

@testable import HubTransport

/// The cases of the Autobahn testsuite's fuzzing client that end in a close, section by section, against a loop that echoes. Its
/// yardstick for a failed connection is RFC 6455, 7.1.7: nothing of what follows the mistake is answered, a close frame that comes
/// says 1002, and the TCP connection ends.
///
/// Cases of plain messages, PINGs and close codes stand in `MessageTests` and `CloseTests`; compression (12, 13) is not negotiated. Two
/// sections cannot be met by a library that is used as it is: frames without a mask are served (5.1 of the RFC; no case of Autobahn's),
/// and text that is no UTF-8 (6.3 to 6.22) is answered by the layer above with an error of the Pusher protocol, on a connection that stays.
@Suite("Autobahn cases", .blocking)
struct AutobahnTests {
    /// One case: what is sent, what may come back, and how it ends.
    struct Case: CustomTestStringConvertible, Sendable {
        enum End: Sendable {
            /// The connection is failed. Of the answers to what came before the mistake a beginning may arrive.
            case failed
            /// All the answers, then this code; nil: a close frame without one.
            case closed(Int?)
        }

        let number: String
        let frames: [[UInt8]]
        let answers: [ReceivedFrame]
        let end: End
        /// Sends byte by byte, as the cases "in octet-wise chops" do.
        var isChopped = false

        var testDescription: String { isChopped ? "\(number) in octets" : number }

        var chopped: Case {
            var copy = self
            copy.isChopped = true
            return copy
        }
    }

    private static func frame(_ first: UInt8, _ payload: String = "") -> [UInt8] {
        var bytes = TestPeer.frame(first & 15, Array(payload.utf8))
        bytes[0] = first
        return bytes
    }

    private static func text(_ payload: String) -> [UInt8] { frame(0x81, payload) }
    private static func ping(_ payload: String = "") -> [UInt8] { frame(0x89, payload) }
    private static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] { TestPeer.frame(8, [UInt8(code >> 8), UInt8(code & 255)] + reason) }
    private static func echo(_ payload: String) -> ReceivedFrame { ReceivedFrame(opcode: 1, payload: Array(payload.utf8)) }
    private static func pong(_ payload: String = "") -> ReceivedFrame { ReceivedFrame(opcode: 10, payload: Array(payload.utf8)) }

    private static let long = String(repeating: "*", count: 126)
    private static let hello = "Hello, world!"

    static let framing: [Case] = [
        Case(number: "2.5", frames: [ping(long)], answers: [], end: .failed),
        Case(number: "3.1", frames: [frame(0x91, hello)], answers: [], end: .failed),
        Case(number: "3.2", frames: [text(hello), frame(0xA1, hello), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "3.3", frames: [text(hello), frame(0xB1, hello), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "3.4", frames: [text(hello), frame(0xC1, hello), ping()], answers: [echo(hello)], end: .failed).chopped,
        Case(number: "3.5", frames: [frame(0xD2, hello)], answers: [], end: .failed),
        Case(number: "3.6", frames: [frame(0xE9, hello)], answers: [], end: .failed),
        Case(number: "3.7", frames: [frame(0xF8)], answers: [], end: .failed),
        Case(number: "4.1.1", frames: [frame(0x83)], answers: [], end: .failed),
        Case(number: "4.1.2", frames: [frame(0x84, "reserved")], answers: [], end: .failed),
        Case(number: "4.1.3", frames: [text(hello), frame(0x85), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "4.1.4", frames: [text(hello), frame(0x86, hello), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "4.1.5", frames: [text(hello), frame(0x87, hello), ping()], answers: [echo(hello)], end: .failed).chopped,
        Case(number: "4.2.1", frames: [frame(0x8B)], answers: [], end: .failed),
        Case(number: "4.2.2", frames: [frame(0x8C, "reserved")], answers: [], end: .failed),
        Case(number: "4.2.3", frames: [text(hello), frame(0x8D), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "4.2.4", frames: [text(hello), frame(0x8E, hello), ping()], answers: [echo(hello)], end: .failed),
        Case(number: "4.2.5", frames: [text(hello), frame(0x8F, hello), ping()], answers: [echo(hello)], end: .failed).chopped,
    ]

    static let fragmentation: [Case] = {
        let two = [frame(0x01, "fragment1"), frame(0x80, "fragment2")]
        let echoed = echo("fragment1fragment2")
        let withPings = [frame(0x01, "fragment1"), ping("ping"), frame(0x80, "fragment2")]
        var cases = [
            Case(number: "5.1", frames: [frame(0x09, "fragment1"), frame(0x80, "fragment2")], answers: [], end: .failed),
            Case(number: "5.2", frames: [frame(0x0A, "fragment1"), frame(0x80, "fragment2")], answers: [], end: .failed),
            Case(number: "5.3", frames: two + [close(1000)], answers: [echoed], end: .closed(1000)),
            Case(number: "5.6", frames: withPings + [close(1000)], answers: [pong("ping"), echoed], end: .closed(1000)),
            Case(number: "5.9", frames: [frame(0x80, "non-continuation"), text(hello)], answers: [], end: .failed),
            Case(number: "5.12", frames: [frame(0x00, "non-continuation"), text(hello)], answers: [], end: .failed),
            Case(number: "5.15", frames: two + [frame(0x00, "fragment3"), text("fragment4")], answers: [echoed], end: .failed),
            Case(number: "5.16", frames: [frame(0x00, "fragment1")] + two + [frame(0x00, "fragment1")] + two, answers: [], end: .failed),
            Case(number: "5.17", frames: [frame(0x80, "fragment1")] + two + [frame(0x80, "fragment1")] + two, answers: [], end: .failed),
            Case(number: "5.18", frames: [frame(0x01, "fragment1"), frame(0x81, "fragment2")], answers: [], end: .failed),
            Case(
                number: "5.19",
                frames: [
                    frame(0x01, "fragment1"), frame(0x00, "fragment2"), ping("pongme 1!"), frame(0x00, "fragment3"), ping("pongme 2!"),
                    frame(0x00, "fragment4"), frame(0x80, "fragment5"), close(1000),
                ], answers: [pong("pongme 1!"), pong("pongme 2!"), echo("fragment1fragment2fragment3fragment4fragment5")], end: .closed(1000)),
        ]
        // 5.5, 5.8, 5.11, 5.14 and 5.20 are those in octets.
        cases += ["5.3", "5.6", "5.9", "5.12", "5.19"].compactMap { number in cases.first { $0.number == number }?.chopped }
        return cases
    }()

    static let text: [Case] = {
        let words = "Hello-µ@ßöäüàá-UTF-8!!"
        let kosme: [UInt8] = [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE, 0xBC, 0xCE, 0xB5]
        let echoedKosme = ReceivedFrame(opcode: 1, payload: kosme)
        var octets: [[UInt8]] = []
        for (index, byte) in kosme.enumerated() { octets.append(TestPeer.frame(index == 0 ? 1 : 0, [byte], isFinal: index == kosme.count - 1)) }
        return [
            Case(number: "6.1.1", frames: [text(""), close(1000)], answers: [echo("")], end: .closed(1000)),
            Case(number: "6.1.2", frames: [frame(0x01), frame(0x00), frame(0x80), close(1000)], answers: [echo("")], end: .closed(1000)),
            Case(number: "6.1.3", frames: [frame(0x01), frame(0x00, "middle"), frame(0x80), close(1000)], answers: [echo("middle")], end: .closed(1000)),
            Case(number: "6.2.1", frames: [text(words), close(1000)], answers: [echo(words)], end: .closed(1000)),
            Case(number: "6.2.3", frames: [text(words), close(1000)], answers: [echo(words)], end: .closed(1000)).chopped,
            Case(number: "6.2.4", frames: octets + [close(1000)], answers: [echoedKosme], end: .closed(1000)),
            Case(number: "6.5.1", frames: [TestPeer.frame(1, kosme), close(1000)], answers: [echoedKosme], end: .closed(1000)),
            Case(number: "6.22.34", frames: [TestPeer.frame(1, [0xEF, 0xBF, 0xBD]), close(1000)], answers: [echo("\u{FFFD}")], end: .closed(1000)),
        ]
    }()

    static let closing: [Case] = [
        Case(number: "7.1.1", frames: [text(hello), close(1000)], answers: [echo(hello)], end: .closed(1000)),
        Case(number: "7.1.2", frames: [close(1000), close(1000)], answers: [], end: .closed(1000)),
        Case(number: "7.1.3", frames: [close(1000), ping()], answers: [], end: .closed(1000)),
        Case(number: "7.1.4", frames: [close(1000), text(hello)], answers: [], end: .closed(1000)),
        Case(number: "7.1.5", frames: [frame(0x01, "fragment1"), close(1000), frame(0x80, "fragment2")], answers: [], end: .closed(1000)),
        Case(number: "7.3.1", frames: [frame(0x88)], answers: [], end: .closed(nil)),
        Case(number: "7.3.2", frames: [TestPeer.frame(8, [97])], answers: [], end: .failed),
        Case(number: "7.3.5", frames: [close(1000, [UInt8](repeating: 42, count: 123))], answers: [], end: .closed(1000)),
        Case(number: "7.3.6", frames: [close(1000, [UInt8](repeating: 42, count: 124))], answers: [], end: .failed),
        Case(number: "7.5.1", frames: [close(1000, [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xED, 0xA0, 0x80, 0x65])], answers: [], end: .failed),
    ]

    /// Section 9 within our bound for messages: sizes on both sides of it, whole and in fragments of every size.
    static let limits: [Case] = {
        let most = String(repeating: "*", count: LoopOptions().messageBytesMax)
        func fragments(_ count: Int, of whole: String) -> [[UInt8]] {
            var (frames, rest): ([[UInt8]], Substring) = ([], whole[...])
            while !rest.isEmpty {
                let piece = rest.prefix(count)
                rest = rest.dropFirst(count)
                frames.append(frame((frames.isEmpty ? 0x01 : 0x00) | (rest.isEmpty ? 0x80 : 0x00), String(piece)))
            }
            return frames
        }
        var cases = [
            Case(number: "9.1 at the bound", frames: [text(most), close(1000)], answers: [echo(most)], end: .closed(1000)),
            Case(number: "9.1 beyond it", frames: [text(most + "*")], answers: [], end: .closed(1009)),
            Case(number: "9.5", frames: [text(most), close(1000)], answers: [echo(most)], end: .closed(1000)).chopped,
        ]
        for count in [64, 256, 1024, 4096] {
            cases.append(Case(number: "9.3 by \(count)", frames: fragments(count, of: most) + [close(1000)], answers: [echo(most)], end: .closed(1000)))
            cases.append(Case(number: "9.3 by \(count), beyond", frames: fragments(count, of: most + "*"), answers: [], end: .closed(1009)))
        }
        return cases
    }()

    /// Who has been closed already may meet a reset: what counts is what was answered until then.
    private static func send(_ frames: [[UInt8]], isChopped: Bool, to peer: TestPeer) {
        let bytes = frames.flatMap { $0 }
        if !isChopped { return _ = try? peer.stream.send(bytes) }
        for byte in bytes { guard (try? peer.stream.send([byte])) != nil else { break } }
    }

    @Test("ends as the RFC wants it", arguments: framing + fragmentation + text + closing + limits)
    func ends(item: Case) throws {
        try withServer { server in
            let bystander = try server.client()
            let peer = try server.client()
            var answers: [ReceivedFrame] = []
            var frames = item.frames
            // A client that closes has read the answers: a PONG need not be sent any more once its peer has closed (5.5.2).
            if case .closed(1000) = item.end, !item.answers.isEmpty {
                let last = frames.removeLast()
                for frame in frames {
                    Self.send([frame], isChopped: item.isChopped, to: peer)
                    // Who sends the next PING before this one is answered may get one PONG for both.
                    if frame[0] & 15 == 9 { answers.append(try peer.frame()) }
                }
                while answers.count < item.answers.count { answers.append(try peer.frame()) }
                frames = [last]
            }
            Self.send(frames, isChopped: item.isChopped, to: peer)
            var closeFrame: ReceivedFrame?
            while let next = try peer.nextFrame() {
                #expect(closeFrame == nil, "\(next) behind the close frame")
                if next.opcode == 8 {
                    closeFrame = next
                    if case .closed(1009) = item.end { try? peer.sendClose(1009) }
                } else {
                    answers.append(next)
                }
            }
            switch item.end {
            case .failed:
                #expect(item.answers.starts(with: answers), "\(answers)")
                if let closeFrame { #expect([1002, 1007].contains(closeFrame.closeCode)) }
            case .closed(let code):
                #expect(answers == item.answers)
                #expect(closeFrame != nil && closeFrame?.closeCode == code, "\(String(describing: closeFrame))")
            }
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
            #expect(try eventually { try server.on { $0.connectionCount == 1 && $0.assemblies.isEmpty && $0.queues.isEmpty } })
        }
    }
}
