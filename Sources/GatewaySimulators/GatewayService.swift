import HubCore

/// One complete request, whichever HTTP version brought it.
struct ReceivedRequest {
    /// The connection's number on its port, from 1.
    var connection: UInt64
    /// HTTP/2 stream; 0 over HTTP/1.1.
    var stream: Int32
    var method = ""
    /// As sent, query included.
    var target = ""
    /// Lower-case names, in the order received, without HTTP/2's pseudo headers.
    var headers: [(name: String, value: String)] = []
    /// At most `SimulatorLimits.bodyBytesKept` of the body.
    var body: [UInt8] = []
    /// Length of the body as sent.
    var bodyBytes = 0
    /// The headers exceeded `SimulatorLimits`, so some are missing.
    var isHeaderListTooLarge = false

    func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }

    /// The target's path, percent-decoded per segment, so that an encoded slash stays inside its segment.
    var pathSegments: [String] {
        target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { PercentEncoding.decode(String($0), plusIsSpace: false) }
    }

    var query: [(name: String, value: String)] {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        return PercentEncoding.parameters(String(target[target.index(after: mark)...]))
    }
}

/// The reply to one request.
struct Reply {
    enum Action {
        case respond(HTTPResponse)
        /// RST_STREAM with this HTTP/2 error code.
        case reset(code: UInt32)
        /// GOAWAY with this stream as the last processed one, then the answer.
        case goAway(reason: String, response: HTTPResponse)
        /// GOAWAY that declares this stream as not processed.
        case goAwayUnprocessed(reason: String, code: UInt32)
        /// Closes the TCP connection without an answer.
        case closeConnection
    }

    var action: Action
    var delayMilliseconds = 0
    /// A new SETTINGS_MAX_CONCURRENT_STREAMS for this connection, sent with the answer.
    var streamsMax: Int?

    static func respond(_ response: HTTPResponse) -> Reply {
        Reply(action: .respond(response))
    }
}

/// A service's state of one connection: created with it, used only on its server's thread.
final class PeerState {
    var hasSucceeded = false
    var providerToken = ""
    /// Monotonic milliseconds of the provider token's first use on this connection.
    var providerTokenSince: UInt64 = 0
}

/// One simulated service: turns requests into replies. Called on its server's thread only.
protocol GatewayService: AnyObject {
    func reply(to request: ReceivedRequest, from peer: PeerState) -> Reply
}
