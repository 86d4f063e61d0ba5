import HubCore

/// The server's half of one HTTP/1.1 connection: one request at a time, bodies by Content-Length (RFC 9112).
///
/// Sufficient for curl, for OAuth libraries and for the control port. Chunked bodies are refused with 411, which every client understands.
final class HTTP1Session: HTTPSession {
    private enum State {
        case head
        case body(missing: Int)
        /// A request is handed out; the next one waits in `input` for its answer.
        case answering
        case finished
    }

    private let connection: UInt64
    private var state = State.head
    private var input: [UInt8] = []
    private var request: ReceivedRequest
    private var keepsAlive = true
    private var completed: ReceivedRequest?
    private var output: [UInt8] = []
    private var outputOffset = 0
    private var begunAt: UInt64?

    init(connection: UInt64) {
        self.connection = connection
        request = ReceivedRequest(connection: connection, stream: 0)
    }

    var isFinished: Bool { if case .finished = state { output.isEmpty } else { false } }
    var openRequests: Int { if case .head = state { input.isEmpty ? 0 : 1 } else { 1 } }

    func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: UInt64) -> Bool {
        if case .finished = state { return true }
        unsafe input.append(contentsOf: bytes)
        if begunAt == nil { begunAt = now }
        advance()
        // While an answer is delayed, a peer may send its next request, but not fill the memory.
        return input.count <= SimulatorLimits.requestHeadBytesMax + SimulatorLimits.bodyBytesMax
    }

    func nextRequest() -> ReceivedRequest? {
        defer { completed = nil }
        return completed
    }

    func perform(_ action: Reply.Action, stream: Int32) {
        guard case .answering = state else { return }
        switch action {
        case .respond(let response), .goAway(_, let response): write(response)
        // HTTP/1.1 has one stream, so ending the stream ends the connection.
        case .reset, .goAwayUnprocessed, .closeConnection: state = .finished
        }
        if case .finished = state { return }
        request = ReceivedRequest(connection: connection, stream: 0)
        begunAt = nil
        state = .head
        advance()
    }

    func produceOutput(into target: inout [UInt8], limit: Int) -> Bool {
        let count = min(max(0, limit - target.count), output.count - outputOffset)
        target.append(contentsOf: output[outputOffset..<outputOffset + count])
        outputOffset += count
        if outputOffset == output.count {
            output.removeAll()
            outputOffset = 0
        }
        return true
    }

    func announce(streamsMax: Int) {}

    func goAway(reason: String) {
        keepsAlive = false
        if openRequests == 0 { state = .finished }
    }

    func expireRequests(begunBefore moment: UInt64) {
        guard let begunAt, begunAt < moment else { return }
        switch state {
        case .head, .body: refuse(408, "the request did not arrive in time; send it whole")
        case .answering, .finished: break
        }
    }

    private func advance() {
        while true {
            switch state {
            case .head:
                guard let end = endOfHead() else {
                    if input.count > SimulatorLimits.requestHeadBytesMax {
                        refuse(431, "the request head is larger than \(SimulatorLimits.requestHeadBytesMax) bytes")
                    }
                    return
                }
                readHead(Array(input[..<end]))
                if case .finished = state { return }
                input.removeFirst(end)
            case .body(let missing):
                let count = min(missing, input.count)
                let room = SimulatorLimits.bodyBytesKept - request.body.count
                request.body += input.prefix(min(count, max(0, room)))
                input.removeFirst(count)
                guard count == missing else {
                    state = .body(missing: missing - count)
                    return
                }
                state = .answering
                completed = request
            case .answering, .finished:
                return
            }
        }
    }

    /// The index after the empty line, if it arrived within the bound.
    private func endOfHead() -> Int? {
        let searched = input.prefix(SimulatorLimits.requestHeadBytesMax)
        var index = 0
        while index + 3 < searched.count {
            if searched[index] == 13, searched[index + 1] == 10, searched[index + 2] == 13, searched[index + 3] == 10 {
                return index + 4
            }
            index += 1
        }
        return nil
    }

    private func readHead(_ head: [UInt8]) {
        let text = String(decoding: head, as: UTF8.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: true)
        let start = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        guard start.count == 3, start[2].hasPrefix("HTTP/1."), start[1].hasPrefix("/") else {
            return refuse(400, "the first line is no HTTP/1.1 request line")
        }
        request.method = String(start[0])
        request.target = String(start[1])
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), request.headers.count < SimulatorLimits.headerCountMax else {
                return refuse(400, "a header line has no colon, or there are too many of them")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            request.headers.append((line[..<colon].lowercased(), String(value)))
        }
        keepsAlive = start[2] == "HTTP/1.1" && request.header("connection")?.lowercased() != "close"
        if request.header("transfer-encoding") != nil {
            return refuse(411, "send the body with Content-Length")
        }
        let lengths = request.headers.filter { $0.name == "content-length" }.map { Int($0.value) ?? -1 }
        let length = lengths.first ?? 0
        guard Set(lengths).count <= 1, length >= 0 else {
            return refuse(400, "Content-Length is not one number")
        }
        guard length <= SimulatorLimits.bodyBytesMax else {
            return refuse(413, "the body is larger than \(SimulatorLimits.bodyBytesMax) bytes")
        }
        request.bodyBytes = length
        state = .body(missing: length)
        if length > 0, request.header("expect")?.lowercased() == "100-continue" {
            output += "HTTP/1.1 100 Continue\r\n\r\n".utf8
        }
    }

    private func refuse(_ status: Int, _ sentence: String) {
        keepsAlive = false
        write(.error(status, sentence))
    }

    private func write(_ response: HTTPResponse) {
        var head = "HTTP/1.1 \(response.status) \(Self.phrase(response.status))\r\n"
        head += "Content-Type: \(response.contentType)\r\nContent-Length: \(response.body.count)\r\n"
        for header in response.headers { head += "\(header.name): \(header.value)\r\n" }
        head += keepsAlive ? "\r\n" : "Connection: close\r\n\r\n"
        output += Array(head.utf8)
        if request.method != "HEAD" { output += response.body }
        if !keepsAlive { state = .finished }
    }

    private static func phrase(_ status: Int) -> String {
        switch status {
        case 200..<300: "OK"
        case 400..<500: "Refused"
        default: "Failed"
        }
    }
}
