/// Close frames (RFC 6455, 5.5.1 and 7.4).
package enum CloseFrame {
    /// The longest payload of a control frame, in bytes (RFC 6455, 5.5).
    package static let payloadBytesMax = 125
    /// A peer's code for "no code was sent" (RFC 6455, 7.1.5); never on the wire.
    package static let noCode: UInt16 = 1005

    /// The meaning of a peer's close frame.
    package enum Verdict: Equatable, Sendable {
        /// The peer ends the connection; `noCode` without a code.
        case valid(code: UInt16)
        /// The frame breaks the protocol and is answered with this code.
        case failure(Violation)
    }

    /// Judges the payload of a peer's close frame.
    package static func judge(_ payload: UnsafeRawBufferPointer) -> Verdict {
        if payload.count == 0 { return .valid(code: noCode) }
        guard payload.count >= 2 else { return .failure(.protocolError("a close frame has a code of two bytes or nothing")) }
        let code = unsafe UInt16(payload[0]) << 8 | UInt16(payload[1])
        guard isAllowed(code) else { return .failure(.protocolError("this close code may not be sent")) }
        guard unsafe UTF8Check.isText(UnsafeRawBufferPointer(rebasing: payload[2...])) else { return .failure(.notText) }
        return .valid(code: code)
    }

    /// Codes that may stand in a frame (RFC 6455, 7.4.1 and 7.4.2, and IANA's registry).
    private static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// A whole close frame of a server. The reason is cut between characters to fit.
    package static func bytes(code: UInt16, reason: String) -> [UInt8] {
        assert(isAllowed(code), "close code \(code) may not stand in a frame")
        var text = reason
        while text.utf8.count > payloadBytesMax - 2 { text.removeLast() }
        return [0x88, UInt8(2 + text.utf8.count), UInt8(code >> 8), UInt8(code & 0xFF)] + Array(text.utf8)
    }

    /// The answer to a valid close frame: the same code.
    package static func echo(of code: UInt16) -> [UInt8] {
        assert(code == noCode || isAllowed(code), "close code \(code) was never judged valid")
        return code == noCode ? [0x88, 0] : [0x88, 2, UInt8(code >> 8), UInt8(code & 0xFF)]
    }
}

/// A peer's breach of RFC 6455: the close code, and a sentence for the close frame's reason.
package struct Violation: Error, Equatable, Sendable {
    /// The close code: 1002 or 1007.
    package let code: UInt16
    /// A sentence for the peer's developer, at most 123 bytes of UTF-8.
    package let reason: String

    static func protocolError(_ reason: String) -> Violation { Violation(code: 1002, reason: reason) }
    /// RFC 6455, 8.1.
    static let notText = Violation(code: 1007, reason: "text has to be UTF-8")
}
