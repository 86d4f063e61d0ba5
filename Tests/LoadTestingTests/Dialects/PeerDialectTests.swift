import LoadTesting
import Testing

@Suite("How the peers of a comparison are spoken to")
struct PeerDialectTests {
    /// Messages that a client sends until it is subscribed, given the server's.
    private func said(_ steps: [OpeningStep], hearing messages: [String]) -> [String] {
        var messages = messages[...]
        return steps.compactMap { step in
            var heard = ""
            if let awaited = step.awaited {
                while let message = messages.popFirst(), !message.contains(awaited) {}
                heard = awaited
            }
            return step.reply?(heard)
        }
    }

    private func request(_ action: PublishAction) -> String {
        switch action {
        case .http(let bytes): String(decoding: bytes, as: UTF8.self)
        case .webSocket(let message): message
        }
    }

    @Test("publishes over HTTP are whole requests whose length counts bytes", arguments: ["floor", "nchan", "socketify"])
    func posts(_ name: String) {
        let authority = "127.0.0.1:1234"
        let dialect: any Dialect =
            switch name {
            case "floor": FloorDialect(authority: authority)
            case "nchan": NchanDialect(authority: authority)
            default: SocketifyDialect(authority: authority)
            }
        #expect(dialect.name == name)
        #expect(
            request(dialect.publish(channel: "room", data: "{\"n\":\"é\"}"))
                == "POST /publish/room HTTP/1.1\r\nHost: 127.0.0.1:1234\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"n\":\"é\"}"
        )
        #expect(!dialect.isBinary && dialect.subprotocol == nil)
    }

    @Test("the path subscribes at the floor and at nchan")
    func paths() {
        for dialect in [FloorDialect(authority: "a"), NchanDialect(authority: "a")] as [any Dialect] {
            #expect(dialect.path(channel: "room") == "/channel/room")
            #expect(dialect.opening(channel: "room").isEmpty)
        }
    }

    @Test("uWebSockets is told the channel, and says when it is subscribed")
    func socketify() {
        let steps = SocketifyDialect(authority: "a").opening(channel: "room")
        #expect(said(steps, hearing: ["subscribed"]) == ["room"])
        #expect(steps.map(\.awaited) == [nil, "subscribed"])
    }

    @Test("NATS is spoken to in its own protocol, whose PONG ends the opening")
    func nats() {
        let dialect = NATSDialect()
        let connect = "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"tandem\",\"version\":\"1\"}\r\n"
        let steps = dialect.opening(channel: "room")
        #expect(said(steps, hearing: ["INFO {}\r\n", "PONG\r\n"]) == ["\(connect)SUB room 1\r\nPING\r\n"])
        #expect(steps.last?.awaited == "PONG" && dialect.isBinary)
        #expect(request(dialect.publish(channel: "room", data: "{\"é\":1}")) == "PUB room 8\r\n{\"é\":1}\r\n")
    }
}
