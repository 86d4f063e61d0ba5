/// nginx with nchan as loadtest/compare/peers/nginx.conf sets it up: the path subscribes, and a POST to the publisher's location publishes.
/// The answer is 201 with subscribers and 202 without.
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
