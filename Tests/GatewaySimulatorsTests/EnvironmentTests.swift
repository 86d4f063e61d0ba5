import GatewaySimulators
import HubCore
import HubTesting
import Testing

@Suite("APNs' two environments", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct EnvironmentTests {
    @Test("each has its own port and address, and a fault of one does not happen in the other")
    func separate() throws {
        let fixture = try Fixture()
        let settings = Dictionary(fixture.gateways.settings, uniquingKeysWith: { first, _ in first })
        #expect(settings["TANDEM_APNS_URL"] == fixture.gateways.apnsURL)
        #expect(settings["TANDEM_APNS_SANDBOX_URL"] == fixture.gateways.apnsSandboxURL)
        try fixture.gateways.setFault(.init(reason: "BadDeviceToken", environment: .production), token: Fixture.token)
        let sandbox = try HTTP2Client(port: fixture.gateways.apnsSandboxPort, caFile: fixture.gateways.files.authority)
        let path = "/3/device/\(Fixture.token)"
        #expect(try fixture.apnsClient().send("POST", path, fixture.apnsHeaders(), body: Fixture.alert).status == 400)
        #expect(try sandbox.send("POST", path, fixture.apnsHeaders(), body: Fixture.alert).status == 200)
        #expect(fixture.gateways.requests(provider: .apns).map(\.environment) == [.production, .sandbox])
    }

    @Test("a token of zeros is nobody's, after everything else was found right")
    func impossible() throws {
        let fixture = try Fixture()
        let path = "/3/device/" + String(repeating: "0", count: 64)
        let client = try fixture.apnsClient()
        let token = try fixture.providerToken()
        let right = try client.send("POST", path, fixture.apnsHeaders(providerToken: token), body: Fixture.alert)
        #expect(String(decoding: right.body, as: UTF8.self).contains("BadDeviceToken"))
        let wrong = try client.send(
            "POST", path, fixture.apnsHeaders(["apns-topic": "com.example.other"], providerToken: token), body: Fixture.alert)
        #expect(String(decoding: wrong.body, as: UTF8.self).contains("DeviceTokenNotForTopic"))
    }

    @Test("the control API's form of a fault has the environment, and names the choices")
    func form() throws {
        let fault = try GatewayFault(json: ["reason": "BadDeviceToken", "environment": "production"])
        #expect(fault.environment == .production)
        #expect(fault.json["environment"] == "production")
        let error = #expect(throws: GatewayError.self) { try GatewayFault(json: ["environment": "staging"]) }
        #expect(error?.message.contains("production or sandbox") == true)
    }
}
