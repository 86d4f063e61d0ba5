import HubCore
import HubJSON
import Testing

@testable import GatewaySimulators

@Suite("OAuth endpoint") struct OAuthTests {
    @Test("a right assertion gets a bearer token, and the record holds its claims only")
    func granted() throws {
        let fixture = try Fixture { $0.accessTokenSeconds = 1234 }
        let answer = try fixture.fcmClient().send("POST", "/token", Fixture.formType, body: fixture.grantForm())
        #expect(answer.status == 200)
        #expect(try answer.json["token_type"] == "Bearer")
        #expect(try answer.json["expires_in"] == 1234)
        // Google's own libraries send this `aud`, whatever the account's token_uri.
        let google = try fixture.grantForm(["aud": "https://oauth2.googleapis.com/token"])
        #expect(try fixture.fcmClient().send("POST", "/token", Fixture.formType, body: google).status == 200)
        let record = try #require(fixture.gateways.requests(provider: .oauth).first)
        #expect(record.json?["aud"]?.stringValue == fixture.gateways.tokenURL)
        #expect(!String(decoding: record.body, as: UTF8.self).contains("assertion"))
    }

    @Test("each wrong claim is refused with OAuth's error")
    func refused() throws {
        let fixture = try Fixture()
        let client = try fixture.fcmClient()
        let now = Fixture.now
        let cases: [([UInt8], String)] = [
            (try fixture.grantForm(["iss": "someone@else"]), "invalid_grant"),
            (try fixture.grantForm(["aud": "https://oauth2.example.com/token"]), "invalid_grant"),
            (try fixture.grantForm(["scope": "https://www.googleapis.com/auth/drive"]), "invalid_scope"),
            (try fixture.grantForm(["iat": .int(now), "exp": .int(now + 3601)]), "invalid_grant"),
            (try fixture.grantForm(["iat": .int(now - 7200), "exp": .int(now - 3600)]), "invalid_grant"),
            (try fixture.grantForm(["iat": .int(now + 900), "exp": .int(now + 1800)]), "invalid_grant"),
            (try fixture.grantForm(["iat": .string(String(now))]), "invalid_grant"),
            (try fixture.grantForm(["iat": .int(Int64.min), "exp": .int(Int64.max)]), "invalid_grant"),
            (try fixture.grantForm(alg: "HS256"), "invalid_grant"),
            (try fixture.grantForm(kid: "other"), "invalid_grant"),
            (Self.tampered(try fixture.grantForm()), "invalid_grant"),
            (Array("grant_type=authorization_code&assertion=x".utf8), "unsupported_grant_type"),
            (Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer".utf8), "invalid_request"),
        ]
        for (index, (form, error)) in cases.enumerated() {
            let answer = try client.send("POST", "/token", Fixture.formType, body: form)
            #expect(answer.status == 400, "case \(index)")
            #expect(try answer.json["error"]?.stringValue == error, "case \(index)")
        }
        let json = try client.send("POST", "/token", [("content-type", "application/json")], body: fixture.grantForm())
        #expect(try json.json["error"] == "invalid_request")
        #expect(fixture.gateways.requests(provider: .oauth).allSatisfy { $0.status == 400 })
    }

    /// The form with another last byte in its signature, which is 00 once in 256 times.
    private static func tampered(_ form: [UInt8]) -> [UInt8] {
        form.dropLast(2) + Array((form.suffix(2) == Array("AA".utf8) ? "AQ" : "AA").utf8)
    }

    @Test("its faults are its own: a fault for every token leaves it alone")
    func faults() throws {
        let fixture = try Fixture()
        let client = try fixture.fcmClient()
        try fixture.gateways.setFault(GatewayFault(status: 503), token: "*")
        #expect(try client.send("POST", "/token", Fixture.formType, body: fixture.grantForm()).status == 200)
        try fixture.gateways.setFault(GatewayFault(status: 400, reason: "invalid_grant", times: 1), token: "oauth")
        let refused = try client.send("POST", "/token", Fixture.formType, body: fixture.grantForm())
        #expect(refused.status == 400)
        #expect(try refused.json["error"] == "invalid_grant")
        #expect(try client.send("POST", "/token", Fixture.formType, body: fixture.grantForm()).status == 200)
    }

    @Test("an expired access token is refused")
    func expiry() {
        let tokens = AccessTokens(lifetimeSeconds: 10)
        let token = tokens.issue(now: 1_000)
        #expect(tokens.isValid(token, now: 10_999))
        #expect(!tokens.isValid(token, now: 11_000))
    }
}
