package import HubDelivery
internal import HubCrypto
internal import HubHTTPClient

/// A credential or address that cannot be used: what is wrong and what to do about it. Never quotes a secret.
package struct PushConfigurationError: Error, Equatable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) { self.message = message }
}

/// How configuration reads a file; tests and embedders pass their own.
package typealias CredentialReader = (_ path: String) throws(PushConfigurationError) -> [UInt8]

/// What it takes to speak to APNs for one app: a token-signing key and the app's topic. The key is in no description of it.
package struct APNsConfiguration: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Contents of the `.p8` file.
    package var keyPEM: String
    /// Ten letters and digits, as shown beside the key in Apple's developer account.
    package var keyID: String
    /// Ten letters and digits.
    package var teamID: String
    /// The app's bundle id.
    package var topic: String
    /// Another key for the sandbox, where Apple issued keys for one environment each.
    package var sandboxKey: APNsKey?
    /// Where to send instead of Apple's hosts, without a path; for simulators. `http` only on a loopback address.
    package var url: String?
    /// The same for the sandbox; nil: where `url` says.
    package var sandboxURL: String?
    /// PEM file of authorities to trust instead of the system's; for simulators.
    package var caFile: String?
    /// For device tokens that came without an environment. The gateway itself always obeys the target.
    package var defaultEnvironment: APNsEnvironment

    /// - Throws: when a value cannot be right, so that the server refuses to start instead of failing at the first push.
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

    /// The same with the key read from `keyPath` by `read`.
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

/// A key that signs provider tokens. Its PEM is in no description of it.
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

/// What it takes to speak to FCM for one project: a service account. Its key is in no description of it.
package struct FCMConfiguration: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The service account's JSON, as Google's console hands it out.
    package var serviceAccount: [UInt8]
    /// Where to send instead of Google's host, without a path; for simulators. `http` only on a loopback address. Access
    /// tokens come from the service account's own `token_uri`.
    package var url: String?
    package var caFile: String?
    /// The project's quota; four fifths of it are used.
    package var messagesPerMinute: Int
    let account: ServiceAccount

    /// What a Firebase project has as long as nobody asks Google for more or less.
    package static let messagesPerMinuteDefault = 600_000

    /// - Throws: when the service account lacks something or the address cannot be used.
    package init(
        serviceAccount: [UInt8], url: String? = nil, caFile: String? = nil, messagesPerMinute: Int = FCMConfiguration.messagesPerMinuteDefault
    ) throws(PushConfigurationError) {
        precondition(messagesPerMinute > 0, "messagesPerMinute \(messagesPerMinute)")
        self.messagesPerMinute = messagesPerMinute
        self.serviceAccount = serviceAccount
        account = try ServiceAccount(json: serviceAccount)
        self.url = try url.map { url throws(PushConfigurationError) in try GatewayURL.checked(url, name: "TANDEM_FCM_URL") }
        self.caFile = caFile
    }

    /// The same with the service account read from `path` by `read`.
    package static func load(
        path: String, url: String? = nil, caFile: String? = nil, messagesPerMinute: Int = FCMConfiguration.messagesPerMinuteDefault,
        read: CredentialReader = CredentialFile.read
    ) throws(PushConfigurationError) -> FCMConfiguration {
        let bytes = try read(path)
        do throws(PushConfigurationError) {
            return try FCMConfiguration(serviceAccount: bytes, url: url, caFile: caFile, messagesPerMinute: messagesPerMinute)
        } catch {
            throw PushConfigurationError("\(path): \(error)")
        }
    }

    /// The project the service account belongs to.
    package var projectID: String { account.projectID }

    /// What makes two of them the same.
    var identity: PushLanes.FCMIdentity {
        PushLanes.FCMIdentity(accountDigest: Digest.sha256(serviceAccount), url: url, caFile: caFile, messagesPerMinute: messagesPerMinute)
    }

    /// Whose quota it sends on.
    var project: PushLanes.FCMProject { PushLanes.FCMProject(id: projectID, url: url) }

    package var description: String { "FCM service account of project \(projectID)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["projectID": projectID]) }
}

enum GatewayURL {
    /// The address without a slash at its end, once it is known to be usable.
    static func checked(_ url: String, name: String) throws(PushConfigurationError) -> String {
        guard let parts = URLParts(url), parts.scheme == "https" || parts.scheme == "http" && parts.isLoopback else {
            throw PushConfigurationError("\(name) is not an https:// address; http:// is possible on a loopback address only")
        }
        return url.hasSuffix("/") ? String(url.dropLast()) : url
    }
}
