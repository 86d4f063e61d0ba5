internal import CLibCurl
internal import Synchronization

/// Checks of a call before libcurl gets it.
extension HTTPCall {
    /// Nil if the call can be sent; otherwise its fault, without a quotation of the call.
    /// - Parameter origins: addresses checked earlier.
    func fault(clearText: CurlOptions.ClearText, origins: KnownOrigins = KnownOrigins()) -> String? {
        if method.isEmpty || !method.hasOnly(Self.isTokenByte) { return "the request's method is not an HTTP token" }
        for header in headers {
            if header.name.isEmpty || !header.name.hasOnly(Self.isTokenByte) {
                return "a request header's name is not an HTTP token"
            }
            // A line break in a value would forge further headers; libcurl sends values unchanged.
            if !header.value.hasOnly({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) {
                return "the request header \(header.name) holds a control character"
            }
        }
        if origins.contain(url) { return nil }
        guard let parts = URLParts(url) else { return "the request's URL cannot be parsed" }
        switch parts.scheme {
        case "https":
            origins.learn(url)
            return nil
        case "http":
            if clearText == .anywhere || parts.isLoopback {
                origins.learn(url)
                return nil
            }
            return "the request's URL is http:// and its host is not a loopback address; use https://"
        default: return "the request's URL has a scheme other than https"
        }
    }

    /// Whether the call goes without TLS. For URLs without a fault.
    var isClear: Bool { url.prefix(5).lowercased() == "http:" }

    /// RFC 9110, 5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: "!#$%&'*+.^_`|~".utf8.contains(byte)
        }
    }
}

extension String {
    /// Whether every byte is allowed. Reads contiguous storage, because a view's indices cost more than the check.
    func hasOnly(_ isAllowed: (UInt8) -> Bool) -> Bool {
        unsafe utf8.withContiguousStorageIfAvailable { unsafe $0.allSatisfy(isAllowed) } ?? utf8.allSatisfy(isAllowed)
    }
}

/// Scheme, host and port of URLs that passed the check. A gateway's URLs share them, and libcurl's URL parser takes
/// a good part of a call's whole cost.
final class KnownOrigins: Sendable {
    /// Webhooks use more origins, but few requests.
    private static let countMax = 8
    /// Characters that need a parser: a user name before the host, an escape.
    private static let special = Set("@\\?#%".utf8)
    /// Each ends with the slash after the port, so that no following text can become part of the host.
    private let known = Mutex<[String]>([])

    func contain(_ url: String) -> Bool {
        guard known.withLock({ $0.contains { url.hasPrefix($0) } }) else { return false }
        return url.hasOnly { $0 > 0x20 && $0 < 0x7F }
    }

    func learn(_ url: String) {
        // The third slash ends the origin: `https://host:port/`.
        let ends = Array(url.utf8.indices.lazy.filter { url.utf8[$0] == UInt8(ascii: "/") }.prefix(3))
        guard ends.count == 3 else { return }
        let origin = url[...ends[2]]
        guard origin.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !Self.special.contains($0) }) else { return }
        known.withLock { known in
            if known.count < Self.countMax, !known.contains(String(origin)) { known.append(String(origin)) }
        }
    }
}

/// The parts of a URL that decide about its permission. libcurl itself parses the URL, so the check sees the address that is called.
package struct URLParts: Equatable, Sendable {
    /// Lower case.
    package let scheme: String
    /// Without brackets.
    package let host: String

    /// Nil if libcurl cannot make an absolute URL of the text.
    package init?(_ text: String) {
        // An embedded NUL would end the C string early and hide the rest from the check.
        guard !text.utf8.contains(0), let url = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(url) }
        guard unsafe curl_url_set(url, CURLUPART_URL, text, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK,
            let scheme = unsafe Self.part(CURLUPART_SCHEME, of: url), let host = unsafe Self.part(CURLUPART_HOST, of: url)
        else { return nil }
        self.scheme = scheme.lowercased()
        self.host = host.hasPrefix("[") ? String(host.dropFirst().prefix { $0 != "]" }) : host
    }

    /// True for hosts that are always this machine, regardless of name servers; libcurl resolves `localhost` itself.
    package var isLoopback: Bool {
        if host.lowercased() == "localhost" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(url, part, &text, 0) == CURLUE_OK, let text = unsafe text else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }
}
