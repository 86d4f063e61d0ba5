internal import HubCore
internal import HubWire

/// One HTTP request on its way in and its answer on its way out: the head read, the body growing under its bound.
final class HTTPExchange {
    /// What one piece of body led to.
    enum Progress: Equatable {
        case incomplete
        case complete
        case refused(status: Int, sentence: String)
    }

    let serial: UInt64
    var request: HTTPRequest
    let framing: BodyFraming
    /// Of the connection, behind the answer.
    var persistence: HTTPResponseBytes.Persistence
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
    /// The part of the answer that its reader has not taken.
    var pending: PendingAnswer?
    /// The tick of the loop's clock at which the body has to be there.
    let deadline: UInt32

    init(serial: UInt64, _ head: RequestHead, bodyBytesMax: Int, deadline: UInt32) {
        self.serial = serial
        self.deadline = deadline
        self.bodyBytesMax = bodyBytesMax
        request = head.request
        framing = head.framing
        persistence = !head.isPersistent ? .ends : head.isOld ? .goesOnAsSaid : .goesOn
    }

    static func tooLong(_ bytesMax: Int) -> String { "the request body may have at most \(bytesMax) bytes" }

    /// Takes the next bytes of the body, and leaves what follows it.
    func receive(_ bytes: inout UnsafeRawBufferPointer) -> Progress {
        switch framing {
        case .none: return .complete
        case .length(let length):
            let count = min(length - request.body.count, bytes.count)
            if request.body.isEmpty { request.body.reserveCapacity(min(length, count)) }
            unsafe request.body.append(contentsOf: bytes[..<count])
            unsafe bytes = unsafe UnsafeRawBufferPointer(rebasing: bytes[count...])
            return request.body.count == length ? .complete : .incomplete
        case .chunked:
            switch unsafe chunks.receive(&bytes, into: &request.body, bodyBytesMax: bodyBytesMax) {
            case .incomplete: return .incomplete
            case .complete: return .complete
            case .malformed: return .refused(status: 400, sentence: "the chunked body is malformed")
            case .tooLarge: return .refused(status: 413, sentence: Self.tooLong(bodyBytesMax))
            }
        }
    }
}
