import HubCore
import HubCrypto
import HubDefinitions
import HubDelivery
import HubJSON
import HubTesting
import Synchronization

@testable import HubPush

let now = ManualClock.start

func message(
    kind: PushKind = .alert, title: String? = "Session Started! 🎯", body: String? = "The quiz session has begun.",
    image: String? = nil, data: [String: JSONValue] = [:], apns: [String: JSONValue] = [:], android: [String: JSONValue] = [:],
    group: String? = nil, life: Int64 = 600, sequence: Int64 = 42
) -> PushMessage {
    PushMessage(
        nid: "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11", event: "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f", kind: kind, title: title,
        body: body, image: image, data: data, apns: apns, android: android, group: group, expiresAt: now + life * 1000,
        committedAt: now - 1500, sequence: sequence)
}

func target(
    _ provider: PushProvider = .fcm, platform: DevicePlatform = .android, token: String = "TOKEN",
    environment: APNsEnvironment = .production, device: String = "device-1"
) -> PushTarget {
    PushTarget(device: device, provider: provider, platform: platform, token: token, environment: environment)
}

func json(_ bytes: [UInt8]) throws -> JSONValue { try JSONValue(parsing: bytes) }

extension JSONValue {
    /// The member at the end of a path of names.
    func at(_ path: String...) -> JSONValue? {
        var value: JSONValue? = self
        for name in path { value = value?[name] }
        return value
    }
}

extension ServiceAccount {
    static func file(key: RS256PrivateKey, tokenURI: String, change: (inout [String: JSONValue]) -> Void = { _ in }) -> [UInt8] {
        var members: [String: JSONValue] = [
            "type": "service_account", "project_id": "demo-project", "private_key_id": "key-1", "private_key": .string(key.pem),
            "client_email": "push@demo-project.iam.gserviceaccount.com", "token_uri": .string(tokenURI),
        ]
        change(&members)
        return JSONValue.object(members).serialized()
    }
}

/// One key for all tests: making an RSA key is slow.
let rsaKey = RS256PrivateKey.generate(bits: 2048)

extension PushGateway {
    func outcome(_ message: PushMessage, _ target: PushTarget) async -> PushOutcome {
        await withCheckedContinuation { continuation in
            send(message, to: target) { continuation.resume(returning: $0) }
        }
    }
}

extension String {
    static let ecKey = ES256PrivateKey.generate().pem
}
