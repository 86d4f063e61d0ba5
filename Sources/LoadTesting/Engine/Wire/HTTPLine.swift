internal import CLoadSockets
internal import Glibc
internal import HubCore
internal import HubJSON

/// One kept-alive HTTP connection for a scenario's requests before and after the load. Sends one request at a time and blocks for its
/// answer.
final class HTTPLine {
    private let target: Target
    private var descriptor: Int32 = -1

    private static let timeoutSeconds = 30
    private static let readBytes = 64 << 10
    /// Enough for the simulators' list of 20,000 pushes.
    private static let answerBytesMax = 256 << 20

    /// - Throws: for TLS, which is not supported here.
    init(_ target: Target) throws(LoadError) {
        guard !target.isSecure else {
            throw LoadError("this scenario asks the server by HTTP without TLS: use ws:// or http://", isUsage: true)
        }
        self.target = target
    }

    deinit { hangUp() }

    private func hangUp() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Sends a whole request and waits for its answer. Resends it once if the connection had ended.
    func call(_ request: [UInt8], what: String) throws(LoadError) -> (status: Int, body: [UInt8]) {
        let wasOpen = descriptor >= 0
        if let answer = attempt(request) { return answer }
        hangUp()
        if wasOpen, let answer = attempt(request) { return answer }
        hangUp()
        throw LoadError("\(what): \(target.authority) gave no answer")
    }

    /// The same for an answer that must be a success with a JSON body.
    func json(_ request: [UInt8], what: String) throws(LoadError) -> JSONValue {
        let (status, body) = try call(request, what: what)
        guard (200..<300).contains(status) else {
            throw LoadError("\(what): \(target.authority) answered \(status): \(String(decoding: body.prefix(300), as: UTF8.self))")
        }
        do { return try JSONValue(parsing: body) } catch { throw LoadError("\(what): the answer is no JSON: \(error)") }
    }

    /// Sends a request without body or signature.
    func plain(_ method: String, _ path: String) throws(LoadError) -> JSONValue {
        try json(
            Array("\(method) \(target.prefix)\(path) HTTP/1.1\r\nHost: \(target.authority)\r\nContent-Length: 0\r\n\r\n".utf8),
            what: "\(method) \(path)")
    }

    private func attempt(_ request: [UInt8]) -> (status: Int, body: [UInt8])? {
        guard descriptor >= 0 || connect(), write(request) else { return nil }
        var received: [UInt8] = []
        var part = [UInt8](repeating: 0, count: Self.readBytes)
        while received.count < Self.answerBytesMax {
            let count = unsafe recv(descriptor, &part, part.count, 0)
            guard count > 0 else { return nil }
            received.append(contentsOf: part[..<count])
            switch HTTPAnswer.read(received) {
            case .incomplete: continue
            case .malformed: return nil
            case .answer(let answer):
                if answer.closes { hangUp() }
                return (answer.status, HTTPAnswer.body(of: answer, in: received))
            }
        }
        return nil
    }

    private func connect() -> Bool {
        descriptor = tandem_load_connect(0, target.address, target.port)
        guard descriptor >= 0 else { return false }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard unsafe poll(&waiting, 1, Int32(Self.timeoutSeconds * 1000)) == 1, tandem_load_socket_error(descriptor) == 0 else {
            hangUp()
            return false
        }
        var limit = timeval(tv_sec: Self.timeoutSeconds, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return fcntl(descriptor, F_SETFL, 0) == 0
    }

    private func write(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes[sent...].withUnsafeBytes { unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
