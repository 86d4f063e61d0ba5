import CNGHTTP2
import HubCore

/// The server's half of one HTTP/2 connection, over nghttp2 (RFC 9113).
///
/// nghttp2's session is not thread-safe and calls back only during calls to it, all on the server's thread. The callbacks borrow `self`:
/// the session handle never outlives its owner.
@safe final class HTTP2Session: HTTPSession {
    private struct Incoming {
        var request: ReceivedRequest
        var headerListBytes = 0
        let begunAt: UInt64
    }

    private struct Outgoing {
        let bytes: [UInt8]
        var offset = 0
    }

    private let handle: OpaquePointer
    private let connection: UInt64
    let traffic: TrafficCounter
    private var incoming: [Int32: Incoming] = [:]
    private var outgoing: [Int32: Outgoing] = [:]
    /// Complete requests handed out and not answered.
    private var unanswered: Set<Int32> = []
    private var completed: [ReceivedRequest] = []
    private var now: UInt64 = 0
    /// Set when GOAWAY is submitted: later streams are announced as not processed and must stay so. The library closes them when the frame
    /// is sent, possibly much later.
    private var lastStream = Int32.max
    private var newestStream: Int32 = 0
    private var open: Set<Int32> = []
    /// Maximum of open streams as far as the peer can know it. A wider limit counts from its sending, a narrower one from the peer's
    /// acknowledgement.
    private var limit: Int
    private var limitsSubmitted: [Int] = []
    private var limitsSent: [Int] = []

    /// Nil if nghttp2 has no memory for a session.
    init?(connection: UInt64, streamsMax: Int, traffic: TrafficCounter = TrafficCounter()) {
        var callbacks: OpaquePointer?
        unsafe nghttp2_session_callbacks_new(&callbacks)
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        unsafe HTTP2Callbacks.register(in: callbacks)
        var option: OpaquePointer?
        unsafe nghttp2_option_new(&option)
        defer { unsafe nghttp2_option_del(option) }
        // Turns off the rate limit of resets. libcurl 7.88 sends RST_STREAM after an answer of HEADERS alone, with or without
        // `content-length: 0`. After a body in DATA it sends none (`WireTests.resets`). APNs accepts with HEADERS alone. nghttp2 takes more
        // than a thousand resets, less 33 a second, for an attack (CVE-2023-44487) and sends GOAWAY.
        unsafe nghttp2_option_set_stream_reset_rate_limit(option, UInt64(UInt32.max), UInt64(UInt32.max))
        var session: OpaquePointer?
        guard unsafe nghttp2_session_server_new2(&session, callbacks, nil, option) == 0, let session = unsafe session else { return nil }
        unsafe handle = unsafe session
        self.connection = connection
        self.traffic = traffic
        limit = streamsMax
        unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        limitsSubmitted = [streamsMax]
        submitSettings([
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streamsMax),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, SimulatorLimits.headerListBytesMax),
        ])
    }

    deinit {
        unsafe nghttp2_session_del(handle)
    }

    var isFinished: Bool {
        unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
    }

    var openRequests: Int { incoming.count + unanswered.count + outgoing.count }

    func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: UInt64) -> Bool {
        self.now = now
        return unsafe nghttp2_session_mem_recv(handle, bytes.baseAddress, bytes.count) >= 0
    }

    func nextRequest() -> ReceivedRequest? {
        while !completed.isEmpty {
            let request = completed.removeFirst()
            // A stream reset meanwhile needs no answer. A stream after a GOAWAY was announced as not processed.
            if request.stream <= lastStream, unanswered.contains(request.stream) { return request }
        }
        return nil
    }

    func perform(_ action: Reply.Action, stream: Int32) {
        guard unanswered.remove(stream) != nil else { return }
        switch action {
        case .respond(let response): respond(response, stream: stream)
        case .reset(let code): reset(stream, code: code)
        case .goAway(let reason, let response):
            respond(response, stream: stream)
            submitGoAway(lastStream: stream, reason: reason)
        case .goAwayUnprocessed(let reason, let code):
            submitGoAway(lastStream: max(0, stream - 2), reason: reason, code: code)
        case .closeConnection: preconditionFailure("the connection is closed by whoever owns the socket")
        }
    }

    func produceOutput(into output: inout [UInt8], limit: Int) -> Bool {
        while output.count < limit {
            var bytes: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(handle, &bytes)
            guard count >= 0 else { return false }
            guard count > 0 else { return true }
            unsafe output.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }
        return true
    }

    func announce(streamsMax: Int) {
        limitsSubmitted.append(streamsMax)
        submitSettings([(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streamsMax)])
    }

    func goAway(reason: String) {
        submitGoAway(lastStream: newestStream, reason: reason)
    }

    func expireRequests(begunBefore moment: UInt64) {
        for (stream, partial) in incoming where partial.begunAt < moment {
            incoming[stream] = nil
            reset(stream, code: NGHTTP2_CANCEL.rawValue)
        }
    }

    // MARK: Called back by nghttp2

    func beganHeaders(stream: Int32) {
        newestStream = max(newestStream, stream)
        open.insert(stream)
        if open.count > limit { traffic.count { $0.streamsBeyondLimit += 1 } }
        guard stream <= lastStream else { return }
        incoming[stream] = Incoming(request: ReceivedRequest(connection: connection, stream: stream), begunAt: now)
    }

    func receivedHeader(stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        guard var partial = incoming.removeValue(forKey: stream) else { return }
        // RFC 9113, 6.5.2: each field counts 32 bytes more.
        partial.headerListBytes += name.count + value.count + 32
        if partial.headerListBytes > SimulatorLimits.headerListBytesMax
            || partial.request.headers.count >= SimulatorLimits.headerCountMax
        {
            partial.request.isHeaderListTooLarge = true
        } else {
            let field = unsafe (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
            switch field.0 {
            case ":method": partial.request.method = field.1
            case ":path": partial.request.target = field.1
            case ":scheme", ":authority": break
            default: partial.request.headers.append(field)
            }
        }
        incoming[stream] = partial
    }

    func receivedBody(stream: Int32, bytes: UnsafeBufferPointer<UInt8>) {
        guard var partial = incoming.removeValue(forKey: stream) else { return }
        partial.request.bodyBytes += bytes.count
        guard partial.request.bodyBytes <= SimulatorLimits.bodyBytesMax, hasRoom(beside: partial) else {
            reset(stream, code: NGHTTP2_ENHANCE_YOUR_CALM.rawValue)
            return
        }
        let room = SimulatorLimits.bodyBytesKept - partial.request.body.count
        unsafe partial.request.body.append(contentsOf: bytes.prefix(max(0, room)))
        incoming[stream] = partial
    }

    /// Whether the unfinished bodies leave room for more of this one.
    private func hasRoom(beside partial: Incoming) -> Bool {
        guard partial.request.body.count > SimulatorLimits.smallBodyBytes else { return true }
        return incoming.values.reduce(0) { $0 + $1.request.body.count } < SimulatorLimits.unfinishedBodyBytesMax
    }

    func endedRequest(stream: Int32) {
        guard let partial = incoming.removeValue(forKey: stream) else { return }
        unanswered.insert(stream)
        completed.append(partial.request)
    }

    func sentSettings() {
        guard !limitsSubmitted.isEmpty else { return }
        limitsSent.append(limitsSubmitted.removeFirst())
        limit = max(limit, limitsSent.last ?? 0)
    }

    func confirmedSettings() {
        if !limitsSent.isEmpty { limit = limitsSent.removeFirst() }
    }

    func closedStream(_ stream: Int32) {
        open.remove(stream)
        incoming[stream] = nil
        outgoing[stream] = nil
        unanswered.remove(stream)
    }

    /// Copies the next part of a response body. `isLast` marks the last part.
    func readBody(stream: Int32, into target: UnsafeMutableBufferPointer<UInt8>) -> (count: Int, isLast: Bool) {
        guard var body = outgoing.removeValue(forKey: stream) else { return (0, true) }
        let count = min(target.count, body.bytes.count - body.offset)
        unsafe body.bytes.withUnsafeBufferPointer { source in
            let part = unsafe UnsafeBufferPointer(rebasing: source[body.offset..<body.offset + count])
            _ = unsafe target.update(fromContentsOf: part)
        }
        body.offset += count
        let isLast = body.offset == body.bytes.count
        if !isLast { outgoing[stream] = body }
        return (count, isLast)
    }

    // MARK: Frames of ours

    private func submitSettings(_ settings: [(id: nghttp2_settings_id, value: Int)]) {
        let entries = settings.map {
            nghttp2_settings_entry(settings_id: Int32($0.id.rawValue), value: UInt32(clamping: $0.value))
        }
        let status = unsafe nghttp2_submit_settings(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        precondition(status == 0, "nghttp2 refused our own settings with \(status)")
    }

    private func reset(_ stream: Int32, code: UInt32) {
        let status = unsafe nghttp2_submit_rst_stream(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
        precondition(status == 0, "nghttp2 refused RST_STREAM with \(status)")
    }

    private func submitGoAway(lastStream stream: Int32, reason: String, code: UInt32 = NGHTTP2_NO_ERROR.rawValue) {
        guard stream < lastStream else { return }
        lastStream = stream
        let text = JSONValue.object(["reason": .string(reason)]).serialized()
        let status = unsafe nghttp2_submit_goaway(
            handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code, text, text.count)
        precondition(status == 0, "nghttp2 refused GOAWAY with \(status)")
    }

    private func respond(_ response: HTTPResponse, stream: Int32) {
        var fields: [(name: String, value: String)] = [(":status", String(response.status))]
        if !response.body.isEmpty {
            fields.append(("content-type", response.contentType))
            fields.append(("content-length", String(response.body.count)))
        }
        fields += response.headers.map { ($0.name.lowercased(), $0.value) }

        // nghttp2 copies names and values during the call, so one buffer suffices.
        var text: [UInt8] = []
        for field in fields { text += Array(field.name.utf8) + Array(field.value.utf8) }
        if !response.body.isEmpty { outgoing[stream] = Outgoing(bytes: response.body) }
        let status = unsafe text.withUnsafeMutableBufferPointer { text in
            var position = text.baseAddress
            var entries: [nghttp2_nv] = unsafe []
            for field in fields {
                let (nameBytes, valueBytes) = (field.name.utf8.count, field.value.utf8.count)
                unsafe entries.append(
                    nghttp2_nv(
                        name: position, value: position?.advanced(by: nameBytes), namelen: nameBytes,
                        valuelen: valueBytes, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
                unsafe position = position?.advanced(by: nameBytes + valueBytes)
            }
            guard !response.body.isEmpty else {
                return unsafe nghttp2_submit_response(handle, stream, entries, entries.count, nil)
            }
            var provider = unsafe HTTP2Callbacks.bodyProvider
            return unsafe nghttp2_submit_response(handle, stream, entries, entries.count, &provider)
        }
        precondition(status == 0, "nghttp2 refused a response with \(status)")
    }
}
