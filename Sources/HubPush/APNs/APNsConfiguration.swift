internal import HubCrypto
package import HubDelivery
internal import HubHTTPClient

/// APNs settings of one app: a token-signing key and the app's topic. No description of it contains the key.
package struct APNsConfiguration: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Contents of the `.p8` file.
    package var keyPEM: String
    /// Ten letters and digits, as shown with the key in Apple's developer account.
    package var keyID: String
    /// Ten letters and digits.
    package var teamID: String
    /// The app's bundle id.
    package var topic: String
    /// Separate key for the sandbox, if Apple issued keys for one environment each.
    package var sandboxKey: APNsKey?
    /// Replacement for Apple's hosts, without a path; for simulators. `http` only on a loopback address.
    package var url: String?
    /// Replacement for the sandbox's host; nil: `url`.
    package var sandboxURL: String?
    /// PEM file of trusted authorities instead of the system's; for simulators.
    package var caFile: String?
    /// For device tokens without an environment. The gateway itself always obeys the target.
    package var defaultEnvironment: APNsEnvironment

    /// - Throws: if a value cannot be right, so that the start fails instead of the first push.
    package init(
        keyPEM: String, keyID: String, teamID: String, topic: String, sandboxKey: APNsKey? = nil, url: String? = nil,
        sandboxURL: String? = nil, caFile: String? = nil, defaultEnvironment: APNsEnvironment = .production
    ) throws(PushConfigurationError) {
        try Self.check(keyID, name: "key id (APNS_KEY_ID)")
        if let sandboxKey {
            try Self.check(sandboxKey.id, name: "key id of the sandbox (sandbox_key_id)")
            try Self.checkKey(sandboxKey.pem)
        }
        try Self.check(teamID, name: "team id (APNS_TEAM_ID)")
        guard !topic.isEmpty, topic.utf8.count <= 255, topic.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw PushConfigurationError(
                "the APNs topic (APNS_TOPIC) is not a bundle id; set it to the app's bundle id, like com.example.app")
        }
        try Self.checkKey(keyPEM)
        self.sandboxKey = sandboxKey
        self.sandboxURL = try sandboxURL.map { url throws(PushConfigurationError) in
            try GatewayURL.checked(url, name: "TANDEM_APNS_SANDBOX_URL")
        }
        self.keyPEM = keyPEM
        self.keyID = keyID
        self.teamID = teamID
        self.topic = topic
        self.url = try url.map { url throws(PushConfigurationError) in try GatewayURL.checked(url, name: "TANDEM_APNS_URL") }
        self.caFile = caFile
        self.defaultEnvironment = defaultEnvironment
    }

    /// Reads the key from `keyPath` via `read`.
    package static func load(
        keyPath: String, keyID: String, teamID: String, topic: String, sandboxKey: (path: String, id: String)? = nil,
        url: String? = nil, sandboxURL: String? = nil, caFile: String? = nil, defaultEnvironment: APNsEnvironment = .production,
        read: CredentialReader = CredentialFile.read
    ) throws(PushConfigurationError) -> APNsConfiguration {
        let bytes = try read(keyPath)
        var other: APNsKey?
        if let sandboxKey {
            let pem = String(decoding: try read(sandboxKey.path), as: UTF8.self)
            do throws(PushConfigurationError) {
                try checkKey(pem)
            } catch {
                throw PushConfigurationError("\(sandboxKey.path): \(error)")
            }
            other = APNsKey(pem: pem, id: sandboxKey.id)
        }
        do throws(PushConfigurationError) {
            return try APNsConfiguration(
                keyPEM: String(decoding: bytes, as: UTF8.self), keyID: keyID, teamID: teamID, topic: topic, sandboxKey: other, url: url,
                sandboxURL: sandboxURL, caFile: caFile, defaultEnvironment: defaultEnvironment)
        } catch {
            throw PushConfigurationError("\(keyPath): \(error)")
        }
    }

    func key(_ environment: APNsEnvironment) -> APNsKey {
        environment == .sandbox ? sandboxKey ?? APNsKey(pem: keyPEM, id: keyID) : APNsKey(pem: keyPEM, id: keyID)
    }

    package var description: String { "APNs key \(keyID) of team \(teamID) for \(topic)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["keyID": keyID, "teamID": teamID, "topic": topic]) }

    private static func checkKey(_ pem: String) throws(PushConfigurationError) {
        do throws(CryptoError) {
            _ = try ES256PrivateKey(pem: pem)
        } catch {
            throw PushConfigurationError(
                "the APNs key is not an EC P-256 private key in PEM form (\(error)); use the .p8 file from Apple's developer account"
            )
        }
    }

    private static func check(_ value: String, name: String) throws(PushConfigurationError) {
        let isAlphanumeric = value.utf8.allSatisfy {
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        }
        guard value.utf8.count == 10, isAlphanumeric else {
            throw PushConfigurationError(
                "the APNs \(name) is not ten letters and digits; copy it from Apple's developer account")
        }
    }
}

/// A key that signs provider tokens. No description of it contains the PEM.
package struct APNsKey: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var pem: String
    package var id: String

    package init(pem: String, id: String) {
        self.pem = pem
        self.id = id
    }

    package var description: String { "APNs key \(id)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
