import Foundation
import HubCore
import HubJSON
import HubTesting
import Testing

@testable import GatewaySimulators

@Suite("Keys and settings") struct KeyFolderTests {
    private func read(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    @Test("a restart uses the keys again, and what was signed before still counts")
    func restart() throws {
        let first = try Fixture()
        let files = first.gateways.files
        let keyPath = files.apnsKey(id: first.gateways.apnsKeyID)
        let before = try [keyPath, files.authority, files.authorityKey, files.certificateKey].map(read)
        let accountBefore = try first.serviceAccount
        let providerToken = try first.providerToken()
        first.gateways.stop()

        let second = try SimulatedGateways(SimulatedGateways.Options(folder: first.folder))
        defer { second.stop() }
        #expect(try [keyPath, files.authority, files.authorityKey, files.certificateKey].map(read) == before)
        let account = try JSONValue(parsing: read(files.serviceAccount))
        #expect(account["private_key"] == accountBefore["private_key"] && account["private_key_id"] == accountBefore["private_key_id"])
        #expect(account["token_uri"]?.stringValue == second.tokenURL)
        let client = try HTTP2Client(port: second.apnsPort, caFile: files.authority)
        let headers = try first.apnsHeaders(providerToken: providerToken)
        #expect(try client.send("POST", "/3/device/\(Fixture.token)", headers, body: Fixture.alert).status == 200)
    }

    @Test("gateways.env is a shell file with every setting, readable by its owner only")
    func environment() throws {
        let fixture = try Fixture()
        let names = fixture.gateways.settings.map(\.name)
        #expect(
            names == [
                "APNS_KEY_PATH", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC", "APNS_USE_SANDBOX", "GOOGLE_APPLICATION_CREDENTIALS",
                "TANDEM_APNS_URL", "TANDEM_APNS_SANDBOX_URL", "TANDEM_FCM_URL", "TANDEM_PUSH_CA_FILE", "TANDEM_GATEWAYS_CONTROL",
            ])
        let list = names.map { "\"$\($0)\"" }.joined(separator: " ")
        let script = ". '\(fixture.gateways.files.environment)'; printf '%s\\n' \(list)"
        let output = try SpawnedProgram.output(of: "/bin/sh", ["-euc", script]).text
        #expect(output.split(separator: "\n").map(String.init) == fixture.gateways.settings.map(\.value))
        let attributes = try FileManager.default.attributesOfItem(atPath: fixture.gateways.files.environment)
        #expect((attributes[.posixPermissions] as? Int) == 0o600)
    }

    @Test("a key file that is none is an error that names it")
    func damaged() throws {
        let fixture = try Fixture()
        fixture.gateways.stop()
        let files = fixture.gateways.files
        for path in [files.authorityKey, files.authority, files.serviceAccount, files.apnsKey(id: fixture.gateways.apnsKeyID)] {
            let good = try read(path)
            try "nonsense".write(toFile: path, atomically: true, encoding: .utf8)
            let options = SimulatedGateways.Options(folder: fixture.folder)
            let error = try #require(throws: GatewayError.self) { try SimulatedGateways(options) }
            #expect(error.message.contains(path) && !error.message.contains("\n"), "\(error)")
            try good.write(toFile: path, atomically: true, encoding: .utf8)
        }
    }

    @Test("a port in use, a folder that cannot be made and a wrong topic are errors that say what to do")
    func cannotStart() throws {
        let fixture = try Fixture()
        var options = SimulatedGateways.Options(folder: fixture.folder)
        options.apnsPort = fixture.gateways.apnsPort
        let port = try #require(throws: GatewayError.self) { try SimulatedGateways(options) }
        #expect(port.message.contains("--apns-port") && port.message.contains("\(options.apnsPort)"))
        options = SimulatedGateways.Options(folder: "/dev/null/x")
        let folder = try #require(throws: GatewayError.self) { try SimulatedGateways(options) }
        #expect(folder.message.contains("--data"))
        options = SimulatedGateways.Options(folder: fixture.folder)
        options.topic = "two words"
        let topic = try #require(throws: GatewayError.self) { try SimulatedGateways(options) }
        #expect(topic.message.contains("--topic"))
        options = SimulatedGateways.Options(folder: fixture.folder)
        options.host = "no such host"
        let host = try #require(throws: GatewayError.self) { try SimulatedGateways(options) }
        #expect(host.message.contains("--host"))
    }

    @Test("curl verifies the certificate by the authority and by localhost too, over HTTP/2 and HTTP/1.1")
    func curl() throws {
        let fixture = try Fixture()
        let authority = fixture.gateways.files.authority
        let form = String(decoding: try fixture.grantForm(), as: UTF8.self)
        for version in ["--http2", "--http1.1"] {
            let url = "https://localhost:\(fixture.gateways.fcmPort)/token"
            let answer = try Fixture.curl([version, "--ipv4", "--cacert", authority, "-w", "%{http_version}", "-d", form, url])
            #expect(answer.exitCode == 0 && answer.output.contains("access_token"))
            #expect(answer.output.hasSuffix(version == "--http2" ? "2" : "1.1"))
        }
        let push = try Fixture.curl(
            ["--http2", "--cacert", authority, "-w", "%{http_code} %{http_version}", "-d", String(decoding: Fixture.alert, as: UTF8.self)]
                + fixture.apnsHeaders().flatMap { ["-H", "\($0.0): \($0.1)"] }
                + [fixture.gateways.apnsURL + "/3/device/\(Fixture.token)"])
        #expect(push.output == "200 2")
        let old = try Fixture.curl(["--http1.1", "--cacert", authority, fixture.gateways.apnsURL])
        #expect(old.exitCode == 35, "APNs has no HTTP/1.1")
        let distrusting = try Fixture.curl([fixture.gateways.apnsURL])
        #expect(distrusting.exitCode == 60)
    }
}
