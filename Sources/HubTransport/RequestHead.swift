internal import CLibWebSockets
internal import HubCore

/// Reads what libwebsockets parsed of a request's head.
///
/// It percent-decodes the path and the query, and cuts both at `;` and `&`; the pieces are its header fragments. In a path,
/// and in a query value, `;` is legal (channel names may have it), so such pieces are put together again with it.
enum RequestHead {
    /// Longest header or path piece that is looked at, in bytes.
    static let textBytesMax = 8192

    private static let methods: [(name: String, token: lws_token_indexes)] = [
        ("POST", WSI_TOKEN_POST_URI), ("GET", WSI_TOKEN_GET_URI), ("PUT", WSI_TOKEN_PUT_URI), ("DELETE", WSI_TOKEN_DELETE_URI),
        ("PATCH", WSI_TOKEN_PATCH_URI), ("OPTIONS", WSI_TOKEN_OPTIONS_URI), ("HEAD", WSI_TOKEN_HEAD_URI),
    ]

    /// The method and the decoded path; nil for a method that Tandem does not know.
    static func target(_ wsi: OpaquePointer) -> (method: String, path: String)? {
        for method in methods where unsafe lws_hdr_total_length(wsi, method.token) > 0 {
            return unsafe (method.name, fragments(wsi, method.token).joined(separator: ";"))
        }
        return nil
    }

    static func query(_ wsi: OpaquePointer) -> [(name: String, value: String)] {
        guard unsafe lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS) > 0 else { return [] }
        var parameters: [(name: String, value: String)] = []
        for fragment in unsafe fragments(wsi, WSI_TOKEN_HTTP_URI_ARGS) {
            if let equals = fragment.utf8.firstIndex(of: UInt8(ascii: "=")) {
                parameters.append((String(fragment[..<equals]), String(fragment[fragment.utf8.index(after: equals)...])))
            } else if parameters.isEmpty {
                // What the library makes of a question mark with nothing behind it.
                if fragment != "/" { parameters.append((fragment, "")) }
            } else {
                parameters[parameters.count - 1].value += ";" + fragment
            }
        }
        return parameters
    }

    /// A header that libwebsockets knows; nil when absent or longer than `textBytesMax`.
    static func header(_ wsi: OpaquePointer, _ token: lws_token_indexes) -> String? {
        let length = unsafe lws_hdr_total_length(wsi, token)
        guard length > 0, length < textBytesMax else { return nil }
        return unsafe text(capacity: Int(length) + 1) { unsafe lws_hdr_copy(wsi, $0, $1, token) }
    }

    /// Any other header, by its lower-case name.
    static func customHeader(_ wsi: OpaquePointer, _ name: StaticString) -> String? {
        let withColon = "\(name):"
        let length = unsafe lws_hdr_custom_length(wsi, withColon, Int32(withColon.utf8.count))
        guard length >= 0, length < textBytesMax else { return nil }
        return unsafe text(capacity: Int(length) + 1) {
            unsafe lws_hdr_custom_copy(wsi, $0, $1, withColon, Int32(withColon.utf8.count))
        }
    }

    private static func fragments(_ wsi: OpaquePointer, _ token: lws_token_indexes) -> [String] {
        var pieces: [String] = []
        var index: Int32 = 0
        while true {
            let length = unsafe lws_hdr_fragment_length(wsi, token, index)
            // An empty piece has length 0, as has the end; only a copy tells them apart.
            let piece = unsafe text(capacity: Int(length) + 1) { unsafe lws_hdr_copy_fragment(wsi, $0, $1, token, index) }
            guard let piece else { return pieces }
            pieces.append(piece)
            index += 1
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
