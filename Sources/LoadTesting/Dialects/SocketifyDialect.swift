/// uWebSockets with loadtest/compare/peers/socketify_server.py: a client sends the channel's name and receives `subscribed`; a POST
/// publishes.
package struct SocketifyDialect: Dialect {
    package let name = "socketify"
    private let authority: String

    /// - Parameter authority: for `Host:`.
    package init(authority: String) {
        self.authority = authority
    }

    package var subprotocol: String? { nil }
    package var isBinary: Bool { false }

    package func path(channel: String) -> String { "/" }

    package func opening(channel: String) -> [OpeningStep] {
        [OpeningStep(awaiting: nil) { _ in channel }, OpeningStep(awaiting: "subscribed")]
    }

    package func publish(channel: String, data: String) -> PublishAction {
        .http(PlainRequest.post("/publish/\(channel)", authority: authority, body: data))
    }
}
