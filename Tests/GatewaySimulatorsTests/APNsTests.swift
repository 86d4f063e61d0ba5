import HubCore
import HubCrypto
import Testing

@testable import GatewaySimulators

@Suite("APNs") struct APNsTests {
    @Test("a valid push is accepted, echoed by its id and recorded")
    func accepted() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let answer = try client.send("POST", "/3/device/\(Fixture.token)", fixture.apnsHeaders(), body: Fixture.alert)
        #expect(answer.status == 200)
        #expect(answer.headers["apns-id"] == "0f8fad5b-d9cb-469f-a165-70867728950e")
        #expect(answer.body.isEmpty)

        let record = try #require(fixture.gateways.requests(provider: .apns, token: Fixture.token).first)
        #expect(record.status == 200 && record.reason.isEmpty && record.connection == 1 && record.stream == 1)
        #expect(record.json?["aps"]?["alert"]?["title"] == "T")
        #expect(record.header("apns-topic") == "com.example.app")
        #expect(record.credential?["claims"]?["iss"] == "TANDEMTEAM")
        #expect(record.header("authorization")?.hasPrefix("sha256:") == true)
        #expect(abs(record.receivedAt / 1000 - Fixture.now) < 60)
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var changes: [String: String?] = [:]
        var path = "/3/device/" + Fixture.token
        var method = "POST"
        var body = Fixture.alert
        let status: Int
        let reason: String
        var testDescription: String { "\(reason) \(changes) \(path.count) \(body.count)" }
    }

    static let background = Array(#"{"aps":{"content-available":1}}"#.utf8)
    static let refusals = [
        Case(changes: ["authorization": nil], status: 403, reason: "MissingProviderToken"),
        Case(changes: ["authorization": "basic abc"], status: 403, reason: "MissingProviderToken"),
        Case(changes: ["authorization": "bearer nonsense"], status: 403, reason: "InvalidProviderToken"),
        Case(changes: ["apns-topic": nil], status: 400, reason: "MissingTopic"),
        Case(changes: ["apns-topic": "com example"], status: 400, reason: "BadTopic"),
        Case(changes: ["apns-topic": "com.example.app.voip"], status: 400, reason: "BadTopic"),
        Case(changes: ["apns-topic": "org.other"], status: 400, reason: "DeviceTokenNotForTopic"),
        Case(changes: ["apns-push-type": "loud"], status: 400, reason: "InvalidPushType"),
        Case(body: background, status: 400, reason: "InvalidPushType"),
        Case(changes: ["apns-push-type": "background", "apns-priority": "5"], status: 400, reason: "InvalidPushType"),
        Case(changes: ["apns-push-type": "background"], body: background, status: 400, reason: "BadPriority"),
        Case(changes: ["apns-push-type": "background", "apns-priority": nil], body: background, status: 400, reason: "BadPriority"),
        Case(changes: ["apns-priority": "7"], status: 400, reason: "BadPriority"),
        Case(changes: ["apns-expiration": "soon"], status: 400, reason: "BadExpirationDate"),
        Case(changes: ["apns-collapse-id": String(repeating: "ä", count: 33)], status: 400, reason: "BadCollapseId"),
        Case(changes: ["apns-id": "0F8FAD5B-D9CB-469F-A165-70867728950E"], status: 400, reason: "BadMessageId"),
        Case(path: "/3/device/xyz0", status: 400, reason: "BadDeviceToken"),
        Case(path: "/3/device/abc", status: 400, reason: "BadDeviceToken"),
        Case(path: "/3/device/", status: 400, reason: "MissingDeviceToken"),
        Case(path: "/3/devices/" + Fixture.token, status: 404, reason: "BadPath"),
        Case(method: "GET", body: [], status: 405, reason: "MethodNotAllowed"),
        Case(body: [], status: 400, reason: "PayloadEmpty"),
        Case(body: Array("{\"aps\":".utf8), status: 400, reason: "InvalidPayload"),
        Case(body: Array("{\"other\":1}".utf8), status: 400, reason: "InvalidPayload"),
        aps(#""badge":-1,"alert":"x""#, "aps.badge: not a whole number from 0"),
        aps(#""alert":7"#, "aps.alert: neither text nor object"),
        aps(#""alert":{"titel":"x"}"#, "aps.alert: Apple knows no member titel"),
        aps(#""alert":{"loc-args":["x"]}"#, "aps.alert: loc-args without loc-key"),
        aps(#""alert":{"loc-key":"k","loc-args":[1]}"#, "aps.alert: loc-args is not a list of texts"),
        aps(#""alert":"x","sound":{"critical":1}"#, "aps.sound: has no name"),
        aps(#""alert":"x","sound":{"name":"s","volume":2}"#, "aps.sound: volume is not from 0 to 1"),
        aps(#""alert":"x","mutable-content":true"#, "aps.mutable-content: not 0 or 1"),
        aps(#""badge":1,"mutable-content":1"#, "aps.mutable-content: needs an alert"),
        aps(#""alert":"x","interruption-level":"loud""#, "aps.interruption-level: not a level"),
        aps(#""alert":"x","relevance-score":2"#, "aps.relevance-score: not from 0 to 1"),
        aps(#""alert":"x","order_id":7"#, "aps.order_id: Apple knows no such member"),
        aps(#""alert":"x","event":"update""#, "aps.event: belongs to the push type liveactivity"),
        activity(#""timestamp":1,"content-state":{}"#, "aps.event: missing"),
        activity(#""event":"update","content-state":{}"#, "aps.timestamp: missing"),
        activity(#""event":"update","timestamp":1"#, "aps.content-state: missing"),
        activity(#""event":"start","timestamp":1,"content-state":{}"#, "aps.attributes: missing"),
        activity(#""event":"update","timestamp":"now","content-state":{}"#, "aps.timestamp: not seconds since 1970"),
        Case(
            changes: ["apns-push-type": "voip", "apns-topic": "com.example.app.voip", "apns-priority": "5"], status: 400,
            reason: "BadPriority"),
        Case(body: padded(to: 4097), status: 413, reason: "PayloadTooLarge"),
    ]

    static func aps(_ members: String, _ problem: String) -> Case {
        Case(body: Array("{\"aps\":{\(members)}}".utf8), status: 400, reason: "InvalidPayload: \(problem)")
    }

    static func activity(_ members: String, _ problem: String) -> Case {
        var test = aps(members, problem)
        test.changes = ["apns-push-type": "liveactivity", "apns-topic": "com.example.app.push-type.liveactivity"]
        return test
    }

    /// A valid payload of exactly that many bytes.
    static func padded(to count: Int) -> [UInt8] {
        let (head, tail) = (#"{"aps":{"alert":"x"},"p":""#, #""}"#)
        return Array(head.utf8) + [UInt8](repeating: 0x61, count: count - head.utf8.count - tail.utf8.count) + Array(tail.utf8)
    }

    @Test("each mistake is refused with Apple's reason", arguments: refusals)
    func refused(_ example: Case) throws {
        let fixture = try Fixture()
        let answer = try fixture.apnsClient().send(
            example.method, example.path, fixture.apnsHeaders(example.changes), body: example.body)
        #expect(answer.status == example.status)
        #expect(answer.reason == example.reason)
        #expect(fixture.gateways.requests().map(\.reason) == [example.reason])
    }

    @Test("what stands at a bound is accepted")
    func bounds() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let cases: [([String: String?], [UInt8])] = [
            (["apns-collapse-id": String(repeating: "ä", count: 32)], Self.padded(to: 4096)),
            (["apns-push-type": "background", "apns-priority": "5"], Self.background),
            (["apns-push-type": "voip", "apns-topic": "com.example.app.voip"], Self.padded(to: 5120)),
            (["apns-push-type": nil, "apns-priority": nil, "apns-expiration": nil, "apns-id": nil], Fixture.alert),
        ]
        let providerToken = try fixture.providerToken()
        for (changes, body) in cases {
            let headers = try fixture.apnsHeaders(changes, providerToken: providerToken)
            let answer = try client.send("POST", "/3/device/\(Fixture.token)", headers, body: body)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(CanonicalUUID.isValid(answer.headers["apns-id"] ?? ""))
        }
    }

    @Test("a header given twice is DuplicateHeaders")
    func duplicate() throws {
        let fixture = try Fixture()
        let headers = try fixture.apnsHeaders() + [("apns-priority", "5")]
        let answer = try fixture.apnsClient().send("POST", "/3/device/\(Fixture.token)", headers, body: Fixture.alert)
        #expect(answer.reason == "DuplicateHeaders")
    }

    @Test("a provider token must be ours, signed by our key, with a number for iat, and an hour old at most")
    func providerTokens() throws {
        let fixture = try Fixture()
        let tokens: [(String, String?)] = [
            (try fixture.providerToken(alg: "RS256"), "InvalidProviderToken"),
            (try fixture.providerToken(kid: "AAAAAAAAAA"), "InvalidProviderToken"),
            (try fixture.providerToken(iss: "OTHERTEAM0"), "InvalidProviderToken"),
            (try fixture.providerToken(key: .generate()), "InvalidProviderToken"),
            (try fixture.providerToken(iat: .string(String(Fixture.now))), "InvalidProviderToken"),
            (try fixture.providerToken(iat: .int(Fixture.now + 3700)), "InvalidProviderToken"),
            (try fixture.providerToken(iat: .int(Fixture.now - 3601)), "ExpiredProviderToken"),
            (try fixture.providerToken(iat: .int(Int64.max)), "InvalidProviderToken"),
            (try fixture.providerToken(iat: .int(Int64.min)), "ExpiredProviderToken"),
            (try fixture.providerToken(iat: .int(Fixture.now - 3500)), nil),
        ]
        for (token, reason) in tokens {
            let client = try fixture.apnsClient()
            let headers = try fixture.apnsHeaders(providerToken: token)
            let answer = try client.send("POST", "/3/device/\(Fixture.token)", headers, body: Fixture.alert)
            #expect(answer.status == (reason == nil ? 200 : 403))
            #expect(answer.reason == reason)
        }
    }

    @Test("a second provider token on one connection within 20 minutes is one too many")
    func tokenUpdates() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let path = "/3/device/\(Fixture.token)"
        let first = try fixture.apnsHeaders(providerToken: fixture.providerToken(iat: .int(Fixture.now - 60)))
        let second = try fixture.apnsHeaders(providerToken: fixture.providerToken())
        #expect(try client.send("POST", path, first, body: Fixture.alert).status == 200)
        let answer = try client.send("POST", path, second, body: Fixture.alert)
        #expect(answer.status == 429 && answer.reason == "TooManyProviderTokenUpdates")
        #expect(try client.send("POST", path, first, body: Fixture.alert).status == 200)
        #expect(try fixture.apnsClient().send("POST", path, second, body: Fixture.alert).status == 200)
    }

    @Test("one stream until the first success, then more; changes are announced to live connections")
    func streamLimit() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        try client.run(until: "SETTINGS") { !client.announcedStreamsMax.isEmpty }
        #expect(client.announcedStreamsMax == [1])
        let path = "/3/device/\(Fixture.token)"
        let headers = try fixture.apnsHeaders(providerToken: fixture.providerToken())
        _ = try client.send("POST", path, headers.filter { $0.0 != "apns-topic" }, body: Fixture.alert)
        #expect(client.announcedStreamsMax == [1], "a refusal must not open the gate")
        _ = try client.send("POST", path, headers, body: Fixture.alert)
        try client.run(until: "SETTINGS") { client.announcedStreamsMax.count == 2 }
        #expect(client.announcedStreamsMax == [1, 500])

        let streams = (0..<100).map { _ in client.submit("POST", path, headers, body: Fixture.alert) }
        try client.run(until: "100 responses") { streams.allSatisfy { client.responses[$0]?.endCode != nil } }
        #expect(streams.allSatisfy { client.responses[$0]?.status == 200 })

        fixture.gateways.setAPNsStreamsMax(1)
        try client.run(until: "SETTINGS") { client.announcedStreamsMax.count == 3 }
        #expect(client.announcedStreamsMax.last == 1)
    }

    @Test("streams beyond the limit are refused and counted")
    func beyondTheLimit() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let headers = try fixture.apnsHeaders()
        // All before the first look at what the end announces.
        let streams = (0..<5).map { _ in client.submit("POST", "/3/device/00", headers, body: Fixture.alert) }
        try client.run(until: "the ends") { streams.allSatisfy { client.responses[$0]?.endCode != nil } }
        #expect(streams.filter { client.responses[$0]?.status == 200 }.count == 1)
        #expect(fixture.gateways.traffic(.apns).streamsBeyondLimit == 4)
        #expect(fixture.gateways.traffic(.apns).connections == 1)
    }
}
