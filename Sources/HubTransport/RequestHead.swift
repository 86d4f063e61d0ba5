internal import CLibWebSockets
internal import HubCore

/// Reads what libwebsockets parsed of a request's head.
///
/// It percent-decodes the path and the query, and cuts both at `;` and `&`; the pieces are its header fragments. In a path,
/// and in a query value, `;` is legal (channel names may have it), so such pieces are put together again with it.
enum RequestHead {
    /// Requests that have a body.
    static let methodsWithBody: Set<String> = ["POST", "PUT", "PATCH"]
    /// Longest header or path piece that is looked at, in bytes.
    static let textBytesMax = 8192

    /// Enough for a signed request, so that its parameters are read without growing an array four times.
    private static let parametersUsual = 8

    private static let methods: [(name: String, token: lws_token_indexes)] = [
        ("POST", WSI_TOKEN_POST_URI), ("GET", WSI_TOKEN_GET_URI), ("PUT", WSI_TOKEN_PUT_URI), ("DELETE", WSI_TOKEN_DELETE_URI),
        ("PATCH", WSI_TOKEN_PATCH_URI), ("OPTIONS", WSI_TOKEN_OPTIONS_URI), ("HEAD", WSI_TOKEN_HEAD_URI),
    ]

    /// The method and the decoded path; nil for a method that Tandem does not know.
    static func target(_ wsi: OpaquePointer) -> (method: String, path: String)? {
        for method in methods where unsafe lws_hdr_total_length(wsi, method.token) > 0 {
            var path: String?
            unsafe forEachFragment(wsi, method.token) { piece in
                let text = unsafe String(decoding: piece, as: UTF8.self)
                path = path.map { $0 + ";" + text } ?? text
            }
            return (method.name, path ?? "")
        }
        return nil
    }

    static func query(_ wsi: OpaquePointer) -> HTTPQuery {
        var query = HTTPQuery()
        query.reserve(parameters: parametersUsual, bytes: Int(unsafe lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS)) + parametersUsual)
        unsafe forEachFragment(wsi, WSI_TOKEN_HTTP_URI_ARGS) { piece in
            if unsafe query.isEmpty || piece.contains(UInt8(ascii: "=")) {
                // A slash is what the library makes of a question mark with nothing behind it.
                if unsafe !(query.isEmpty && piece.elementsEqual("/".utf8)) { unsafe query.append(piece) }
            } else {
                query.appendToLastValue(CollectionOfOne(UInt8(ascii: ";")))
                unsafe query.appendToLastValue(piece)
            }
        }
        return query
    }

    /// The headers that the layers above read, by lower-case name.
    static func headers(_ wsi: OpaquePointer) -> [String: String] {
        var headers: [String: String] = [:]
        // Storing nil would cost as much as storing a value, and nearly all are absent from a publish.
        for (name, token) in knownHeaders { if let value = unsafe header(wsi, token) { headers[name] = value } }
        for (name, nameAndColon) in customHeaders {
            if let value = unsafe customHeader(wsi, nameAndColon) { headers[name] = value }
        }
        return headers
    }

    private static let knownHeaders: [(name: String, token: lws_token_indexes)] = [
        ("authorization", WSI_TOKEN_HTTP_AUTHORIZATION), ("origin", WSI_TOKEN_ORIGIN), (forwardedFor, WSI_TOKEN_X_FORWARDED_FOR),
    ]
    /// Several lines of it are one, joined by commas.
    static let forwardedFor = "x-forwarded-for"
    private static let customHeaders: [(name: String, nameAndColon: StaticString)] = [
        ("x-client-id", "x-client-id:"),
        // Two spellings of one; the later in this list counts where both are sent.
        ("idempotency-key", "x-idempotency-key:"), ("idempotency-key", "idempotency-key:"),
    ]

    /// A header that libwebsockets knows; nil when absent or longer than `textBytesMax`.
    static func header(_ wsi: OpaquePointer, _ token: lws_token_indexes) -> String? {
        let length = unsafe lws_hdr_total_length(wsi, token)
        guard length > 0, length < textBytesMax else { return nil }
        return unsafe text(capacity: Int(length) + 1) { unsafe lws_hdr_copy(wsi, $0, $1, token) }
    }

    /// Any other header, by its lower-case name with the colon behind it.
    static func customHeader(_ wsi: OpaquePointer, _ nameAndColon: StaticString) -> String? {
        let count = Int32(nameAndColon.utf8CodeUnitCount)
        return unsafe nameAndColon.utf8Start.withMemoryRebound(to: CChar.self, capacity: Int(count)) { name in
            let length = unsafe lws_hdr_custom_length(wsi, name, count)
            guard length >= 0, length < textBytesMax else { return nil }
            return unsafe text(capacity: Int(length) + 1) { unsafe lws_hdr_custom_copy(wsi, $0, $1, name, count) }
        }
    }

    /// Calls `body` with each piece in turn. The bytes are overwritten by the next.
    private static func forEachFragment(_ wsi: OpaquePointer, _ token: lws_token_indexes, _ body: (UnsafeRawBufferPointer) -> Void) {
        // Room for all pieces together and the terminator is room for each.
        let capacity = unsafe lws_hdr_total_length(wsi, token) + 1
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(capacity)) { buffer in
            guard let base = buffer.baseAddress else { return }
            var index: Int32 = 0
            // An empty piece has length 0; behind the last one it is negative.
            while case let count = unsafe lws_hdr_copy_fragment(wsi, base, capacity, token, index), count >= 0 {
                unsafe body(UnsafeRawBufferPointer(start: base, count: Int(count)))
                index += 1
            }
        }
    }

    private static func text(capacity: Int, _ copy: (UnsafeMutablePointer<CChar>, Int32) -> Int32) -> String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let length = unsafe copy(base, Int32(capacity))
            guard length >= 0 else { return nil }
            return unsafe String(decoding: UnsafeRawBufferPointer(start: base, count: Int(length)), as: UTF8.self)
        }
    }
}
