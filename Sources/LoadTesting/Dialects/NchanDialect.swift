/// nginx with nchan as loadtest/compare/peers/nginx.conf sets it up: the path subscribes, and a POST to the publisher's location publishes.
/// It answers 201 where somebody listens and 202 where nobody does.
package struct NchanDialect: Dialect {
    package let name = "nchan"
    private let authority: String

    /// - Parameter authority: for `Host:`.
    package init(authority: String) {
        self.authority = authority
    }

    package var subprotocol: String? { nil }
    package var isBinary: Bool { false }

    package func path(channel: String) -> String { "/channel/\(channel)" }

    package func opening(channel: String) -> [OpeningStep] { [] }

    package func publish(channel: String, data: String) -> PublishAction {
        .http(PlainRequest.post("/publish/\(channel)", authority: authority, body: data))
    }
}
