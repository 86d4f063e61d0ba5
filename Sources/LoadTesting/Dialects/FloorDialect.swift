/// The bare broadcaster of a comparison (loadtest/compare/peers/floor.c): the path subscribes, and a POST publishes.
package struct FloorDialect: Dialect {
    package let name = "floor"
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
