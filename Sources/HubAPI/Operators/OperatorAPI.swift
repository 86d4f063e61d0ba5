package import HubCore
internal import HubCrypto
internal import PusherProtocol

/// Routes of operators, below `/operator`. Their requests are signed like those of backends, with the operator's key. Any thread.
package struct OperatorAPI: Sendable {
    /// First component of every path.
    static let root = "operator"

    private let credential: (key: String, secret: HMACKey)?
    private let apps: AppsResource
    let cluster: ClusterResource
    private let time: any TimeSource

    /// - Parameter credential: the operator's key and secret; nil: all requests are refused.
    package init(credential: (key: String, secret: String)?, apps: any AppPort, cluster: any ClusterPort, time: any TimeSource) {
        self.credential = credential.map { ($0.key, HMACKey($0.secret)) }
        self.apps = AppsResource(apps: apps)
        self.cluster = ClusterResource(cluster: cluster)
        self.time = time
    }

    /// Answers a request, or returns nil and calls `later` once.
    /// - Parameter path: the components, the first of which is `root`.
    func respond(to request: HTTPRequest, _ path: [String], later: LateAnswer) -> HTTPResponse? {
        guard let credential else {
            return .error(
                403, "the hub has no operator key: write operator: with key and secret into the configuration, and start it again")
        }
        do {
            try RequestAuth.verify(request, nowSeconds: time.wallSeconds) { $0 == credential.key ? credential.secret : nil }
        } catch {
            return .error(401, error.message)
        }
        let (apps, cluster) = (apps, cluster)
        Task {
            do {
                let path = Array(path.dropFirst())
                if let response = try await apps.respond(to: request, path) { return later(response) }
                later(try await cluster.respond(to: request, path) ?? .nothing(at: request))
            } catch let refusal as AppRefusal {
                later(.error(refusal.status, refusal.sentence))
            } catch {
                later(APIError(answering: error).response)
            }
        }
        return nil
    }
}
