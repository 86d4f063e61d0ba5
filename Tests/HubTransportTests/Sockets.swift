import Foundation
import Glibc
import HubTesting

/// Why a client in these tests cannot go on.
struct StreamError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A connected client's bytes, plain or through TLS. Blocking, with a time limit on every call.
protocol ByteStream: AnyObject {
    /// Descriptor of the socket below.
    var descriptor: Int32 { get }
    func send(_ bytes: [UInt8]) throws
    /// Bytes that have arrived, at most `count`; empty if the peer has ended the connection, gently or not.
    func receive(_ count: Int) throws -> [UInt8]
    func close()
}

/// A plain POSIX socket to 127.0.0.1.
final class RawSocket: ByteStream {
    /// How long one call may take before the test fails, in seconds: far beyond what a loaded machine needs.
    static let timeLimitSeconds = 120 * SlowBuild.factor

    private(set) var descriptor: Int32
    /// The server ended the connection with a reset.
    private(set) var wasReset = false

    /// - Parameters:
    ///   - receiveBufferBytes: asks the kernel for a small window, so that the server's writes are taken in part.
    ///   - segmentBytes: keeps segments below that window; the loopback interface's own are 64 KB.
    init(port: Int, receiveBufferBytes: Int32? = nil, segmentBytes: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw StreamError("no socket: errno \(errno)") }
        if let receiveBufferBytes { set(SOL_SOCKET, SO_RCVBUF, receiveBufferBytes) }
        if let segmentBytes { set(Int32(IPPROTO_TCP), TCP_MAXSEG, segmentBytes) }
        set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        var limit = timeval(tv_sec: Self.timeLimitSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            let reason = errno
            close()
            throw StreamError("cannot connect to port \(port): errno \(reason)")
        }
    }

    deinit {
        close()
    }

    private func set(_ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw StreamError("cannot send: errno \(errno)") }
            sent += count
        }
    }

    func receive(_ count: Int) throws -> [UInt8] {
        var ended = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            ended = recv(descriptor, buffer.baseAddress, count, 0)
            filled = max(0, ended)
        }
        if ended < 0 {
            if errno == ECONNRESET || errno == EPIPE {
                wasReset = true
                return []
            }
            throw StreamError("nothing arrived in \(Self.timeLimitSeconds) s: errno \(errno)")
        }
        return bytes
    }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }
}

/// One frame as a client sees it.
struct ReceivedFrame: Equatable {
    var opcode: UInt8
    var isFinal = true
    var payload: [UInt8]

    var text: String { String(decoding: payload, as: UTF8.self) }
    var closeCode: Int? { opcode == 8 && payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
    var closeReason: String { String(decoding: payload.dropFirst(2), as: UTF8.self) }
}

/// The head and body of an HTTP answer.
struct HTTPAnswer {
    var status: Int
    /// Lower-case names.
    var headers: [String: String]
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
}

/// Reads frames and HTTP answers off a stream, and writes what clients write, well-formed or not.
final class TestPeer {
    let stream: any ByteStream
    private var buffer: [UInt8] = []
    private var head = 0

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// An upgraded WebSocket connection.
    static func upgraded(_ stream: any ByteStream, path: String = "/app/key", headers: [String] = []) throws -> TestPeer {
        let peer = TestPeer(stream)
        let answer = try peer.upgrade(path: path, headers: headers)
        guard answer.status == 101 else { throw StreamError("upgrade answered \(answer.status)") }
        return peer
    }

    /// Packets with data that have come (`tcpi_data_segs_in` of linux/tcp.h, which glibc's own structure does not have).
    var packetsReceived: UInt32 {
        var (facts, count) = ([UInt32](repeating: 0, count: 64), socklen_t(256))
        getsockopt(stream.descriptor, Int32(IPPROTO_TCP), TCP_INFO, &facts, &count)
        return facts[152 / 4]
    }

    func upgrade(path: String = "/app/key", headers: [String] = []) throws -> HTTPAnswer {
        try send(text: Self.upgradeRequest(path: path, headers: headers))
        return try answer(isHead: true)
    }

    static func upgradeRequest(path: String = "/app/key", headers: [String] = []) -> String {
        ([
            "GET \(path) HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    func send(text: String) throws { try stream.send(Array(text.utf8)) }

    /// A masked client frame (RFC 6455, 5.3).
    static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true) -> [UInt8] {
        var bytes = [(isFinal ? 0x80 : 0) | opcode]
        let mask: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case 0..<126: bytes.append(mask | UInt8(payload.count))
        case 126...0xFFFF: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes.append(mask | 127)
            for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
        }
        guard isMasked else { return bytes + payload }
        let key: [UInt8] = [0xA1, 0x5B, 0x00, 0x7F]
        bytes += key
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ key[index & 3]) }
        return bytes
    }

    func sendFrame(_ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, isMasked: Bool = true) throws {
        try stream.send(Self.frame(opcode, payload, isFinal: isFinal, isMasked: isMasked))
    }

    func sendText(_ text: String) throws { try sendFrame(1, Array(text.utf8)) }

    func sendClose(_ code: Int, _ reason: String = "") throws {
        try sendFrame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
    }

    /// The next frame; nil when the server has ended the connection.
    func nextFrame(upTo count: Int = 1 << 16) throws -> ReceivedFrame? {
        guard let first = try take(2, upTo: count) else { return nil }
        guard first[0] & 0x70 == 0, first[1] & 0x80 == 0 else { throw StreamError("frame begins with \(first)") }
        var length = Int(first[1])
        if length >= 126 {
            guard let more = try take(length == 126 ? 2 : 8, upTo: count) else { throw StreamError("the stream ends inside of a header") }
            length = more.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let payload = try take(length, upTo: count) else { throw StreamError("the stream ends inside of a frame") }
        return ReceivedFrame(opcode: first[0] & 15, isFinal: first[0] & 0x80 != 0, payload: payload)
    }

    /// The next frame, which has to come.
    func frame() throws -> ReceivedFrame {
        guard let frame = try nextFrame() else { throw StreamError("the server ended the connection") }
        return frame
    }

    /// An HTTP answer with its `Content-Length` body.
    func answer(isHead: Bool = false) throws -> HTTPAnswer {
        var lines: [String] = []
        var line: [UInt8] = []
        while true {
            guard let byte = try take(1, upTo: 4096) else { throw StreamError("the stream ends inside of a head: \(lines)") }
            if byte[0] != 10 {
                if byte[0] != 13 { line.append(byte[0]) }
                continue
            }
            if line.isEmpty { break }
            lines.append(String(decoding: line, as: UTF8.self))
            line = []
        }
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else { throw StreamError("status line: \(lines)") }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw StreamError("header line: \(line)") }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        var body: [UInt8] = []
        if !isHead, let length = headers["content-length"].flatMap({ Int($0) }), length > 0 {
            guard let bytes = try take(length, upTo: 1 << 16) else { throw StreamError("the stream ends inside of a body") }
            body = bytes
        }
        return HTTPAnswer(status: status, headers: headers, body: body)
    }

    /// True when the server ends the connection without another byte.
    func ends() throws -> Bool {
        try take(1, upTo: 4096) == nil
    }

    /// Exactly `count` bytes; nil when the stream ends before the first of them.
    private func take(_ count: Int, upTo piece: Int) throws -> [UInt8]? {
        while buffer.count - head < count {
            if head > 1 << 16 {
                buffer.removeFirst(head)
                head = 0
            }
            let more = try stream.receive(piece)
            if more.isEmpty {
                guard buffer.count == head else { throw StreamError("the stream ends after \(buffer.count - head) of \(count) bytes") }
                return nil
            }
            buffer += more
        }
        defer { head += count }
        return Array(buffer[head..<head + count])
    }
}

/// Runs `body` for each index on a thread of its own, and throws the first error. The pool's threads must not block for long.
func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let errors = Recorder<String>()
    let threads = DispatchGroup()
    for index in 0..<count {
        threads.enter()
        let thread = Thread {
            do { try body(index) } catch { errors.append("client \(index): \(error)") }
            threads.leave()
        }
        thread.start()
    }
    threads.wait()
    if let error = errors.all.first { throw StreamError(error) }
}

/// Events from other threads, in order, for a test's thread to wait for.
final class Recorder<Element: Sendable>: @unchecked Sendable {
    // Guard: `condition` is held around every use of `elements`.
    private let condition = NSCondition()
    private var elements: [Element] = []

    func append(_ element: Element) {
        condition.lock()
        elements.append(element)
        condition.broadcast()
        condition.unlock()
    }

    var all: [Element] {
        condition.lock()
        defer { condition.unlock() }
        return elements
    }

    /// Waits until the elements satisfy `isMet`; false when they do not in `seconds`.
    func wait(seconds: Double = Double(120 * SlowBuild.factor), _ isMet: ([Element]) -> Bool) -> Bool {
        let end = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while !isMet(elements) {
            if !condition.wait(until: end) { return isMet(elements) }
        }
        return true
    }
}
