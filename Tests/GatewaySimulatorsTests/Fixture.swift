import Foundation
import GatewaySimulators
import HubCore
import HubCrypto
import HubJSON
import HubTesting

/// Simulators of a test's own, in a folder of its own that goes with them.
final class Fixture {
    let gateways: SimulatedGateways
    let folder: String
    static let token = String(repeating: "ab", count: 32)
    static let alert = Array(#"{"aps":{"alert":{"title":"T","body":"B"}}}"#.utf8)

    /// One set of keys for all tests: an RSA key takes longer to find than most tests to run.
    private static let keys = Result {
        let folder = FileManager.default.temporaryDirectory.path + "/tandem-gateways-keys-\(ProcessInfo.processInfo.processIdentifier)"
        try SimulatedGateways(SimulatedGateways.Options(folder: folder)).stop()
        atexit { try? FileManager.default.removeItem(atPath: Fixture.keysFolder) }
        return folder
    }
    private static var keysFolder: String { (try? keys.get()) ?? "/nonexistent" }

    init(_ change: (inout SimulatedGateways.Options) -> Void = { _ in }) throws {
        folder = FileManager.default.temporaryDirectory.path + "/tandem-gateways-\(UUID().uuidString)"
        try FileManager.default.copyItem(atPath: Self.keys.get(), toPath: folder)
        var options = SimulatedGateways.Options(folder: folder)
        change(&options)
        gateways = try SimulatedGateways(options)
    }

    deinit {
        gateways.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    func apnsClient() throws -> HTTP2Client {
        try HTTP2Client(port: gateways.apnsPort, caFile: gateways.files.authority)
    }

    func fcmClient() throws -> HTTP2Client {
        try HTTP2Client(port: gateways.fcmPort, caFile: gateways.files.authority)
    }

    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// A provider token as APNs wants it; every part can be made wrong.
    func providerToken(
        alg: String = "ES256", kid: String? = nil, iss: String = "TANDEMTEAM", iat: JSONValue? = nil, key: ES256PrivateKey? = nil
    ) throws -> String {
        let pem = try String(contentsOfFile: gateways.files.apnsKey(id: gateways.apnsKeyID), encoding: .utf8)
        let key = try key ?? ES256PrivateKey(pem: pem)
        let header: JSONValue = ["alg": .string(alg), "kid": .string(kid ?? gateways.apnsKeyID)]
        let claims: JSONValue = ["iss": .string(iss), "iat": iat ?? .int(Self.now)]
        let signed = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(claims.serialized())
        return signed + "." + Base64URL.encode(try key.signature(for: Array(signed.utf8)))
    }

    /// A complete set of headers; a nil value removes one.
    func apnsHeaders(_ changes: [String: String?] = [:], providerToken: String? = nil) throws -> [(String, String)] {
        var headers: [String: String?] = [
            "authorization": "bearer \(try providerToken ?? self.providerToken())", "apns-topic": "com.example.app",
            "apns-push-type": "alert", "apns-priority": "10", "apns-expiration": "0",
            "apns-id": "0f8fad5b-d9cb-469f-a165-70867728950e",
        ]
        for (name, value) in changes { headers[name] = value }
        return headers.compactMap { name, value in value.map { (name, $0) } }
    }

    var serviceAccount: JSONValue {
        get throws { try JSONValue(parsing: String(contentsOfFile: gateways.files.serviceAccount, encoding: .utf8)) }
    }

    /// The form body of a token request; `changes` replaces claims.
    func grantForm(_ changes: [String: JSONValue] = [:], alg: String = "RS256", kid: String? = nil) throws -> [UInt8] {
        let account = try serviceAccount
        let key = try RS256PrivateKey(pem: account["private_key"]?.stringValue ?? "")
        let keyID = account["private_key_id"]?.stringValue ?? ""
        let header: JSONValue = ["alg": .string(alg), "typ": "JWT", "kid": .string(kid ?? keyID)]
        var claims: [String: JSONValue] = [
            "iss": account["client_email"] ?? .null, "aud": account["token_uri"] ?? .null,
            "scope": "https://www.googleapis.com/auth/firebase.messaging", "iat": .int(Self.now), "exp": .int(Self.now + 3600),
        ]
        claims.merge(changes) { $1 }
        let signed = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(JSONValue.object(claims).serialized())
        let assertion = signed + "." + Base64URL.encode(try key.signature(for: Array(signed.utf8)))
        return Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8)
    }

    static let formType = [("content-type", "application/x-www-form-urlencoded")]

    func accessToken(_ client: HTTP2Client) throws -> String {
        let answer = try client.send("POST", "/token", Self.formType, body: grantForm())
        return try JSONValue(parsing: answer.body)["access_token"]?.stringValue ?? ""
    }

    static let sendPath = "/v1/projects/tandem-simulated/messages:send"

    /// Sends the message with a fresh access token.
    func sendFCM(_ message: JSONValue, on client: HTTP2Client) throws -> HTTP2Client.Response {
        let headers = [("authorization", "Bearer \(try accessToken(client))"), ("content-type", "application/json")]
        return try client.send("POST", Self.sendPath, headers, body: JSONValue.object(["message": message]).serialized())
    }

    /// Runs the system's curl and answers what it printed, with its exit code.
    static func curl(_ arguments: [String]) throws -> (output: String, exitCode: Int32) {
        let (text, code) = try SpawnedProgram.output(of: "curl", ["--silent", "--show-error", "--max-time", "10"] + arguments)
        return (text, code)
    }
}

extension HTTP2Client.Response {
    var json: JSONValue { get throws { try JSONValue(parsing: body) } }
    var reason: String? { try? json["reason"]?.stringValue }
}
