package import HubCore

/// The head of one HTTP/1.x request: read strictly (RFC 9112, 2 to 7), so that no two readers of the same bytes can disagree.
package struct RequestHead: Sendable {
    /// The request as the API sees it, its body empty.
    package var request: HTTPRequest
    /// The delimitation of the body that follows.
    package let framing: BodyFraming
    /// The connection may serve another request after this one.
    package let isPersistent: Bool
    /// The peer speaks HTTP/1.0 and needs a header that says that the connection stays open.
    package let isOld: Bool
    /// The peer waits for `100 Continue` before it sends the body.
    package let expectsContinue: Bool
    /// The request asks for a WebSocket.
    package let upgrade: UpgradeOffer?

    /// The result of reading the first bytes of a request.
    package enum Progress {
        /// More bytes are needed; the first `scanned` bytes hold no end of a head.
        case incomplete(scanned: Int)
        /// A whole head, and its length.
        case complete(RequestHead, bytes: Int)
        case refused(HeadRefusal)
    }

    /// The longest head, in bytes. Some proxies add more than 4 KB.
    package static let bytesMax = 16_384

    /// Reads a head.
    /// - Parameters:
    ///   - bytes: the bytes received, from the request's first byte on.
    ///   - scanned: how many of these an earlier call has scanned.
    package static func read(_ bytes: UnsafeRawBufferPointer, scanned: Int = 0) -> Progress {
        var memory = HeadMemory()
        return unsafe read(bytes, scanned: scanned, memory: &memory)
    }

    /// As above.
    /// - Parameter memory: fields of heads before this one. The result is the same with any.
    package static func read(_ bytes: UnsafeRawBufferPointer, scanned: Int, memory: inout HeadMemory) -> Progress {
        assert(scanned >= 0 && scanned <= bytes.count, "\(scanned) of \(bytes.count) bytes were scanned")
        guard let first = unsafe bytes.first else { return .incomplete(scanned: 0) }
        guard isToken(first) || first == carriageReturn || first == lineFeedByte else {
            return .refused(
                first == tlsHandshake
                    ? HeadRefusal(400, "this port speaks HTTP without TLS: use http:// or ws://")
                    : HeadRefusal(400, "a request begins with its method"))
        }
        if scanned == 0, let known = unsafe readKnown(bytes, &memory) { return known }
        // Empty lines before a request are skipped (RFC 9112, 2.2).
        let begin = unsafe bytes.firstIndex { $0 != carriageReturn && $0 != lineFeedByte } ?? bytes.count
        let hasEmptyLines = (0..<begin).allSatisfy { unsafe bytes[$0] == ($0 % 2 == 0 ? carriageReturn : lineFeedByte) }
        guard hasEmptyLines, begin % 2 == 0 || begin == bytes.count else {
            return .refused(HeadRefusal(400, "lines of a request's head end with CR and LF"))
        }
        var scan = scanned
        while let lineFeed = unsafe bytes.place(of: lineFeedByte, from: scan) {
            guard lineFeed > 0, unsafe bytes[lineFeed - 1] == carriageReturn else {
                return .refused(HeadRefusal(400, "lines of a request's head end with CR and LF"))
            }
            if lineFeed > begin, unsafe bytes[lineFeed - 2] == lineFeedByte {
                guard lineFeed < bytesMax else { break }
                do throws(HeadRefusal) {
                    let head = try unsafe HeadParser(UnsafeRawBufferPointer(rebasing: bytes[begin...lineFeed])).read(&memory)
                    return .complete(head, bytes: lineFeed + 1)
                } catch {
                    return .refused(error)
                }
            }
            scan = lineFeed + 1
        }
        if bytes.count >= bytesMax { return .refused(HeadRefusal(431, "the request's head may have at most \(bytesMax) bytes")) }
        assert(scan >= scanned && scan <= bytes.count, "the scan went from byte \(scanned) to \(scan) of \(bytes.count)")
        return .incomplete(scanned: scan)
    }

    /// Reads a head whose fields are known. Nil: they are not, or something about the head needs all of its lines.
    private static func readKnown(_ bytes: UnsafeRawBufferPointer, _ memory: inout HeadMemory) -> Progress? {
        guard let lineFeed = unsafe bytes.place(of: lineFeedByte), let (meaning, count) = unsafe memory.recall(bytes, at: lineFeed + 1),
            lineFeed + count < bytesMax
        else { return nil }
        let whole = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<(lineFeed + 1 + count)])
        guard let head = try? unsafe HeadParser(whole).read(meaning, lineBytes: lineFeed + 1, &memory.room) else { return nil }
        return .complete(head, bytes: whole.count)
    }

    static let carriageReturn = UInt8(ascii: "\r")
    static let lineFeedByte = UInt8(ascii: "\n")
    /// The first byte of a TLS record with a handshake.
    private static let tlsHandshake: UInt8 = 22

    /// RFC 9110, 5.6.2.
    static func isToken(_ byte: UInt8) -> Bool {
        let bits = byte < 64 ? lowTokens : byte < 128 ? highTokens : 0
        return bits >> UInt64(byte & 63) & 1 != 0
    }

    /// A bit for each byte from 0 to 63: `!` `#` to `'` `*` `+` `-` `.` `0` to `9`.
    /// A bit set, because every byte of a name is checked.
    private static let lowTokens: UInt64 = 0x03FF_6CFA_0000_0000
    /// The same from 64 to 127: `A` to `Z` `^` `_` `` ` `` `a` to `z` `|` `~`.
    private static let highTokens: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}
