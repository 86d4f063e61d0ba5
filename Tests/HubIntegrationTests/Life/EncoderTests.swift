import Foundation
import HubCore
import HubDefinitions
import HubDelivery
import HubJSON
import Testing

@testable import HubPush

/// Tandem's FCM messages beside those of Firebase's own encoder.
@Suite struct EncoderTests {
    /// Output of a script that has ended well.
    private func output(_ stage: Stage, _ arguments: [String]) async throws -> JSONValue {
        let script = Place.tests.appendingPathComponent("Python/life/encoder.py").path
        let process = try stage.start(try await PythonEnvironment.shared.interpreter(), [script] + arguments)
        let end = try await process.waitForEnd(within: Patience.script)
        guard end.code == 0 else { throw ScriptFailure(description: "encoder.py ended with \(end): \(process.errors)") }
        return try JSONValue(parsing: Array(process.output.utf8))
    }

    private func body(_ test: JSONValue) throws -> JSONValue {
        let content = try NotificationContent(json: try #require(test["request"]?.objectValue))
        let message = content.message(
            nid: "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11", event: "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f", group: test["group"]?.stringValue,
            expiresAt: 1_767_921_000_000, committedAt: 1_767_920_398_500, sequence: 42)
        let target = PushTarget(
            device: "d", provider: .fcm, platform: try #require(test["platform"]?.stringValue.flatMap(DevicePlatform.init)),
            token: try #require(test["target"]?.stringValue), form: try #require(test["form"]?.stringValue.flatMap(TargetForm.init)),
            environment: .production)
        return try JSONValue(parsing: try FCMPayload(message, target: target, now: 1_767_920_400_000).body)
    }

    @Test("Every message is the one that Firebase's encoder makes") func sameAsFirebase() async throws {
        let result = try await Stage.run { stage in
            var bodies: [String: JSONValue] = [:]
            for test in try #require(try await output(stage, ["cases"]).arrayValue) {
                let name = try #require(test["name"]?.stringValue)
                do { bodies[name] = try body(test) } catch { Issue.record("\(name): \(error)") }
            }
            let file = try stage.write(JSONValue.object(bodies).text, to: "bodies.json")
            return try await output(stage, ["check", file])
        }
        #expect(result["checked"]?.intValue ?? 0 >= 40)
        for difference in result["differing"]?.arrayValue ?? [] { Issue.record("\(difference.text)") }
    }
}
