import CNGHTTP2
import HubCore
import Testing

@testable import GatewaySimulators

@Suite("Faults") struct FaultTests {
    private let path = "/3/device/\(Fixture.token)"

    private func primed(_ fixture: Fixture) throws -> (client: HTTP2Client, headers: [(String, String)]) {
        let client = try fixture.apnsClient()
        let headers = try fixture.apnsHeaders(providerToken: fixture.providerToken())
        _ = try client.send("POST", "/3/device/00", headers, body: Fixture.alert)
        try client.run(until: "SETTINGS") { client.announcedStreamsMax.count == 2 }
        return (client, headers)
    }

    @Test("a 410 carries its timestamp and ends after the given times")
    func gone() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(
            GatewayFault(status: 410, timestamp: 1_700_000_000_123, times: 2), token: Fixture.token)
        for _ in 0..<2 {
            let answer = try client.send("POST", path.uppercasedToken, headers, body: Fixture.alert)
            #expect(answer.status == 410)
            #expect(try answer.json == ["reason": "Unregistered", "timestamp": 1_700_000_000_123])
        }
        #expect(try client.send("POST", path, headers, body: Fixture.alert).status == 200)
    }

    @Test("a script of several faults is used up in order, and a refused request uses none")
    func script() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFaults(
            [GatewayFault(status: 503, retryAfter: "7", times: 1), GatewayFault(reason: "BadDeviceToken", times: 1)], token: "*")
        let refused = try client.send("POST", path, headers.filter { $0.0 != "apns-topic" }, body: Fixture.alert)
        #expect(refused.reason == "MissingTopic")
        let first = try client.send("POST", path, headers, body: Fixture.alert)
        #expect(first.status == 503 && first.reason == "ServiceUnavailable" && first.headers["retry-after"] == "7")
        let second = try client.send("POST", path, headers, body: Fixture.alert)
        #expect(second.status == 400 && second.reason == "BadDeviceToken")
        #expect(try client.send("POST", path, headers, body: Fixture.alert).status == 200)
    }

    @Test(
        "a reset stream ends with the code, and its connection goes on",
        arguments: [(GatewayFault.Action.reset, NGHTTP2_INTERNAL_ERROR.rawValue), (.refuse, NGHTTP2_REFUSED_STREAM.rawValue)])
    func reset(_ action: GatewayFault.Action, _ code: UInt32) throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(GatewayFault(action: action, times: 1), token: Fixture.token)
        let answer = try client.send("POST", path, headers, body: Fixture.alert)
        #expect(answer.endCode == code && answer.status == 0)
        #expect(try client.send("POST", path, headers, body: Fixture.alert).status == 200)
        #expect(fixture.gateways.requests(token: Fixture.token).map(\.reason) == [action.rawValue, ""])
    }

    @Test("GOAWAY in the middle of a hundred streams: the earlier ones are answered, the later ones are not processed")
    func goAway() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        let marked = String(repeating: "cd", count: 32)
        try fixture.gateways.setFault(GatewayFault(action: .goaway, times: 1), token: marked)
        let streams = (0..<100).map { index in
            client.submit("POST", index == 50 ? "/3/device/\(marked)" : path, headers, body: Fixture.alert)
        }
        try client.run(until: "the close") { false }
        #expect(client.isClosed)
        #expect(client.goAways.map(\.lastStream) == [streams[50]])
        #expect(client.goAways.first?.text == #"{"reason":"Shutdown"}"#)
        #expect(streams[...50].allSatisfy { client.responses[$0]?.status == 200 })
        #expect(streams[51...].allSatisfy { client.responses[$0]?.status == 0 })
        let processed = Set(fixture.gateways.requests().filter { $0.status == 200 }.map(\.stream))
        #expect(processed.isDisjoint(with: streams[51...]), "what was announced as not processed must not be recorded")
    }

    @Test("GOAWAY that leaves the stream unprocessed names the one before")
    func goAwayUnprocessed() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(
            GatewayFault(action: .goawayUnprocessed, reason: "BadCertificate", times: 1), token: Fixture.token)
        let stream = client.submit("POST", path, headers, body: Fixture.alert)
        try client.run(until: "the close") { false }
        #expect(client.goAways.map(\.lastStream) == [stream - 2])
        #expect(client.goAways.first?.text == #"{"reason":"BadCertificate"}"#)
        #expect(client.responses[stream]?.status == 0)
        #expect(try fixture.apnsClient().send("POST", path, headers, body: Fixture.alert).status == 200)
    }

    @Test("close ends the connection without a word")
    func close() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(GatewayFault(action: .close), token: Fixture.token)
        let stream = client.submit("POST", path, headers, body: Fixture.alert)
        try client.run(until: "the close") { false }
        #expect(client.isClosed && client.goAways.isEmpty && client.responses[stream]?.endCode == nil)
    }

    @Test("a delayed answer lets later ones overtake it")
    func delay() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(GatewayFault(delayMilliseconds: 300, times: 1), token: Fixture.token)
        let slow = client.submit("POST", path, headers, body: Fixture.alert)
        let quick = client.submit("POST", "/3/device/00", headers, body: Fixture.alert)
        try client.run(until: "the quick one") { client.responses[quick]?.endCode != nil }
        #expect(client.responses[slow]?.endCode == nil)
        try client.run(until: "the slow one") { client.responses[slow]?.endCode != nil }
        #expect(client.responses[slow]?.status == 200)
    }

    @Test("delayed answers come in the order of their moments, not of their requests")
    func delayOrder() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        for (token, milliseconds) in [("0a", 900), ("0b", 50), ("0c", 500)] {
            try fixture.gateways.setFault(GatewayFault(delayMilliseconds: milliseconds), token: token)
        }
        let streams = ["0a", "0b", "0c"].map { client.submit("POST", "/3/device/\($0)", headers, body: Fixture.alert) }
        var order: [Int32] = []
        try client.run(until: "the three answers") {
            for stream in streams where client.responses[stream]?.endCode != nil && !order.contains(stream) { order.append(stream) }
            return order.count == 3
        }
        #expect(order == [streams[1], streams[2], streams[0]])
    }

    @Test("an HTML page comes with 502")
    func html() throws {
        let fixture = try Fixture()
        let (client, headers) = try primed(fixture)
        try fixture.gateways.setFault(GatewayFault(action: .html), token: Fixture.token)
        let answer = try client.send("POST", path, headers, body: Fixture.alert)
        #expect(answer.status == 502 && answer.text.hasPrefix("<html>"))
        #expect(answer.headers["content-type"]?.hasPrefix("text/html") == true)
    }

    @Test("GOAWAY and close for every connection of a gateway")
    func everyConnection() throws {
        let fixture = try Fixture()
        let (first, _) = try primed(fixture)
        fixture.gateways.goAway(.apns)
        try first.run(until: "the close") { false }
        #expect(first.goAways.count == 1)
        let (second, _) = try primed(fixture)
        fixture.gateways.closeConnections(.apns)
        try second.run(until: "the close") { false }
        #expect(second.isClosed && second.goAways.isEmpty)
    }
}

extension String {
    /// The path with the token's letters in upper case, which APNs takes for the same token.
    fileprivate var uppercasedToken: String { replacing(Fixture.token, with: Fixture.token.uppercased()) }
}
