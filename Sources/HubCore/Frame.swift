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

    /// Where the first frame ends that ends at `count` or behind it; `frames` are whole frames of a server, joined. Takes time in
    /// proportion to the frames before that place.
    package static func boundary(in frames: UnsafeRawBufferPointer, atOrBehind count: Int) -> Int {
        var end = 0
        while end < count {
            let head = unsafe UnsafeRawBufferPointer(rebasing: frames[end...])
            guard head.count >= 2 else { return frames.count }
            var length = unsafe Int(head[1])
            var headerByteCount = 2
            if length >= 126 {
                headerByteCount = length == 126 ? 4 : headerBytesMax
                guard head.count >= headerByteCount else { return frames.count }
                length = 0
                for index in 2..<headerByteCount { length = unsafe length << 8 | Int(head[index]) }
            }
            guard length >= 0, length <= head.count - headerByteCount else { return frames.count }
            end += headerByteCount + length
        }
        return end
    }

    /// What stands before a payload of so many bytes.
    package static func appendHeader(payloadByteCount count: Int, to output: inout [UInt8]) {
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
