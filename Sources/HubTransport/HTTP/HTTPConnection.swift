internal import HubCore
internal import HubWire

/// One HTTP connection: the unread bytes, and the current request. Confined to the loop's thread.
///
/// Its properties are read or set at once. One that changes in place would be checked for overlaps at run time, at each access.
@safe final class HTTPConnection {
    let socket: SocketPointer
    /// Bytes of an incomplete request, or of one received during another.
    private(set) var input: [UInt8] = []
    /// Bytes of `input` that are known to hold no end of a head.
    var scanned = 0
    /// Answers that wait for the next ones, to leave with them.
    private var gathered: [UInt8] = []
    /// The current request. Requests are served one after the other.
    var exchange: HTTPExchange?
    /// The tick by which the next head must be complete.
    var deadline: UInt32

    init(_ socket: SocketPointer, deadline: UInt32) {
        unsafe self.socket = unsafe socket
        self.deadline = deadline
    }

    /// Keeps bytes behind those that are kept.
    func keep(_ bytes: UnsafeRawBufferPointer) {
        if unsafe bytes.isEmpty { return }
        var kept = takeInput()
        unsafe kept.append(contentsOf: bytes)
        input = kept
    }

    /// Whether answers wait for the next ones.
    var hasGathered: Bool { !gathered.isEmpty }

    /// Keeps an answer for the next ones. False: they would be more bytes than are written at once.
    func gather(_ answer: [UInt8]) -> Bool {
        guard gathered.count + answer.count <= LoopOptions.answerPieceBytes else { return false }
        gathered = takeGathered(and: answer)
        return true
    }

    /// Hands out the answers that wait, and one more.
    func takeGathered(and answer: [UInt8] = []) -> [UInt8] {
        if gathered.isEmpty { return answer }
        var taken = gathered
        gathered = []
        taken += answer
        return taken
    }

    /// Hands out all bytes that are kept.
    func takeInput() -> [UInt8] {
        let taken = input
        input = []
        return taken
    }
}

/// The HTTP connections of one loop, by index; serial numbers tell the requests of one index apart.
///
/// A class, because each access to a value in `Loop` is checked for overlaps with others at run time.
final class HTTPConnections {
    // Guard: the loop's thread. Unchecked: an entry is read or set at once, and a check costs as much as finding one.
    @exclusivity(unchecked) private var entries: [HTTPConnection?] = []
    private var free: [Int] = []
    private var nextSerial: UInt64 = 1
    /// An exchange that has ended, for the next request.
    private var spare: HTTPExchange?

    func insert(_ connection: HTTPConnection) -> Int {
        if let index = free.popLast() {
            assert(unsafe entries[index] == nil, "index \(index) is free and in use")
            unsafe entries[index] = connection
            return index
        }
        unsafe entries.append(connection)
        return unsafe entries.count - 1
    }

    func takeSerial() -> UInt64 {
        defer { nextSerial += 1 }
        return nextSerial
    }

    /// An exchange for a request. Callers of one that has ended may look at it until then.
    func takeExchange() -> HTTPExchange {
        let taken = spare ?? HTTPExchange()
        spare = nil
        return taken
    }

    /// Keeps an exchange that has ended.
    func giveBack(_ exchange: HTTPExchange) { spare = exchange }

    /// All requests with a lower number are answered.
    var answeredUpTo: UInt64 {
        unsafe entries.reduce(nextSerial) { least, entry in
            guard let exchange = entry?.exchange, !exchange.isAnswered else { return least }
            return min(least, exchange.serial)
        }
    }

    /// The number of the next request.
    var nextNumber: UInt64 { nextSerial }

    var isEmpty: Bool { unsafe entries.count == free.count }
    var indices: Range<Int> { unsafe entries.indices }

    subscript(index: Int) -> HTTPConnection? { unsafe entries[index] }

    /// Frees the index. Stops the program when it is free already: two connections would share it from then on, and one would get the
    /// other's answers.
    func remove(_ index: Int) {
        precondition(unsafe entries[index] != nil, "HTTP connection \(index) was removed already")
        unsafe entries[index] = nil
        free.append(index)
        assert(unsafe free.count <= entries.count, "\(free.count) of \(unsafe entries.count) indices are free")
    }

    /// The connection whose request awaits this reply.
    func connection(of reply: HTTPReply) -> HTTPConnection? {
        guard unsafe entries.indices.contains(reply.exchange), let entry = unsafe entries[reply.exchange] else { return nil }
        assert(reply.serial < nextSerial, "request \(reply.serial) is answered, and \(nextSerial) has not come yet")
        return entry.exchange?.serial == reply.serial ? entry : nil
    }
}
