internal import CLibCurl
internal import COpenSSL
internal import Glibc

/// One easy handle with everything it borrows while it works: body, header list, error text, collectors.
///
/// Belongs to the thread of its `CurlLoop`, and is reused for call after call. libcurl copies strings, but neither the body nor the header
/// list. So both stay here unchanged until the next `prepare`, which follows the handle's removal from the multi handle.
@safe final class CurlTransfer {
    /// Initial capacity; bodies of pushes have at most 4 KiB.
    private static let bodyBytesMin = 4608

    let easy: UnsafeMutableRawPointer
    private let slot: Int
    /// The loop's thread, on which libcurl calls back. The callbacks borrow this object without retaining it.
    private let thread = pthread_self()
    private let errorText: UnsafeMutablePointer<CChar>
    /// Grows to the longest body, and is reused.
    private var body: UnsafeMutableRawBufferPointer
    private var headerLines = HeaderLines()
    /// Kind of call that the handle is set up for; nil: none yet.
    private var prepared: Kind?
    /// Scheme, host, port and slash shared by the handle's calls; nil: each call's URL is parsed.
    private var origin: String?
    /// The parsed origin. libcurl reads and copies it for each call.
    private var originParts: OpaquePointer?
    private(set) var completion: HTTPCompletion?
    /// Names of the answer's headers to keep, lower case.
    private var wanted: [(name: String, bytes: [UInt8])] = []
    private var bodyBytesMax = 0
    private var receivedHeaders: [String: String] = [:]
    private var receivedBody: [UInt8] = []
    private var bodyTruncated = false
    /// Asked when the call leaves; nil: the call is sent.
    private var departs: (@Sendable () -> Bool)?
    /// `departs` withdrew the call.
    private var isWithdrawn = false

    /// Nil if libcurl cannot allocate a handle.
    init?(slot: Int) {
        guard let easy = unsafe curl_easy_init() else { return nil }
        unsafe self.easy = easy
        self.slot = slot
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe body = .allocate(byteCount: Self.bodyBytesMin, alignment: 1)
    }

    /// Number of times that libcurl began to send the last call. It repeats a call by itself if a reused connection ends without
    /// a byte of the answer, or if the peer refuses the stream.
    private(set) var sends = 0

    /// Connections opened for the last call.
    var connectionsOpened: Int { long(CURLINFO_NUM_CONNECTS) }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe curl_url_cleanup(originParts)
        unsafe errorText.deallocate()
        unsafe body.deallocate()
    }

    /// Sets the handle up for one call. After an error nothing is held, and the transfer is free again.
    ///
    /// Options shared with the handle's previous call stay in place: setting all of them takes longer than the request itself.
    /// - Parameter options: the same for every call.
    func prepare(
        _ call: HTTPCall, options: CurlOptions, share: UnsafeMutableRawPointer, sockets: UnsafeMutablePointer<tandem_curl_sockets>,
        completion: @escaping HTTPCompletion
    ) throws(HTTPClientError) {
        // libcurl reads the body in place, so it would send the new call's body to the former call's peer.
        precondition(self.completion == nil, "transfer \(slot) is set up while libcurl works with it")
        assert(isOnThread, "transfer \(slot) is set up on another thread")
        unsafe errorText[0] = 0
        sends = 0
        isWithdrawn = false
        departs = call.departs
        if !receivedHeaders.isEmpty { receivedHeaders = [:] }
        receivedBody = []
        bodyTruncated = false
        do {
            let kind = Kind(method: call.method, isClear: call.isClear)
            if kind != prepared {
                prepared = nil
                origin = nil
                unsafe curl_easy_reset(easy)
                unsafe try check(tandem_curl_set_share(easy, share))
                unsafe try check(tandem_curl_set_sockets(easy, sockets))
                try setConnectionOptions(options)
                try setKind(kind, options: options)
                try setCallbacks()
                wanted = options.answerHeaders.map { (name: $0, bytes: Array($0.utf8)) }
                bodyBytesMax = options.answerBodyBytesMax
                prepared = kind
            }
            try setRequest(call)
        } catch {
            prepared = nil
            throw error
        }
        self.completion = completion
    }

    private var isOnThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// The properties that decide about a call's options.
    private struct Kind: Equatable {
        let method: String
        let isClear: Bool

        var hasBody: Bool { method != "GET" && method != "HEAD" }
    }

    private func setConnectionOptions(_ options: CurlOptions) throws(HTTPClientError) {
        try set(CURLOPT_NOSIGNAL, 1)
        try set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout.wholeMilliseconds)
        try set(CURLOPT_TIMEOUT_MS, options.totalTimeout.wholeMilliseconds)
        try set(CURLOPT_PIPEWAIT, options.waitsForMultiplexing ? 1 : 0)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_MAXAGE_CONN, options.connectionIdleMax.wholeMilliseconds / 1000)
        try set(CURLOPT_MAXLIFETIME_CONN, options.connectionLifetimeMax.wholeMilliseconds / 1000)
        try set(CURLOPT_DNS_CACHE_TIMEOUT, options.dnsCacheTimeout.wholeMilliseconds / 1000)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        try set(CURLOPT_TCP_KEEPIDLE, 60)
        try set(CURLOPT_TCP_KEEPINTVL, 15)
        // A shutdown must not wait for a silent name server.
        try set(CURLOPT_QUICK_EXIT, 1)
        // Otherwise libcurl takes a proxy from the environment, which only the composition root may read.
        try set(CURLOPT_PROXY, "")
        if let caFile = options.caFile { try set(CURLOPT_CAINFO, caFile) }
        if !options.checksCertificates {
            try set(CURLOPT_SSL_VERIFYPEER, 0)
            try set(CURLOPT_SSL_VERIFYHOST, 0)
        }
    }

    private func setKind(_ kind: Kind, options: CurlOptions) throws(HTTPClientError) {
        try set(CURLOPT_PROTOCOLS_STR, kind.isClear ? "http" : "https")
        let priorKnowledge = kind.isClear && options.clearTextHTTP2
        try set(CURLOPT_HTTP_VERSION, Int(priorKnowledge ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS))
        switch kind.method {
        case "GET": try set(CURLOPT_HTTPGET, 1)
        case "HEAD": try set(CURLOPT_NOBODY, 1)
        default: try set(CURLOPT_POST, 1)
        }
        if !["GET", "HEAD", "POST"].contains(kind.method) { try set(CURLOPT_CUSTOMREQUEST, kind.method) }
    }

    private func setRequest(_ call: HTTPCall) throws(HTTPClientError) {
        try setURL(call.url)
        if prepared?.hasBody == true {
            if unsafe call.body.count > body.count {
                unsafe body.deallocate()
                unsafe body = .allocate(byteCount: call.body.count, alignment: 1)
            }
            unsafe body.copyBytes(from: call.body)
            // libcurl does not copy the body. Null would make it read the body from standard input.
            unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_POSTFIELDS, body.baseAddress))
            unsafe try check(tandem_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(call.body.count)))
        }
        headerLines.set(call.headers)
        unsafe try check(tandem_curl_set_list(easy, CURLOPT_HTTPHEADER, headerLines.list))
    }

    /// Parsing and rebuilding a URL is the most expensive part of a small request in libcurl. So only the path is set if the origin
    /// is that of the previous call.
    private func setURL(_ url: String) throws(HTTPClientError) {
        if let origin, let path = Self.plainPath(of: url, behind: origin) { return try set(CURLOPT_REQUEST_TARGET, path) }
        if origin != nil {
            origin = nil
            unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_REQUEST_TARGET, nil))
            unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_CURLU, nil))
        }
        try set(CURLOPT_URL, url)
        // Later calls set only the path, if it is a plain one.
        guard let end = Self.originEnd(of: url) else { return }
        let found = String(url[..<end])
        guard let path = Self.plainPath(of: url, behind: found) else { return }
        if unsafe originParts == nil { unsafe originParts = curl_url() }
        guard let parts = unsafe originParts, unsafe curl_url_set(parts, CURLUPART_URL, found, 0) == CURLUE_OK else { return }
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_CURLU, UnsafeMutableRawPointer(parts)))
        try set(CURLOPT_REQUEST_TARGET, path)
        origin = found
    }

    /// Index after the third slash; nil unless that slash certainly ends scheme, host and port.
    private static func originEnd(of url: String) -> String.Index? {
        var slashes = 0
        for index in url.utf8.indices {
            switch url.utf8[index] {
            case UInt8(ascii: "/"):
                slashes += 1
                if slashes == 3 { return url.utf8.index(after: index) }
            case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "%"), UInt8(ascii: "\\"): return nil
            default: break
            }
        }
        return nil
    }

    /// The path with its slash. Nil for another origin, and for a path that libcurl would change: a fragment, a dot segment,
    /// a character with another spelling.
    private static func plainPath(of url: String, behind origin: String) -> String? {
        guard url.hasPrefix(origin) else { return nil }
        let path = url.utf8.dropFirst(origin.utf8.count - 1)
        var before: UInt8 = 0
        for byte in path {
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "#"), !(byte == UInt8(ascii: ".") && before == UInt8(ascii: "/")) else {
                return nil
            }
            before = byte
        }
        return String(path)
    }

    private func setCallbacks() throws(HTTPClientError) {
        // Unretained: the loop keeps the transfer as long as libcurl has the handle.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_PRIVATE, UnsafeMutableRawPointer(bitPattern: slot + 1)))
        if tandem_curl_uses_openssl() != 0 {
            unsafe try check(
                tandem_curl_set_tls_callback(easy) { _, context, _ in
                    unsafe tandem_openssl_keep_copies_of_sessions(context)
                    return CURLE_OK
                })
        }
        unsafe try check(
            tandem_curl_set_departure(
                easy,
                { context, _, _, _, _ in
                    guard let context = unsafe context else { return CURL_PREREQFUNC_OK }
                    return unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().leaves()
                }, context))
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_WRITEDATA, context))
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_HEADERDATA, context))
        unsafe try check(
            tandem_curl_set_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
                let chunk = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
                unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().received(body: chunk)
                return size * count
            })
        unsafe try check(
            tandem_curl_set_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
                guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
                let line = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
                unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().received(headerLine: line)
                return size * count
            })
    }

    /// Called by libcurl immediately before it sends the request over an established connection.
    private func leaves() -> Int32 {
        assert(isOnThread && completion != nil, "transfer \(slot) is sent on another thread, or after its end")
        isWithdrawn = departs?() == false
        if isWithdrawn { return CURL_PREREQFUNC_ABORT }
        sends += 1
        return CURL_PREREQFUNC_OK
    }

    /// Keeps the bytes that fit and drops the rest: refusing them would end the whole connection, which other calls share.
    private func received(body chunk: UnsafeRawBufferPointer) {
        assert(isOnThread && completion != nil, "transfer \(slot) receives a body on another thread, or after its end")
        let room = bodyBytesMax - receivedBody.count
        if chunk.count > room { bodyTruncated = true }
        unsafe receivedBody.append(contentsOf: chunk.prefix(max(0, room)))
        assert(receivedBody.count <= bodyBytesMax, "\(receivedBody.count) bytes of an answer are kept, of \(bodyBytesMax)")
    }

    private func received(headerLine line: UnsafeRawBufferPointer) {
        assert(isOnThread && completion != nil, "transfer \(slot) receives a header on another thread, or after its end")
        guard let colon = unsafe line.firstIndex(of: UInt8(ascii: ":")) else {
            // A status line. The headers of an interim answer (1xx) before it are dropped.
            if unsafe line.starts(with: "HTTP/".utf8), !receivedHeaders.isEmpty { receivedHeaders = [:] }
            return
        }
        for index in wanted.indices where wanted[index].bytes.count == colon {
            guard unsafe Self.isSame(line, wanted[index].bytes) else { continue }
            var (start, end) = (colon + 1, line.count)
            while start < end, unsafe Self.isBlank(line[start]) { start += 1 }
            while start < end, unsafe Self.isBlank(line[end - 1]) { end -= 1 }
            receivedHeaders[wanted[index].name] = unsafe String(decoding: line[start..<end], as: UTF8.self)
        }
    }

    /// Whether the line begins with the name.
    private static func isSame(_ line: UnsafeRawBufferPointer, _ name: [UInt8]) -> Bool {
        for index in name.indices where unsafe lowerCase(line[index]) != name[index] { return false }
        return true
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }

    private static func lowerCase(_ byte: UInt8) -> UInt8 { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte }

    /// Reads the outcome. Only after the handle left its multi handle.
    func finish(_ code: CurlCode) -> (result: Result<HTTPAnswer, HTTPClientError>, completion: HTTPCompletion?) {
        let completion = completion
        self.completion = nil
        departs = nil
        if isWithdrawn { return (.failure(.withdrawn(sends == 0 ? .notSent : .outcomeUnknown)), completion) }
        let status = long(CURLINFO_RESPONSE_CODE)
        guard code == .ok, status > 0 else {
            // libcurl 7.88 can report a stream that ended without an answer as success.
            return (.failure(failure(code == .ok ? .gotNothing : code)), completion)
        }
        let version: HTTPAnswer.Version
        switch long(CURLINFO_HTTP_VERSION) {
        case Int(CURL_HTTP_VERSION_1_0), Int(CURL_HTTP_VERSION_1_1): version = .http1
        case Int(CURL_HTTP_VERSION_2_0): version = .http2
        case Int(CURL_HTTP_VERSION_3): version = .http3
        default: version = .unknown
        }
        let answer = HTTPAnswer(
            status: status, version: version, headers: receivedHeaders, body: receivedBody, bodyTruncated: bodyTruncated,
            connectionsOpened: connectionsOpened)
        return (.success(answer), completion)
    }

    private func failure(_ code: CurlCode) -> HTTPClientError {
        // The code concerns libcurl's last try only, and an unreadable answer counts as an unsupported protocol.
        // Once the first byte is sent, the outcome is open, whatever the code.
        let notSent = sends == 0 && (code.meansNotSent || code == .operationTimedOut)
        let specific = unsafe String(cString: errorText)
        return HTTPClientError(
            reason: .transport(code), delivery: notSent ? .notSent : .outcomeUnknown,
            detail: specific.isEmpty ? code.description : specific)
    }

    private func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
        unsafe try check(tandem_curl_set_long(easy, option, value))
    }

    private func set(_ option: CURLoption, _ value: String) throws(HTTPClientError) {
        unsafe try check(tandem_curl_set_string(easy, option, value))
    }

    private func check(_ code: CURLcode) throws(HTTPClientError) {
        guard code != CURLE_OK else { return }
        let code = CurlCode(rawValue: Int32(bitPattern: code.rawValue))
        throw HTTPClientError(reason: .transport(code), delivery: .notSent, detail: "libcurl refused an option: \(code)")
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        unsafe tandem_curl_get_long(easy, info, &value)
        return value
    }
}

extension Duration {
    /// Milliseconds, rounded up: a short time-out must not become libcurl's 0, which means none.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(clamping: seconds) * 1000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
