/// Reads one client's frames (RFC 6455, 5) from bytes that are cut at any place.
///
/// A pure value. Between two messages it holds nothing, so an idle connection needs no reader (`isIdle`). Frames
/// received whole are unmasked in place.
package struct FrameReader {
    /// The next item of the stream.
    package enum Event {
        /// A whole message. Text has been checked for UTF-8.
        case message(isBinary: Bool, Payload)
        /// A frame of an unfinished message.
        case fragment
        case ping(Payload)
        case pong(Payload)
        case close(Payload)
        /// The message exceeds the limit; its rest is skipped.
        case tooLong
        /// The peer broke the protocol; nothing more can be read.
        case violation(Violation)
    }

    /// The bytes of a message or a control frame: in the input buffer, or assembled.
    @safe package struct Payload {
        fileprivate let place: UnsafeRawBufferPointer
        fileprivate let assembled: [UInt8]?

        /// Lends the bytes, which are valid until the next call of `FrameReader.next`.
        package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
            if let assembled { try unsafe assembled.withUnsafeBytes(body) } else { try unsafe body(place) }
        }
    }

    /// The first bytes of a frame whose header is not complete.
    private var header: [UInt8] = []
    /// The frame whose payload is incomplete.
    private var frame: Frame?
    /// Payload of a control frame that came in part.
    private var control: [UInt8] = []
    /// The message being assembled.
    private var message: Message?

    private struct Frame {
        let opcode: UInt8
        let isFinal: Bool
        var remaining: Int
        /// The masking key; its lowest byte applies to the next payload byte.
        var key: UInt32
    }

    private struct Message {
        let isBinary: Bool
        var bytes: [UInt8] = []
        var text = UTF8Check()
        var isTooLong = false
    }

    /// A reader in front of a frame.
    package init() {}

    /// Whether the reader holds nothing and equals a new one.
    package var isIdle: Bool { header.isEmpty && frame == nil && message == nil }

    /// Bytes held of incomplete headers, control frames and messages.
    package var heldBytes: Int { header.count + control.count + (message?.bytes.count ?? 0) }

    /// The next event in the stream; nil when all of `input` is consumed and more is needed.
    /// - Parameters:
    ///   - input: the bytes received, unmasked in place; the call removes the consumed ones.
    ///   - messageBytesMax: the longest message, in bytes.
    package mutating func next(_ input: inout UnsafeMutableRawBufferPointer, messageBytesMax: Int) -> Event? {
        assert(isConsistent, "\(header.count) bytes of a header, \(control.count) of a control frame, frame \(String(describing: frame))")
        while true {
            if frame == nil {
                switch unsafe readHeader(&input) {
                case .incomplete: return nil
                case .violation(let violation): return .violation(violation)
                case .frame(let next):
                    if let violation = violation(of: next) { return .violation(violation) }
                    frame = next
                    if next.opcode < 8, let event = begin(next, messageBytesMax) { return event }
                }
            }
            guard var frame, frame.remaining == 0 || input.count > 0 else { return nil }
            let count = min(frame.remaining, input.count)
            let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: input[..<count])
            unsafe input = unsafe UnsafeMutableRawBufferPointer(rebasing: input[count...])
            unsafe Self.unmask(piece, &frame.key)
            frame.remaining -= count
            self.frame = frame.remaining == 0 ? nil : frame
            if let event = unsafe frame.opcode < 8 ? take(piece, of: frame) : takeControl(piece, of: frame) { return event }
        }
    }

    /// Whether the held pieces fit each other: half a header belongs to no frame, half a control frame to one that lacks bytes.
    private var isConsistent: Bool {
        let isHeaderOpen = header.isEmpty || frame == nil && header.count < Self.headerBytesMax
        let isFrameOpen = frame.map { $0.remaining > 0 } ?? true
        let isControlOpen =
            control.isEmpty || frame.map { $0.opcode >= 8 && control.count + $0.remaining <= CloseFrame.payloadBytesMax } ?? false
        return isHeaderOpen && isFrameOpen && isControlOpen && (message.map { !$0.isTooLong || $0.bytes.isEmpty } ?? true)
    }

    /// The longest header of a masked frame, in bytes.
    private static let headerBytesMax = 14
    // MARK: Headers

    private enum HeaderProgress {
        case incomplete
        case frame(Frame)
        case violation(Violation)
    }

    private mutating func readHeader(_ input: inout UnsafeMutableRawBufferPointer) -> HeaderProgress {
        if header.isEmpty {
            let (progress, used) = unsafe Self.parse(UnsafeRawBufferPointer(input))
            if case .incomplete = progress { unsafe header.append(contentsOf: input) }
            unsafe input = unsafe UnsafeMutableRawBufferPointer(rebasing: input[used...])
            return progress
        }
        while let byte = unsafe input.first {
            header.append(byte)
            unsafe input = unsafe UnsafeMutableRawBufferPointer(rebasing: input[1...])
            let (progress, _) = unsafe header.withUnsafeBytes { unsafe Self.parse($0) }
            if case .incomplete = progress { continue }
            header = []
            return progress
        }
        return .incomplete
    }

    /// Parses a header. `used` is the header's length, or all bytes of an incomplete one.
    private static func parse(_ bytes: UnsafeRawBufferPointer) -> (HeaderProgress, used: Int) {
        guard let first = unsafe bytes.first else { return (.incomplete, 0) }
        if first & 0x70 != 0 { return (.violation(.protocolError("reserved bits are set, but no extension was agreed")), bytes.count) }
        guard bytes.count >= 2 else { return (.incomplete, bytes.count) }
        let second = unsafe bytes[1]
        if second & 0x80 == 0 { return (.violation(.protocolError("a client's frames have to be masked")), bytes.count) }
        var length = UInt64(second & 0x7F)
        let lengthBytes = length == 126 ? 2 : length == 127 ? 8 : 0
        // Longer control frames are refused before the rest of their header arrives.
        if first & 8 != 0, lengthBytes > 0 {
            return (.violation(.protocolError("a control frame has at most \(CloseFrame.payloadBytesMax) bytes")), bytes.count)
        }
        let end = 2 + lengthBytes + 4
        guard bytes.count >= end else { return (.incomplete, bytes.count) }
        if lengthBytes > 0 {
            length = 0
            for index in 2..<2 + lengthBytes { length = unsafe length << 8 | UInt64(bytes[index]) }
            let least: UInt64 = lengthBytes == 2 ? 126 : 1 << 16
            guard length >= least, length <= UInt64(Int.max) else {
                return (.violation(.protocolError("a frame's length has to be below 2^63 and in its shortest form")), bytes.count)
            }
        }
        assert(end <= headerBytesMax && length <= UInt64(Int.max), "a header of \(end) bytes for \(length) bytes")
        let key = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: end - 4, as: UInt32.self))
        return (.frame(Frame(opcode: first & 15, isFinal: first & 0x80 != 0, remaining: Int(length), key: key)), end)
    }

    /// Rules about the order of frames, and about opcodes.
    private func violation(of frame: Frame) -> Violation? {
        switch frame.opcode {
        case 0: message == nil ? .protocolError("a continuation continues nothing") : nil
        case 1, 2: message != nil ? .protocolError("a message began inside of another") : nil
        case 8, 9, 10: frame.isFinal ? nil : .protocolError("a control frame may not be fragmented")
        default: .protocolError("the opcode is reserved")
        }
    }

    // MARK: Payloads

    /// Begins a data frame, whose length alone may exceed the limit.
    private mutating func begin(_ frame: Frame, _ messageBytesMax: Int) -> Event? {
        var message = self.message ?? Message(isBinary: frame.opcode == 2)
        defer { self.message = message }
        guard !message.isTooLong, frame.remaining > messageBytesMax - message.bytes.count else { return nil }
        message.isTooLong = true
        message.bytes = []
        return .tooLong
    }

    private mutating func take(_ piece: UnsafeMutableRawBufferPointer, of frame: Frame) -> Event? {
        guard var message else { return nil }
        let bytes = UnsafeRawBufferPointer(piece)
        let isEnd = frame.remaining == 0
        let isWhole = isEnd && frame.isFinal
        self.message = nil
        if !message.isTooLong {
            if !message.isBinary, unsafe !message.text.take(bytes) { return .violation(.notText) }
            if isWhole, !message.isBinary, !message.text.isComplete { return .violation(.notText) }
            if isWhole, message.bytes.isEmpty { return unsafe .message(isBinary: message.isBinary, Payload(place: bytes, assembled: nil)) }
            unsafe message.bytes.append(contentsOf: bytes)
            if isWhole {
                return unsafe .message(
                    isBinary: message.isBinary, Payload(place: UnsafeRawBufferPointer(start: nil, count: 0), assembled: message.bytes))
            }
        }
        if !isWhole { self.message = message }
        return isEnd && !isWhole ? .fragment : nil
    }

    private mutating func takeControl(_ piece: UnsafeMutableRawBufferPointer, of frame: Frame) -> Event? {
        let payload: Payload
        if frame.remaining == 0, control.isEmpty {
            payload = unsafe Payload(place: UnsafeRawBufferPointer(piece), assembled: nil)
        } else {
            unsafe control.append(contentsOf: piece)
            guard frame.remaining == 0 else { return nil }
            payload = unsafe Payload(place: UnsafeRawBufferPointer(start: nil, count: 0), assembled: control)
            control = []
        }
        switch frame.opcode {
        case 8: return .close(payload)
        case 9: return .ping(payload)
        default: return .pong(payload)
        }
    }

    private static func unmask(_ bytes: UnsafeMutableRawBufferPointer, _ key: inout UInt32) {
        guard key != 0 else { return }
        var index = 0
        let wide = UInt64(key) << 32 | UInt64(key)
        while index + 8 <= bytes.count {
            let word = unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ wide
            unsafe bytes.storeBytes(of: word.littleEndian, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < bytes.count {
            unsafe bytes[index] ^= UInt8(truncatingIfNeeded: key)
            key = key >> 8 | key << 24
            index += 1
        }
    }
}
