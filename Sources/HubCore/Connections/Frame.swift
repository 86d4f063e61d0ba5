/// WebSocket framing of the server's messages (RFC 6455, 5.2). Frames are unmasked and never fragmented, so the same
/// bytes serve every subscriber.
package enum Frame {
    /// The longest header of an unmasked frame, in bytes.
    package static let headerBytesMax = 10

    /// One text frame around `payload`.
    package static func text(_ payload: [UInt8]) -> [UInt8] { text(payloadBytes: payload.count) { $0.write(payload) } }

    /// One text frame around three pieces of a payload.
    package static func text(_ head: UnsafeRawBufferPointer, _ middle: String, _ tail: UnsafeRawBufferPointer) -> [UInt8] {
        text(payloadBytes: head.count + middle.utf8.count + tail.count) { frame in
            unsafe frame.write(head)
            frame.write(text: middle)
            unsafe frame.write(tail)
        }
    }

    /// One text frame around a payload of known length. Another length stops the program.
    package static func text(payloadBytes count: Int, _ write: (inout ByteRoom) -> Void) -> [UInt8] {
        let bytes = headerBytes(payloadByteCount: count) + count
        // Copied from the stack: an array of zeros looks its type up at run time, and one that grows does so for each piece.
        let output = unsafe withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 1) { room in
            var frame = unsafe ByteRoom(room)
            unsafe frame.write { unsafe writeHeader(payloadByteCount: count, to: $0) }
            write(&frame)
            precondition(frame.count == bytes, "\(frame.count) of the \(bytes) bytes of a frame were written")
            return unsafe Array(room)
        }
        assert(areWhole(output), "a payload of \(count) bytes made \(output.count) bytes that are no frame")
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

    /// The first frame boundary at or after `count` bytes. `frames` holds whole server frames, joined. The time is
    /// linear in the number of frames before the boundary.
    package static func boundary(in frames: UnsafeRawBufferPointer, atOrBehind count: Int) -> Int {
        assert(count >= 0 && count <= frames.count, "a boundary behind byte \(count) of \(frames.count)")
        var end = 0
        while end < count {
            guard let length = unsafe length(ofFirstFrameIn: UnsafeRawBufferPointer(rebasing: frames[end...])) else { return frames.count }
            end += length
        }
        return end
    }

    /// Whether the bytes are server frames from the first to the last. The time is linear in the number of frames.
    package static func areWhole(_ frames: UnsafeRawBufferPointer) -> Bool {
        var rest = unsafe frames
        while rest.count > 0 {
            guard let length = unsafe length(ofFirstFrameIn: rest) else { return false }
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[length...])
        }
        return true
    }

    private static func areWhole(_ frames: [UInt8]) -> Bool { unsafe frames.withUnsafeBytes { unsafe areWhole($0) } }

    /// Bytes of the first frame, header included; nil when its end is missing.
    private static func length(ofFirstFrameIn bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= 2 else { return nil }
        var length = unsafe Int(bytes[1])
        var headerByteCount = 2
        if length >= 126 {
            headerByteCount = length == 126 ? 4 : headerBytesMax
            guard bytes.count >= headerByteCount else { return nil }
            length = 0
            for index in 2..<headerByteCount { length = unsafe length << 8 | Int(bytes[index]) }
        }
        return length >= 0 && length <= bytes.count - headerByteCount ? headerByteCount + length : nil
    }

    /// Bytes of the header of a frame with a payload of `count` bytes.
    private static func headerBytes(payloadByteCount count: Int) -> Int { count < 126 ? 2 : count <= 0xFFFF ? 4 : headerBytesMax }

    /// Writes the header.
    /// - Returns: the header's length in bytes.
    private static func writeHeader(payloadByteCount count: Int, to output: UnsafeMutableRawBufferPointer) -> Int {
        assert(count >= 0 && output.count >= headerBytes(payloadByteCount: count), "a header for \(count) bytes in \(output.count) bytes")
        unsafe output[0] = 0x81
        if count < 126 {
            unsafe output[1] = UInt8(count)
            return 2
        }
        let byteCount = count <= 0xFFFF ? 2 : 8
        unsafe output[1] = byteCount == 2 ? 126 : 127
        for index in 0..<byteCount { unsafe output[2 + index] = UInt8(truncatingIfNeeded: count >> (8 * (byteCount - 1 - index))) }
        return 2 + byteCount
    }
}
