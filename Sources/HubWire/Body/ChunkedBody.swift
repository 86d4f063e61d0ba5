/// Decodes chunked transfer coding byte by byte (RFC 9112, 7.1). Chunk extensions and trailers are skipped under a
/// bound.
package struct ChunkedBody {
    /// The state of the body after the bytes received so far.
    package enum Progress { case incomplete, complete, malformed, tooLarge }

    private enum Phase { case size, extensions, sizeLineFeed, data, dataReturn, dataLineFeed, trailer, trailerLineFeed, done }

    private var phase = Phase.size
    private var remaining = 0
    private var digits = 0
    private var skippedBytes = 0
    private var trailerLineIsEmpty = true

    /// Most bytes of extensions and trailers, which are skipped; more of them are an attack.
    package static let skippedBytesMax = 4096

    /// A body of which nothing has arrived.
    package init() {}

    /// Takes the next bytes.
    /// - Parameters:
    ///   - bytes: the bytes received; after the call, the bytes after the body's end.
    ///   - body: gets the content.
    ///   - bodyBytesMax: the longest body, in bytes.
    package mutating func receive(_ bytes: inout UnsafeRawBufferPointer, into body: inout [UInt8], bodyBytesMax: Int) -> Progress {
        var index = 0
        let progress = unsafe receive(bytes, from: &index, into: &body, bodyBytesMax: bodyBytesMax)
        assert(index <= bytes.count, "\(index) of \(bytes.count) bytes were read")
        assert(isConsistent, "\(remaining) bytes of a chunk remain in phase \(phase)")
        assert(
            progress == .malformed || progress == .tooLarge || phase != .data || body.count + remaining <= bodyBytesMax,
            "a chunk of \(remaining) more bytes behind \(body.count) was let in, of \(bodyBytesMax)")
        unsafe bytes = unsafe UnsafeRawBufferPointer(rebasing: bytes[index...])
        return progress
    }

    /// Whether bytes of a chunk remain exactly while one is read. Eight digits of a size cannot overflow.
    private var isConsistent: Bool {
        switch phase {
        case .size, .extensions, .sizeLineFeed: remaining >= 0 && remaining <= Int(UInt32.max) && digits <= 9
        case .data: remaining > 0
        case .dataReturn, .dataLineFeed, .trailer, .trailerLineFeed, .done: remaining == 0
        }
    }
    private mutating func receive(
        _ bytes: UnsafeRawBufferPointer, from index: inout Int, into body: inout [UInt8], bodyBytesMax: Int
    ) -> Progress {
        while index < bytes.count {
            let byte = unsafe bytes[index]
            index += 1
            switch phase {
            case .size:
                if let digit = hexDigit(byte) {
                    digits += 1
                    guard digits <= 8 else { return .malformed }
                    remaining = remaining * 16 + digit
                } else if digits == 0 {
                    return .malformed
                } else if byte == UInt8(ascii: "\r") {
                    phase = .sizeLineFeed
                } else if byte == UInt8(ascii: ";") || byte == UInt8(ascii: " ") {
                    phase = .extensions
                } else {
                    return .malformed
                }
            case .extensions:
                skippedBytes += 1
                if skippedBytes > Self.skippedBytesMax { return .malformed }
                if byte == UInt8(ascii: "\r") { phase = .sizeLineFeed }
            case .sizeLineFeed:
                guard byte == UInt8(ascii: "\n") else { return .malformed }
                guard body.count + remaining <= bodyBytesMax else { return .tooLarge }
                phase = remaining == 0 ? .trailer : .data
                trailerLineIsEmpty = true
            case .data:
                let count = min(remaining, bytes.count - index + 1)
                unsafe body.append(contentsOf: bytes[index - 1..<index - 1 + count])
                index += count - 1
                remaining -= count
                if remaining == 0 { phase = .dataReturn }
            case .dataReturn:
                guard byte == UInt8(ascii: "\r") else { return .malformed }
                phase = .dataLineFeed
            case .dataLineFeed:
                guard byte == UInt8(ascii: "\n") else { return .malformed }
                phase = .size
                digits = 0
            case .trailer:
                if byte == UInt8(ascii: "\r") {
                    phase = .trailerLineFeed
                } else {
                    skippedBytes += 1
                    if skippedBytes > Self.skippedBytesMax { return .malformed }
                    trailerLineIsEmpty = false
                }
            case .trailerLineFeed:
                guard byte == UInt8(ascii: "\n") else { return .malformed }
                if trailerLineIsEmpty {
                    phase = .done
                    return .complete
                }
                trailerLineIsEmpty = true
                phase = .trailer
            case .done: return .complete
            }
        }
        return .incomplete
    }

    private func hexDigit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte) - 0x30
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte) - 0x57
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte) - 0x37
        default: nil
        }
    }
}
