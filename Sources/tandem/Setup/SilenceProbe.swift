import CLibCurl
import Foundation
import HubConfiguration
import HubServer

/// One WebSocket through everything that stands before the hub, held without a word until the hub pings, or until somebody ends it.
struct SilenceProbe {
    /// Address of the hub for its clients.
    let url: String
    /// Key of an app.
    let key: String
    /// Time without a word after which the probe ends.
    let most: Duration

    private static let connectSeconds = 10
    private static let lookEvery: Duration = .milliseconds(20)
    /// Bytes of an answer that are looked at.
    private static let answerMax = 64 << 10
    /// First bytes of frames (RFC 6455, 5.5).
    private static let (ping, close): (UInt8, UInt8) = (0x89, 0x88)

    /// Waits up to `most`.
    func hold() async -> Silence {
        guard let easy = unsafe curl_easy_init() else { return .refused("libcurl has no memory") }
        defer { unsafe curl_easy_cleanup(easy) }
        unsafe tandem_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        unsafe tandem_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        unsafe tandem_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, Self.connectSeconds)
        // A proxy that may choose speaks HTTP/2, which has no upgrade.
        unsafe tandem_curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        if NetworkAddress.isLoopback(URLComponents(string: url)?.host ?? "") {
            unsafe tandem_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 0)
            unsafe tandem_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 0)
        }
        unsafe tandem_curl_set_string(easy, CURLOPT_URL, url)
        let code = unsafe curl_easy_perform(easy)
        guard code == CURLE_OK else { return .refused(unsafe String(cString: curl_easy_strerror(code))) }
        let request = Array(self.request.utf8)
        var sent = 0
        guard unsafe curl_easy_send(easy, request, request.count, &sent) == CURLE_OK, sent == request.count else {
            return .refused("the connection ended")
        }
        return unsafe await listen(easy)
    }

    private var request: String {
        let parts = URLComponents(string: url)
        let host = parts?.host ?? ""
        return """
            GET \(parts?.path ?? "")/app/\(key)?protocol=7&client=tandem-doctor HTTP/1.1\r
            Host: \(host)\(parts?.port.map { ":\($0)" } ?? "")\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGFuZGVtIGRvY3RvciBhcw==\r
            \r

            """
    }

    private func listen(_ easy: UnsafeMutableRawPointer) async -> Silence {
        var (bytes, since) = ([UInt8](), ContinuousClock.now)
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            var count = 0
            let code = unsafe curl_easy_recv(easy, &piece, piece.count, &count)
            let silence = ContinuousClock.now - since
            let head = Self.head(bytes)
            if code == CURLE_AGAIN {
                if silence >= most { return head == nil ? .refused("there is no answer to the upgrade") : .unbroken(silence) }
                try? await Task.sleep(for: Self.lookEvery)
                continue
            }
            guard code == CURLE_OK, count > 0 else {
                return head == nil ? .refused("the connection ended") : .ended(silence)
            }
            if head != nil, piece[0] == Self.ping { return .pinged(silence) }
            if head != nil, piece[0] == Self.close { return .ended(silence) }
            if bytes.count < Self.answerMax { bytes += piece.prefix(count) }
            if let head = Self.head(bytes), !head.hasPrefix("HTTP/1.1 101") {
                return .refused(String(head.prefix { $0 != "\r\n" && $0 != "\r" }))
            }
            if let error = String(decoding: bytes, as: UTF8.self).firstRange(of: "pusher:error") {
                return .refused(String(decoding: bytes, as: UTF8.self)[error.lowerBound...].filter { $0 != "\\" })
            }
            since = .now
        }
    }

    /// The answer's head; nil until it is whole.
    private static func head(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes.prefix(answerMax), as: UTF8.self)
        return text.contains("\r\n\r\n") ? text : nil
    }
}
