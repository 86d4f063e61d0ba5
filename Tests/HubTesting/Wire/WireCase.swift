/// One conversation in WebSocket frames: what a client sends, what has to come back, and how it ends (RFC 6455).
package struct WireCase: Sendable, CustomStringConvertible {
    package enum Step: Sendable {
        /// Bytes, in writes of so many each; nil: all in one.
        case send([UInt8], inPiecesOf: Int?)
        /// Goes on when so many answers have come in all, or the connection is closed.
        case answers(Int)
        /// Goes on after a moment, in which the connection may not be closed: nothing is wrong yet.
        case quiet
        /// Goes on after a moment, or when the connection is closed: a strict server has noticed the mistake.
        case moment
    }

    package enum End: Sendable {
        /// All the answers come, the client closes with 1000, and so does the server.
        case closedByClient
        /// All the answers come; the client's close frame is among the steps, and is answered with one of these codes. Nil: without any.
        case closeAnswered([Int?])
        /// The server fails the connection with one of these codes. Of the answers to what came before the mistake, a beginning comes.
        case failed([Int])
        /// The server closes with one of these codes, or with the code of the client's close frame. A beginning of the answers comes.
        case undefined([Int?])
    }

    /// The number of Autobahn's test suite, or a name where it has no such case.
    package let number: String
    package var steps: [Step]
    /// What the server has to answer when it echoes messages.
    package var answers: [WireFrame]
    package let end: End

    package init(_ number: String, _ steps: [Step], answers: [WireFrame] = [], _ end: End) {
        self.number = number
        self.steps = steps
        self.answers = answers
        self.end = end
    }

    package var description: String { number }

    package var section: Int { Int(number.prefix { $0 != "." }) ?? 0 }

    /// The application need not echo a message for the case to pass.
    package var needsNoEcho: Bool {
        switch end {
        case .failed, .undefined: true
        case .closedByClient, .closeAnswered: answers.allSatisfy(\.isControl)
        }
    }

    /// The case ends with a mistake, or with a close frame that the client sends on its own.
    package var isAboutClosing: Bool {
        if case .closedByClient = end { false } else { true }
    }

    /// The same bytes, in writes of so many each.
    package func inPieces(of count: Int, named name: String) -> WireCase {
        let steps = steps.map { step in
            if case .send(let bytes, _) = step { Step.send(bytes, inPiecesOf: count) } else { step }
        }
        return WireCase(name, steps, answers: answers, end)
    }
}

/// A frame as a server sends it, whole.
package struct WireFrame: Sendable, Equatable {
    package let opcode: UInt8
    package let payload: [UInt8]

    package init(_ opcode: UInt8, _ payload: [UInt8]) {
        self.opcode = opcode
        self.payload = payload
    }

    package static func text(_ payload: String) -> WireFrame { WireFrame(1, Array(payload.utf8)) }
    package static func pong(_ payload: String = "") -> WireFrame { WireFrame(10, Array(payload.utf8)) }

    package var isControl: Bool { opcode >= 8 }
    /// Of a close frame; nil when it has none.
    package var closeCode: Int? { payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
}

/// A frame of a client, as bytes, legal or not (RFC 6455, 5.2).
package struct ClientFrame {
    package enum Length {
        /// The shortest form, as the RFC wants it.
        case minimal
        case twoBytes
        case eightBytes
        /// In eight bytes, whatever the payload's is.
        case claimed(UInt64)
    }

    package var opcode: UInt8
    package var payload: [UInt8] = []
    package var isFinal = true
    /// RSV1 is 4, RSV3 is 1.
    package var reserved: UInt8 = 0
    package var isMasked = true
    package var length = Length.minimal

    package init(
        _ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reserved: UInt8 = 0, isMasked: Bool = true,
        length: Length = .minimal
    ) {
        self.opcode = opcode
        self.payload = payload
        self.isFinal = isFinal
        self.reserved = reserved
        self.isMasked = isMasked
        self.length = length
    }

    private static let key: [UInt8] = [0x37, 0x00, 0xC5, 0x8E]

    /// The header, with the masking key.
    package var header: [UInt8] {
        let count = payload.count
        let mask: UInt8 = isMasked ? 0x80 : 0
        var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
        func bigEndian(_ value: UInt64, _ byteCount: Int) -> [UInt8] {
            (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
        }
        switch length {
        case .minimal where count < 126: bytes.append(mask | UInt8(count))
        case .minimal where count <= 0xFFFF, .twoBytes: bytes += [mask | 126] + bigEndian(UInt64(count), 2)
        case .minimal, .eightBytes: bytes += [mask | 127] + bigEndian(UInt64(count), 8)
        case .claimed(let claim): bytes += [mask | 127] + bigEndian(claim, 8)
        }
        return isMasked ? bytes + Self.key : bytes
    }

    package var bytes: [UInt8] {
        guard isMasked else { return header + payload }
        return header + payload.enumerated().map { $0.element ^ Self.key[$0.offset & 3] }
    }

    /// A close frame.
    package static func close(_ code: Int?, _ reason: [UInt8] = []) -> ClientFrame {
        ClientFrame(8, (code.map { [UInt8($0 >> 8), UInt8($0 & 255)] } ?? []) + reason)
    }
}
