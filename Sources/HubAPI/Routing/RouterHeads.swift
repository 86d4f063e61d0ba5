internal import HubChannels
package import HubCore
internal import PusherProtocol

/// Check of a request before its body.
extension Router {
    /// Bytes of the body of an unsigned request, and of an operator's: joins, the console, other participant routes, unknown paths.
    package static let unsignedBodyBytesMax = 1 << 16

    /// Limit on the body, or a refusal that saves sending it. A signed request must name a known key and the present time, and have
    /// something of the form of a signature.
    package func bodyLimit(of head: HTTPRequest) -> BodyLimit {
        let refusal: HTTPResponse
        switch signedApp(head) {
        case .unsigned: return .bytes(Self.unsignedBodyBytesMax)
        case .unknown(let response): refusal = response
        case .app(let app):
            do throws(RequestAuth.Refusal) {
                try RequestAuth.checkHead(head, nowSeconds: time.wallSeconds, key: { app.signers[$0] })
                return .bytes(.max)
            } catch {
                refusal = .error(401, error.message)
            }
        }
        return .refused(head.headers["origin"].map { cors.allow(refusal, for: $0) } ?? refusal)
    }

    private enum SignedApp {
        case unsigned
        case unknown(HTTPResponse)
        case app(App)
    }

    /// The app whose secret must sign a request with this path.
    private func signedApp(_ head: HTTPRequest) -> SignedApp {
        if let id = Self.publisher(head.path) { return signedApp(id: id) }
        if ConsoleAPI.owns(head.path) { return .unsigned }
        let components = Self.components(head.path)
        if components.first == OperatorAPI.root { return .unsigned }
        if UsersResource.userWithoutApp(components) != nil {
            return head.parameter("auth_key").flatMap { engine.apps.app(key: $0) }.map { .app($0) }
                ?? .unknown(.error(401, "Unknown auth_key"))
        }
        guard let apps = components.firstIndex(of: "apps"), apps + 1 < components.count else { return .unsigned }
        return signedApp(id: components[apps + 1])
    }

    private func signedApp(id: String) -> SignedApp {
        engine.apps.app(id: id).map { .app($0) } ?? .unknown(Self.noApp(id))
    }
}
