import CNGHTTP2
import COpenSSL
import Glibc
import HubTesting

/// A client that shows what libraries hide: SETTINGS, RST_STREAM codes, GOAWAY with its last stream and its text.
///
/// It verifies the server's certificate against the given authority and the name 127.0.0.1. Everything happens within
/// `run`, which ends with a condition or after a time limit.
final class HTTP2Client {
    struct Response {
        var headers: [String: String] = [:]
        var body: [UInt8] = []
        /// Set when the stream has ended: NO_ERROR, or the code of RST_STREAM or GOAWAY.
        var endCode: UInt32?

        var status: Int { headers[":status"].flatMap { Int($0) } ?? 0 }
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    struct Failure: Error { let what: String }

    private(set) var responses: [Int32: Response] = [:]
    private(set) var goAways: [(lastStream: Int32, text: String)] = []
    private(set) var announcedStreamsMax: [Int] = []
    private(set) var isClosed = false
    private var bodies: [Int32: [UInt8]] = [:]
    private let socket: Int32
    private let tlsContext: OpaquePointer
    private let tls: OpaquePointer
    private var session: OpaquePointer!

    init(port: UInt16, caFile: String) throws {
        socket = try PlainClient.connect(port: port)
        tlsContext = SSL_CTX_new(TLS_client_method())
        guard SSL_CTX_load_verify_locations(tlsContext, caFile, nil) == 1 else { throw Failure(what: "cannot read \(caFile)") }
        SSL_CTX_set_verify(tlsContext, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_alpn_protos(tlsContext, [2, UInt8(ascii: "h"), UInt8(ascii: "2")], 3)
        tls = SSL_new(tlsContext)
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), "127.0.0.1")
        SSL_set_fd(tls, socket)
        let status = SSL_connect(tls)
        guard status == 1 else {
            ERR_clear_error()
            throw Failure(what: "TLS handshake failed")
        }
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)

        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        register(callbacks)
        nghttp2_session_client_new(&session, callbacks, Unmanaged.passUnretained(self).toOpaque())
        nghttp2_submit_settings(session, 0, nil, 0)
    }

    deinit {
        nghttp2_session_del(session)
        SSL_free(tls)
        SSL_CTX_free(tlsContext)
        close(socket)
    }

    /// Begins a request; frames go out in `run`.
    @discardableResult
    func submit(_ method: String = "POST", _ path: String, _ headers: [(String, String)], body: [UInt8]) -> Int32 {
        let fields = [(":method", method), (":scheme", "https"), (":authority", "127.0.0.1"), (":path", path)] + headers
        var text = fields.flatMap { Array($0.0.utf8) + Array($0.1.utf8) }
        let stream = text.withUnsafeMutableBufferPointer { text in
            var position = text.baseAddress
            var entries: [nghttp2_nv] = []
            for field in fields {
                let (name, value) = (field.0.utf8.count, field.1.utf8.count)
                let valueStart = position?.advanced(by: name)
                entries.append(nghttp2_nv(name: position, value: valueStart, namelen: name, valuelen: value, flags: 0))
                position = position?.advanced(by: name + value)
            }
            let source = nghttp2_data_source(ptr: nil)
            var provider = nghttp2_data_provider(source: source) { _, stream, target, count, flags, _, context in
                let client = HTTP2Client.from(context)
                let part = client.bodies[stream, default: []].prefix(count)
                for (index, byte) in part.enumerated() { target?[index] = byte }
                client.bodies[stream]?.removeFirst(part.count)
                if client.bodies[stream, default: []].isEmpty { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
                return part.count
            }
            guard !body.isEmpty else { return nghttp2_submit_request(session, nil, entries, entries.count, nil, nil) }
            return nghttp2_submit_request(session, nil, entries, entries.count, &provider, nil)
        }
        bodies[stream] = body
        responses[stream] = Response()
        return stream
    }

    /// Begins a request, and waits for its end.
    func send(_ method: String = "POST", _ path: String, _ headers: [(String, String)], body: [UInt8]) throws -> Response {
        let stream = submit(method, path, headers, body: body)
        try run(until: "the response") { responses[stream]?.endCode != nil }
        return responses[stream] ?? Response()
    }

    /// Moves bytes until the condition holds. A connection that the server closes ends it too.
    func run(until what: String, seconds: Int = 10, _ condition: () -> Bool) throws {
        let end = time(nil) + seconds * SlowBuild.factor
        while !condition(), !isClosed {
            guard time(nil) < end else { throw Failure(what: "waited in vain for \(what)") }
            try sendPending()
            var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            _ = poll(&entry, 1, 100)
            receivePending()
        }
    }

    private func sendPending() throws {
        while true {
            // Many frames in one TLS record: the server then finds many requests in one read.
            var output: [UInt8] = []
            var bytes: UnsafePointer<UInt8>?
            while output.count < 16_384, case let count = nghttp2_session_mem_send(session, &bytes), count > 0 {
                output += Array(UnsafeBufferPointer(start: bytes, count: count))
            }
            guard !output.isEmpty else { return }
            var sent = 0
            while sent < output.count {
                let part = output.withUnsafeBytes { SSL_write(tls, $0.baseAddress! + sent, Int32($0.count - sent)) }
                if part > 0 {
                    sent += Int(part)
                } else if SSL_get_error(tls, part) == SSL_ERROR_WANT_WRITE {
                    var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
                    guard poll(&entry, 1, 5_000) > 0 else { throw Failure(what: "the server does not read") }
                } else {
                    isClosed = true
                    return
                }
            }
        }
    }

    private func receivePending() {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = SSL_read(tls, &buffer, Int32(buffer.count))
            if count > 0 {
                if nghttp2_session_mem_recv(session, buffer, Int(count)) < 0 { isClosed = true }
                continue
            }
            if SSL_get_error(tls, count) != SSL_ERROR_WANT_READ { isClosed = true }
            ERR_clear_error()
            return
        }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> HTTP2Client {
        Unmanaged<HTTP2Client>.fromOpaque(context!).takeUnretainedValue()
    }

    private func register(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks) { _, frame, name, nameBytes, value, valueBytes, _, context in
            let name = String(decoding: UnsafeBufferPointer(start: name, count: nameBytes), as: UTF8.self)
            let value = String(decoding: UnsafeBufferPointer(start: value, count: valueBytes), as: UTF8.self)
            HTTP2Client.from(context).responses[frame!.pointee.hd.stream_id]?.headers[name] = value
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, data, count, context in
            HTTP2Client.from(context).responses[stream]?.body += Array(UnsafeBufferPointer(start: data, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, context in
            HTTP2Client.from(context).responses[stream]?.endCode = code
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            let (client, frame) = (HTTP2Client.from(context), frame!.pointee)
            if UInt32(frame.hd.type) == NGHTTP2_GOAWAY.rawValue {
                let text = UnsafeBufferPointer(start: frame.goaway.opaque_data, count: frame.goaway.opaque_data_len)
                client.goAways.append((frame.goaway.last_stream_id, String(decoding: text, as: UTF8.self)))
            }
            if UInt32(frame.hd.type) == NGHTTP2_SETTINGS.rawValue {
                for entry in UnsafeBufferPointer(start: frame.settings.iv, count: frame.settings.niv)
                where UInt32(entry.settings_id) == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue {
                    client.announcedStreamsMax.append(Int(entry.value))
                }
            }
            return 0
        }
    }
}

/// Plain TCP to a port on 127.0.0.1.
enum PlainClient {
    /// - Parameter receiveBufferBytes: a small one makes the server write in many small parts.
    static func connect(port: UInt16, receiveBufferBytes: Int32? = nil) throws -> Int32 {
        // A write to a socket that the server has closed is an error to look at, not the end of the test process.
        signal(SIGPIPE, SIG_IGN)
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBufferBytes {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBufferBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafeBytes(of: &address) {
            Glibc.connect(socket, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard status == 0 else {
            close(socket)
            throw HTTP2Client.Failure(what: "cannot connect to port \(port)")
        }
        return socket
    }

    /// Sends the text and answers everything until the server closes, or fails after ten seconds.
    /// - Parameter endsSending: half-closes behind the bytes; otherwise the server may rightly wait for more.
    static func exchange(port: UInt16, _ bytes: [UInt8], endsSending: Bool = false, receiveBufferBytes: Int32? = nil) throws -> String {
        let socket = try connect(port: port, receiveBufferBytes: receiveBufferBytes)
        defer { close(socket) }
        var sent = 0
        while sent < bytes.count {
            let part = bytes.withUnsafeBytes { send(socket, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL)) }
            guard part > 0 else { break }
            sent += part
        }
        if endsSending { shutdown(socket, Int32(SHUT_WR)) }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let end = time(nil) + 10
        while time(nil) < end {
            var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 1_000) > 0 else { continue }
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
            answer += buffer.prefix(count)
        }
        throw HTTP2Client.Failure(what: "the server neither answers nor closes")
    }
}
