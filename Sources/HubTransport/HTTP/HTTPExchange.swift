internal import HubCore
internal import HubWire

/// One HTTP request and its answer: the head is read, and the body grows under its bound. Confined to the loop's thread.
///
/// An exchange that has ended serves another request, so that requests take no memory from the heap.
final class HTTPExchange {
    /// The result of one piece of body.
    enum Progress: Equatable {
        case incomplete
        case complete
        case refused(status: Int, sentence: String)
    }

    private(set) var serial: UInt64 = 0
    /// The answer has no body.
    private(set) var isHead = false
    /// Addresses that proxies have named; nil: none.
    private(set) var forwardedFor: String?
    /// The request without its body; empty once the delegate has it.
    private(set) var request = HTTPExchange.noRequest
    /// The body's bytes so far.
    private var body: [UInt8] = []
    private(set) var framing = BodyFraming.none
    /// The connection's state after the answer.
    private(set) var persistence = HTTPResponseBytes.Persistence.goesOn
    private var bodyBytesMax = 0
    private var chunks = ChunkedBody()
    /// The request went to the delegate.
    var isDispatched = false
    /// The delegate has answered; a second answer is ignored.
    var isAnswered = false
    /// The delegate has judged the body; see `LoopDelegate.bodyLimit`.
    var isJudged = false
    /// The body's share of the budget for unfinished bodies.
    var charge: BodyCharge?
    /// The answer while it is not fully sent.
    var pending: PendingAnswer?
    /// The tick of the loop's clock by which the body must be complete.
    private(set) var deadline: UInt32 = 0

    private static let noRequest = HTTPRequest(method: "", path: "", query: HTTPQuery())

    /// Begins a request.
    func begin(serial: UInt64, _ head: consuming RequestHead, bodyBytesMax: Int, deadline: UInt32) {
        if case .length(let length) = head.framing {
            assert(length > 0 && length <= bodyBytesMax, "a body of \(length) bytes was let in, of \(bodyBytesMax)")
        }
        self.serial = serial
        self.deadline = deadline
        self.bodyBytesMax = bodyBytesMax
        framing = head.framing
        persistence = !head.isPersistent ? .ends : head.isOld ? .goesOnAsSaid : .goesOn
        isHead = head.request.method == "HEAD"
        forwardedFor = head.request.headers.isEmpty ? nil : head.request.headers[Loop.forwardedFor]
        swap(&request, &head.request)
        chunks = ChunkedBody()
        (isDispatched, isAnswered, isJudged) = (false, false, false)
        assert(charge == nil && pending == nil, "request \(serial) begins in an exchange that has not ended")
    }

    /// Gives back what the request has. Its caller may still look at the rest.
    func end() {
        charge = nil
        pending = nil
        body = []
        request = Self.noRequest
        forwardedFor = nil
    }

    /// Bytes of the body so far.
    var bodyBytes: Int { body.count }
    /// Bytes of memory that the body has.
    var bodyRoom: Int { body.capacity }

    /// Whether the body has not begun, and all of it stands in so many bytes.
    func isWhole(in bytes: Int) -> Bool {
        guard case .length(let length) = framing else { return false }
        return body.isEmpty && bytes >= length
    }

    /// Lends the body memory that it can grow in.
    func lend(_ room: [UInt8]) {
        assert(body.isEmpty && room.isEmpty, "request \(serial) has \(body.count) bytes of a body, and is lent \(room.count)")
        body = room
    }

    /// Hands the request out, for the delegate.
    func takeRequest() -> HTTPRequest {
        var taken = Self.noRequest
        swap(&taken, &request)
        taken.body = takeBody()
        return taken
    }

    // One that changed in place would be checked for overlaps at run time, at each access.
    private func takeBody() -> [UInt8] {
        let taken = body
        body = []
        return taken
    }

    static func tooLong(_ bytesMax: Int) -> String { "the request body may have at most \(bytesMax) bytes" }

    /// Takes the next bytes of the body, and leaves the bytes after the body.
    func receive(_ bytes: inout UnsafeRawBufferPointer) -> Progress {
        assert(!isDispatched, "request \(serial) gets more of a body that is complete")
        switch framing {
        case .none: return .complete
        case .length(let length):
            assert(body.count < length, "request \(serial) has \(body.count) of \(length) bytes and is incomplete")
            let count = min(length - body.count, bytes.count)
            let piece = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
            var whole = takeBody()
            unsafe whole.append(contentsOf: piece)
            body = whole
            unsafe bytes = unsafe UnsafeRawBufferPointer(rebasing: bytes[count...])
            return body.count == length ? .complete : .incomplete
        case .chunked:
            var whole = takeBody()
            defer { body = whole }
            switch unsafe chunks.receive(&bytes, into: &whole, bodyBytesMax: bodyBytesMax) {
            case .incomplete: return .incomplete
            case .complete: return .complete
            case .malformed: return .refused(status: 400, sentence: "the chunked body is malformed")
            case .tooLarge: return .refused(status: 413, sentence: Self.tooLong(bodyBytesMax))
            }
        }
    }
}
