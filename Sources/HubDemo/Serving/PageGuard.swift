package import HubCore

/// Lets the demo's own page in, which has this address and knows the random token in it, and nobody else.
///
/// A page of another site can send requests to loopback, also by a name that it points there. It knows neither the token, nor can it
/// forge `Host` or `Origin`.
package struct PageGuard: Sendable {
    private let token: String
    private let host: String

    /// - Parameters:
    ///   - token: the first part of every path.
    ///   - port: of the server on loopback.
    package init(token: String, port: UInt16) {
        self.token = token
        host = "127.0.0.1:\(port)"
    }

    /// The path behind the token, for instance `state`; empty for the page itself. A failure is the answer for a stranger.
    package func path(of request: HTTPRequest) -> Result<String, Refusal> {
        guard request.headers["host"] == host else { return .failure(.foreignHost) }
        if let origin = request.headers["origin"] {
            guard origin == "http://\(host)" else { return .failure(.foreignOrigin) }
        } else if request.method != "GET" && request.method != "HEAD" {
            // Browsers name the origin of every POST.
            return .failure(.foreignOrigin)
        }
        let prefix = "/\(token)/"
        guard request.path.hasPrefix(prefix) else { return .failure(.unknown) }
        return .success(String(request.path.dropFirst(prefix.count)))
    }

    /// Why a request is refused.
    package enum Refusal: Error, Equatable {
        case foreignHost, foreignOrigin, unknown

        /// The answer.
        package var response: HTTPResponse {
            switch self {
            case .foreignHost: .error(421, "this server answers on 127.0.0.1 alone: use the address that `tandem demo` printed")
            case .foreignOrigin: .error(403, "pages of other origins may not use the demo")
            case .unknown: .error(404, "nothing is here: use the whole address that `tandem demo` printed")
            }
        }
    }
}
