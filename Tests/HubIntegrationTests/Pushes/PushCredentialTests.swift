import Foundation
import HubCore
import HubTesting
import Testing

/// Push credentials as operators handle them: asked about before the start, replaced while the hub runs.
@Suite struct PushCredentialTests {
    private func check(_ stage: Stage, _ settings: [String: String]) async throws -> (code: Int32, output: String, errors: String) {
        let process = try stage.start(Place.tandem, ["check", "--live", "--channels", Place.channels], environment: settings)
        let end = try await process.waitForEnd()
        return (end.code, process.output, process.errors)
    }

    @Test("check --live: one line for each gateway, 0, 78 or 1, and no secret")
    func checkLive() async throws {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let good = try await check(stage, gateways.settings)
            #expect(good.code == 0 && good.errors.isEmpty, "\(good)")
            let lines = good.output.split(separator: "\n").filter { $0.hasPrefix("good: ") }
            #expect(lines.count == 3, "\(good.output)")

            var wrong = gateways.settings
            wrong["APNS_TOPIC"] = "com.example.another"
            let refused = try await check(stage, wrong)
            #expect(refused.code == 78 && refused.output.contains("refused: APNs production (push): asked "), "\(refused)")
            #expect(refused.output.contains("set APNS_TOPIC") && refused.output.contains("good: FCM"))
            #expect(refused.errors.split(separator: "\n").count == 1 && refused.errors.contains("2 of 3 push gateways refuse"))

            gateways.process.send(SIGTERM)
            _ = try await gateways.process.waitForEnd()
            let failed = try await check(stage, gateways.settings)
            #expect(failed.code == 1 && failed.output.contains("failed: FCM (push): asked "), "\(failed)")
            #expect(!(good.output + refused.output + failed.output).contains("PRIVATE KEY"))

            let none = try await check(stage, [:])
            #expect(none.code == 0 && none.output.contains("no gateway is configured"), "\(none)")
        }
    }

    /// The push section that says what the gateways' environment says.
    private func push(_ settings: [String: String]) -> String {
        func value(_ name: String) -> String { settings[name] ?? "" }
        return """
            push:
              apns: { key_path: "\(value("APNS_KEY_PATH"))", key_id: "\(value("APNS_KEY_ID"))", team_id: "\(value("APNS_TEAM_ID"))", topic: "\(value("APNS_TOPIC"))", url: "\(value("TANDEM_APNS_URL"))", sandbox_url: "\(value("TANDEM_APNS_SANDBOX_URL"))", ca_file: "\(value("TANDEM_PUSH_CA_FILE"))", use_sandbox: true }
              fcm: { service_account: "\(value("GOOGLE_APPLICATION_CREDENTIALS"))", url: "\(value("TANDEM_FCM_URL"))", ca_file: "\(value("TANDEM_PUSH_CA_FILE"))" }

            """
    }

    @Test("SIGHUP: changed push credentials are used by the next push, bad ones leave the former in force")
    func rotation() async throws {
        try await Stage.run { stage in
            let (first, second) = (try await stage.gateways(), try await stage.gateways(in: "gateways-2"))
            let file = try stage.write(push(first.settings), to: "tandem.yaml")
            let hub = try await stage.hub(arguments: ["--config", file])
            let result = try await stage.python(
                "life/reload.py", "push", hub: hub, gateways: first,
                environment: [
                    "CONFIG": file, "NEW_CONFIG": push(second.settings), "NEW_GATEWAYS_URL": second.control,
                    "BAD_CONFIG": push(second.settings.merging(["APNS_KEY_PATH": "/nowhere.p8"]) { $1 }),
                ])
            #expect(result["first"] == [1, 0] && result["rotated"] == [1, 1] && result["kept"] == [1, 2] && result["typo"] == [1, 3])
            #expect(hub.log.contains("/nowhere.p8: no such file"))
            #expect(!hub.log.contains("PRIVATE KEY"))
        }
    }
}
