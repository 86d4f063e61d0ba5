/// WebSocket framing of what the server sends (RFC 6455, 5.2): unmasked, never fragmented, so the bytes are the same for
/// every subscriber and are made once.
package enum Frame {
    /// The longest header of an unmasked frame, in bytes.
    package static let headerBytesMax = 10

    /// One text frame around `payload`.
    package static func text(_ payload: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(payload.count + headerBytesMax)
        appendHeader(payloadByteCount: payload.count, to: &output)
        output += payload
        return output
    }

    /// The payload of a frame that `text` made.
    package static func payload(of frame: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard frame.count >= 2 else { return unsafe UnsafeRawBufferPointer(rebasing: frame[frame.endIndex...]) }
        let headerByteCount =
            switch unsafe frame[1] {
            case 126: 4
            case 127: headerBytesMax
            default: 2
            }
        return unsafe UnsafeRawBufferPointer(rebasing: frame.dropFirst(headerByteCount))
    }

    private static func appendHeader(payloadByteCount count: Int, to output: inout [UInt8]) {
        output.append(0x81)
        if count < 126 {
            output.append(UInt8(count))
        } else if count <= 0xFFFF {
            output.append(126)
            output.append(UInt8(count >> 8))
            output.append(UInt8(count & 0xFF))
        } else {
            output.append(127)
            for shift in stride(from: 56, through: 0, by: -8) { output.append(UInt8(truncatingIfNeeded: count >> shift)) }
        }
    }
}
