internal import CLibCurl

/// One easy handle and everything libcurl borrows from us while it works: body, header list, error text, collectors.
///
/// Belongs to the thread of its `CurlLoop` and is reused call after call. libcurl copies strings, but neither the body
/// nor the header list, so both live here until `finish`, which the loop calls only after taking the handle out of the
/// multi handle.
@safe final class CurlTransfer {
    let easy: UnsafeMutableRawPointer
    private let slot: Int
    private let errorText: UnsafeMutablePointer<CChar>
    private var body: UnsafeMutableBufferPointer<UInt8>?
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private(set) var completion: HTTPCompletion?
    private var wanted: Set<String> = []
    private var bodyBytesMax = 0
    private var receivedHeaders: [String: String] = [:]
    private var receivedBody: [UInt8] = []
    private var bodyTruncated = false

    /// Nil when libcurl cannot allocate a handle.
    init?(slot: Int) {
        guard let easy = unsafe curl_easy_init() else { return nil }
        unsafe self.easy = easy
        self.slot = slot
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe errorText.deallocate()
        freeBorrowed()
    }

    /// Sets the handle up for one call. After an error nothing is held and the transfer is free again.
    func prepare(
        _ call: HTTPCall, options: CurlOptions, share: UnsafeMutableRawPointer, completion: @escaping HTTPCompletion
    ) throws(HTTPClientError) {
        unsafe curl_easy_reset(easy)
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        receivedHeaders = [:]
        receivedBody = []
        bodyTruncated = false
        wanted = options.answerHeaders
        bodyBytesMax = options.answerBodyBytesMax
        do {
            unsafe try check(tandem_curl_set_share(easy, share))
            try setConnectionOptions(options)
            try setRequest(call, options: options)
            try setCallbacks()
        } catch {
            freeBorrowed()
            throw error
        }
        self.completion = completion
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
        // A shutdown must not wait for a name server that does not answer.
        try set(CURLOPT_QUICK_EXIT, 1)
        unsafe try check(tandem_curl_set_tcp_user_timeout(easy, UInt32(clamping: options.tcpUserTimeout.wholeMilliseconds)))
        // Otherwise libcurl takes a proxy from the environment, which only the composition root may read.
        try set(CURLOPT_PROXY, "")
        if let caFile = options.caFile { try set(CURLOPT_CAINFO, caFile) }
    }

    private func setRequest(_ call: HTTPCall, options: CurlOptions) throws(HTTPClientError) {
        let isClear = URLParts(call.url)?.scheme == "http"
        try set(CURLOPT_URL, call.url)
        try set(CURLOPT_PROTOCOLS_STR, isClear ? "http" : "https")
        let priorKnowledge = isClear && options.clearTextHTTP2
        try set(CURLOPT_HTTP_VERSION, Int(priorKnowledge ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS))
        switch call.method {
        case "GET": try set(CURLOPT_HTTPGET, 1)
        case "HEAD": try set(CURLOPT_NOBODY, 1)
        default: try set(CURLOPT_POST, 1)
        }
        if !["GET", "HEAD", "POST"].contains(call.method) { try set(CURLOPT_CUSTOMREQUEST, call.method) }
        if call.method != "GET", call.method != "HEAD" {
            // Never an empty allocation: a null pointer would make libcurl read the body from standard input.
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, call.body.count))
            _ = unsafe copy.initialize(from: call.body)
            unsafe body = copy
            unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_POSTFIELDS, copy.baseAddress))
            unsafe try check(tandem_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(call.body.count)))
        }
        // Headers that libcurl adds on its own and nobody asked for.
        for name in ["Accept", "Expect", "Content-Type"]
        where !call.headers.contains(where: { $0.name.lowercased() == name.lowercased() }) {
            try appendHeaderLine("\(name):")
        }
        for header in call.headers {
            // An empty value needs libcurl's own spelling; `Name:` would remove the header.
            try appendHeaderLine(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        unsafe try check(tandem_curl_set_list(easy, CURLOPT_HTTPHEADER, headerList))
    }

    private func setCallbacks() throws(HTTPClientError) {
        // The loop keeps the transfer as long as libcurl has the handle, so an unretained reference stays good.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        unsafe try check(tandem_curl_set_pointer(easy, CURLOPT_PRIVATE, UnsafeMutableRawPointer(bitPattern: slot + 1)))
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

    /// Keeps what fits and drops the rest: refusing bytes would end the whole connection, which others are using.
    private func received(body chunk: UnsafeRawBufferPointer) {
        let room = bodyBytesMax - receivedBody.count
        if chunk.count > room { bodyTruncated = true }
        unsafe receivedBody.append(contentsOf: chunk.prefix(max(0, room)))
    }

    private func received(headerLine line: UnsafeRawBufferPointer) {
        let text = unsafe String(decoding: line, as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            // An interim answer (1xx) came before: its headers are not the answer's.
            receivedHeaders = [:]
            return
        }
        guard let colon = text.firstIndex(of: ":") else { return }
        let name = text[..<colon].lowercased()
        guard wanted.contains(name) else { return }
        let value = text[text.index(after: colon)...]
        receivedHeaders[name] = String(value.trimmingWhitespace())
    }

    /// Reads the outcome and lets go of what libcurl had borrowed. Only after the handle left its multi handle.
    func finish(_ code: CurlCode) -> (result: Result<HTTPAnswer, HTTPClientError>, completion: HTTPCompletion?) {
        let completion = completion
        self.completion = nil
        defer { freeBorrowed() }
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
            connectionsOpened: long(CURLINFO_NUM_CONNECTS))
        return (.success(answer), completion)
    }

    private func failure(_ code: CurlCode) -> HTTPClientError {
        // A time-out says nothing by itself; libcurl stamps the moment it was ready to send.
        var readyToSend: curl_off_t = 0
        unsafe tandem_curl_get_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &readyToSend)
        let notSent = code.meansNotSent || code == .operationTimedOut && readyToSend == 0
        let specific = unsafe String(cString: errorText)
        return HTTPClientError(
            reason: .transport(code), delivery: notSent ? .notSent : .outcomeUnknown,
            detail: specific.isEmpty ? code.description : specific)
    }

    private func freeBorrowed() {
        unsafe body?.deallocate()
        unsafe body = nil
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = nil
    }

    private func appendHeaderLine(_ line: String) throws(HTTPClientError) {
        guard let longer = unsafe curl_slist_append(headerList, line) else { throw .invalidCall("out of memory for headers") }
        unsafe headerList = longer
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
    /// Milliseconds, rounded up so that a short time-out never becomes libcurl's 0, which means none.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(clamping: seconds) * 1000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

extension Substring {
    fileprivate func trimmingWhitespace() -> Substring {
        var text = self
        while let first = text.unicodeScalars.first, " \t\r\n".unicodeScalars.contains(first) { text = text.dropFirst() }
        while let last = text.unicodeScalars.last, " \t\r\n".unicodeScalars.contains(last) { text = text.dropLast() }
        return text
    }
}
