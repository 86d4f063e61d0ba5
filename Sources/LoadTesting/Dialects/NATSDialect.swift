/// nats-server over its WebSocket: the NATS client protocol in binary frames (docs.nats.io/reference/reference-protocols/nats-protocol).
/// It has no publish over HTTP; publishers are WebSockets as well, and nothing answers a `PUB`.
package struct NATSDialect: Dialect {
    package let name = "nats"

    package init() {}

    package var subprotocol: String? { nil }
    package var isBinary: Bool { true }

    /// The server sends the messages waiting for a client as one frame.
    package var joinsEvents: Bool { true }

    package func path(channel: String) -> String { "/" }

    package func opening(channel: String) -> [OpeningStep] {
        greeting("SUB \(channel) 1\r\n")
    }

    package func publisherOpening(channel: String) -> [OpeningStep] {
        greeting("")
    }

    /// The server answers in order, so its `PONG` confirms the subscription.
    private func greeting(_ subscription: String) -> [OpeningStep] {
        let connect = "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"tandem\",\"version\":\"1\"}\r\n"
        return [OpeningStep(awaiting: "INFO ") { _ in "\(connect)\(subscription)PING\r\n" }, OpeningStep(awaiting: "PONG")]
    }

    package func publish(channel: String, data: String) -> PublishAction {
        .webSocket("PUB \(channel) \(data.utf8.count)\r\n\(data)\r\n")
    }
}
