/// The head of one server frame (RFC 6455, 5.2); the payload stays in the buffer.
package struct WebSocketFrame: Equatable, Sendable {
    package enum Opcode {
        package static let continuation: UInt8 = 0
        package static let text: UInt8 = 1
        package static let binary: UInt8 = 2
        package static let close: UInt8 = 8
        package static let ping: UInt8 = 9
        package static let pong: UInt8 = 10
    }

    package enum Reading: Equatable, Sendable {
        /// Part of the frame has not arrived.
        case incomplete
        case frame(WebSocketFrame)
        /// A frame that no server may send, with the reason.
        case malformed(String)
    }

    package var opcode: UInt8
    package var isFinal: Bool
    package var headCount: Int
    package var payloadCount: Int

    package init(opcode: UInt8, isFinal: Bool, headCount: Int, payloadCount: Int) {
        self.opcode = opcode
        self.isFinal = isFinal
        self.headCount = headCount
        self.payloadCount = payloadCount
    }

    /// Longer payloads end the connection; measured ones are far shorter.
    package static let payloadBytesMax = 16 << 20
    private static let controlBytesMax = 125

    /// Parses the frame at the first byte; `.frame` only if its payload is complete.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Reading {
        guard bytes.count >= 2 else { return .incomplete }
        let first = unsafe bytes[0]
        let second = unsafe bytes[1]
        guard first & 0x70 == 0 else { return .malformed("reserved bits are set, though no extension was agreed on") }
        guard second & 0x80 == 0 else { return .malformed("a server's frame is masked") }
        let opcode = first & 15
        let isFinal = first & 0x80 != 0
        var count = Int(second & 127)
        var head = 2
        if count >= 126 {
            let width = count == 126 ? 2 : 8
            head += width
            guard bytes.count >= head else { return .incomplete }
            var long: UInt64 = 0
            for place in 2..<head { unsafe long = long << 8 | UInt64(bytes[place]) }
            guard long <= UInt64(payloadBytesMax) else { return .malformed("a frame has \(long) bytes") }
            count = Int(long)
        }
        if opcode >= Opcode.close, count > controlBytesMax || !isFinal { return .malformed("a control frame is long or in pieces") }
        guard bytes.count - head >= count else { return .incomplete }
        return .frame(WebSocketFrame(opcode: opcode, isFinal: isFinal, headCount: head, payloadCount: count))
    }

    /// The same for an array, for tests.
    package static func read(_ bytes: [UInt8]) -> Reading { unsafe bytes.withUnsafeBytes { unsafe read($0) } }

    /// Any fixed key suffices: masks protect proxies from hostile pages, and there are none between tester and server.
    private static let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    /// A whole masked client frame.
    package static func masked(opcode: UInt8, _ payload: some Collection<UInt8>) -> [UInt8] {
        var frame: [UInt8] = [0x80 | opcode]
        let count = payload.count
        frame.reserveCapacity(count + 14)
        if count < 126 {
            frame.append(0x80 | UInt8(count))
        } else {
            let width = count < 65536 ? 2 : 8
            frame.append(width == 2 ? 0xFE : 0xFF)
            for place in stride(from: (width - 1) * 8, through: 0, by: -8) { frame.append(UInt8(truncatingIfNeeded: count >> place)) }
        }
        frame.append(contentsOf: mask)
        var place = 0
        for byte in payload {
            frame.append(byte ^ mask[place & 3])
            place += 1
        }
        return frame
    }
}
