/// One conversation in WebSocket frames: the client's frames, the expected answers and the end (RFC 6455).
package struct WireCase: Sendable, CustomStringConvertible {
    /// One step of the client.
    package enum Step: Sendable {
        /// Sends bytes, in writes of `inPiecesOf` bytes each; nil: in one write.
        case send([UInt8], inPiecesOf: Int?)
        /// Waits for this total number of answers, or for the connection's end.
        case answers(Int)
        /// Waits a moment, during which the connection must stay open: nothing is wrong yet.
        case quiet
        /// Waits a moment, or for the connection's end: a strict server has detected the mistake.
        case moment
    }

    /// The expected end of the connection.
    package enum End: Sendable {
        /// All answers arrive, then the client closes with 1000 and the server does too.
        case closedByClient
        /// All answers arrive. The client's close frame is among the steps and is answered with one of these codes; nil: without a code.
        case closeAnswered([Int?])
        /// The server fails the connection with one of these codes. A prefix of the answers before the mistake arrives.
        case failed([Int])
        /// The server closes with one of these codes, or with the client's. A prefix of the answers arrives.
        case undefined([Int?])
    }

    /// The number in Autobahn's test suite, or a name if it has no such case.
    package let number: String
    package var steps: [Step]
    /// The server's answers when it echoes messages.
    package var answers: [WireFrame]
    package let end: End

    package init(_ number: String, _ steps: [Step], answers: [WireFrame] = [], _ end: End) {
        self.number = number
        self.steps = steps
        self.answers = answers
        self.end = end
    }

    package var description: String { number }

    /// The section of Autobahn's test suite; 0 for other cases.
    package var section: Int { Int(number.prefix { $0 != "." }) ?? 0 }

    /// Whether the case passes without an application that echoes messages.
    package var needsNoEcho: Bool {
        switch end {
        case .failed, .undefined: true
        case .closedByClient, .closeAnswered: answers.allSatisfy(\.isControl)
        }
    }

    /// Whether the case ends with a mistake, or with a close frame sent by the client.
    package var isAboutClosing: Bool {
        if case .closedByClient = end { false } else { true }
    }

    /// The same bytes, in writes of `count` each.
    package func inPieces(of count: Int, named name: String) -> WireCase {
        let steps = steps.map { step in
            if case .send(let bytes, _) = step { Step.send(bytes, inPiecesOf: count) } else { step }
        }
        return WireCase(name, steps, answers: answers, end)
    }
}

/// A whole frame from a server.
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
    /// The code of a close frame; nil if it has none.
    package var closeCode: Int? { payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
}

/// A client's frame as bytes, valid or not (RFC 6455, 5.2).
package struct ClientFrame {
    /// The encoding of the payload's length.
    package enum Length {
        /// The shortest form, which the RFC requires.
        case minimal
        case twoBytes
        case eightBytes
        /// A false length in eight bytes.
        case claimed(UInt64)
    }

    package var opcode: UInt8
    package var payload: [UInt8] = []
    package var isFinal = true
    /// The reserved bits: RSV1 is 4, RSV3 is 1.
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

    /// The whole frame.
    package var bytes: [UInt8] {
        guard isMasked else { return header + payload }
        return header + payload.enumerated().map { $0.element ^ Self.key[$0.offset & 3] }
    }

    /// A close frame.
    package static func close(_ code: Int?, _ reason: [UInt8] = []) -> ClientFrame {
        ClientFrame(8, (code.map { [UInt8($0 >> 8), UInt8($0 & 255)] } ?? []) + reason)
    }
}
