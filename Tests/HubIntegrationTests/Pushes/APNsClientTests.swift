import Foundation
import HubCore
import HubJSON
import Testing

/// The simulated APNs beside a client that others wrote: what that client sends is right, and what Apple would refuse is refused.
@Suite struct APNsClientTests {
    @Test("aioapns is understood, and its mistakes are told as Apple does") func aioapns() async throws {
        let result = try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let script = Place.tests.appendingPathComponent("Python/pushes/apns_client.py").path
            let process = try stage.start(try await PythonEnvironment.shared.interpreter(), [script], environment: gateways.settings)
            let end = try await process.waitForEnd(within: Patience.script)
            guard end.code == 0 else { throw ScriptFailure(description: "apns_client.py ended with \(end): \(process.errors)") }
            return try JSONValue(parsing: String(process.output.split(separator: "\n").last ?? ""))
        }
        let expected: [String: JSONValue] = [
            "alert": ["200", .null], "background": ["200", .null], "activity": ["200", .null], "voip": ["200", .null],
            "urgent background": ["400", "BadPriority"], "silent alert": ["400", "InvalidPushType"],
            "activity under the app's topic": ["400", "BadTopic"],
            "a badge in words": ["400", "InvalidPayload: aps.badge: not a whole number from 0"],
            "arguments without a key": ["400", "InvalidPayload: aps.alert: loc-args without loc-key"],
            "too large": ["413", "PayloadTooLarge"],
        ]
        for (name, answer) in expected { #expect(result[name] == answer, "\(name)") }
    }
}
