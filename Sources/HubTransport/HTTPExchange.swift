internal import HubCore

/// One HTTP request on its way in: headers read, body growing under its bound, chunks joined.
///
/// libwebsockets does not undo chunked transfer coding, gives a POST without `Content-Length` a hundred megabytes, and reads
/// `Content-Length` with `atoll`; so all three are handled here.
final class HTTPExchange {
    enum Framing: Equatable {
        /// No body follows.
        case none
        case length(Int)
        case chunked
    }

    /// What one piece of body led to.
    enum Progress: Equatable {
        case incomplete
        case complete
        case refused(status: Int, sentence: String)
    }

    let serial: UInt64
    var request: HTTPRequest
    let framing: Framing
    private let bodyBytesMax: Int
    private var chunks = ChunkedBody()
    /// The request went to the delegate.
    var isDispatched = false
    /// The delegate has answered; a second answer is ignored.
    var isAnswered = false
    /// It is known that the body may come in pieces; see `LoopDelegate.bodyLimit`.
    var isJudged = false
    /// Its body's share of the bound of all unfinished ones.
    var charge: BodyCharge?
    /// The answer, when it came from outside a callback and waits for the connection to be writable.
    var response: HTTPResponse?
    /// The part of the answer that its reader has not taken.
    var pending: PendingAnswer?
    /// Set when nothing may follow on this connection.
    var mustClose: Bool { framing == .chunked || hasUnknownEnd || isRefused }
    /// The request's method has a body, and its head does not say how long that is.
    var hasUnknownEnd = false
    private(set) var isRefused = false
    /// The tick of the loop's clock at which the body has to be there; nil where none follows.
    var deadline: UInt32?
    /// The request was refused while its body was on the way: until this tick what still comes is thrown away, because a peer whose
    /// connection ends while it writes never reads the answer (RFC 9112, 9.6).
    var lingersUntil: UInt32?

    init(serial: UInt64, request: HTTPRequest, framing: Framing, bodyBytesMax: Int) {
        self.serial = serial
        self.request = request
        self.framing = framing
        self.bodyBytesMax = bodyBytesMax
    }

    /// How the body is delimited, or why the request cannot be read (RFC 9112, 6).
    static func framing(contentLength: String?, transferEncoding: String?, bodyBytesMax: Int) -> Result<Framing, Refusal> {
        if let transferEncoding {
            guard transferEncoding.lowercased() == "chunked", contentLength == nil else {
                return .failure(Refusal(status: 400, sentence: "Transfer-Encoding must be chunked and stand without Content-Length"))
            }
            return .success(.chunked)
        }
        guard let contentLength else { return .success(.none) }
        guard !contentLength.isEmpty, contentLength.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let length = Int(contentLength)
        else { return .failure(Refusal(status: 400, sentence: "Content-Length must be a decimal number")) }
        guard length <= bodyBytesMax else {
            return .failure(Refusal(status: 413, sentence: tooLong(bodyBytesMax)))
        }
        return .success(length == 0 ? .none : .length(length))
    }

    static func tooLong(_ bytesMax: Int) -> String { "the request body may have at most \(bytesMax) bytes" }

    struct Refusal: Error, Equatable {
        let status: Int
        let sentence: String
    }

    /// The connection ends behind this exchange's answer.
    func mustEnd() {
        isRefused = true
    }

    /// Takes the next bytes of the body.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Progress {
        guard !isDispatched else { return .incomplete }
        switch framing {
        case .none: return .complete
        case .length(let length):
            unsafe request.body.append(contentsOf: bytes.prefix(length - request.body.count))
            return request.body.count == length ? .complete : .incomplete
        case .chunked:
            switch unsafe chunks.receive(bytes, into: &request.body, bodyBytesMax: bodyBytesMax) {
            case .incomplete: return .incomplete
            case .complete: return .complete
            case .malformed:
                isRefused = true
                return .refused(status: 400, sentence: "the chunked body is malformed")
            case .tooLarge:
                isRefused = true
                return .refused(status: 413, sentence: Self.tooLong(bodyBytesMax))
            }
        }
    }
}

/// Undoes chunked transfer coding byte by byte (RFC 9112, 7.1). Chunk extensions and trailers are skipped under a bound.
struct ChunkedBody {
    enum Progress { case incomplete, complete, malformed, tooLarge }

    private enum Phase { case size, extensions, sizeLineFeed, data, dataReturn, dataLineFeed, trailer, trailerLineFeed, done }

    private var phase = Phase.size
    private var remaining = 0
    private var digits = 0
    private var skippedBytes = 0
    private var trailerLineIsEmpty = true

    /// Extensions and trailers carry nothing for us; more of them than this is an attack.
    static let skippedBytesMax = 4096

    mutating func receive(_ bytes: UnsafeRawBufferPointer, into body: inout [UInt8], bodyBytesMax: Int) -> Progress {
        var index = 0
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
