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

/// What it takes to speak to APNs for one app: a token-signing key and the app's topic.
package struct APNsConfiguration: Sendable {
    /// Contents of the `.p8` file.
    package var keyPEM: String
    /// Ten letters and digits, as shown beside the key in Apple's developer account.
    package var keyID: String
    /// Ten letters and digits.
    package var teamID: String
    /// The app's bundle id.
    package var topic: String
    /// Where to send instead of Apple's hosts, without a path; for simulators. `http` only on a loopback address.
    package var url: String?
    /// PEM file of authorities to trust instead of the system's; for simulators.
    package var caFile: String?
    /// For device tokens that came without an environment. The gateway itself always obeys the target.
    package var defaultEnvironment: APNsEnvironment

    /// - Throws: when a value cannot be right, so that the server refuses to start instead of failing at the first push.
    package init(
        keyPEM: String, keyID: String, teamID: String, topic: String, url: String? = nil, caFile: String? = nil,
        defaultEnvironment: APNsEnvironment = .production
    ) throws(PushConfigurationError) {
        try Self.check(keyID, name: "key id (APNS_KEY_ID)")
        try Self.check(teamID, name: "team id (APNS_TEAM_ID)")
        guard !topic.isEmpty, topic.utf8.count <= 255, topic.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw PushConfigurationError(
                "the APNs topic (APNS_TOPIC) is not a bundle id; set it to the app's bundle id, like com.example.app")
        }
        do throws(CryptoError) {
            _ = try ES256PrivateKey(pem: keyPEM)
        } catch {
            throw PushConfigurationError(
                "the APNs key is not an EC P-256 private key in PEM form (\(error)); use the .p8 file from Apple's developer account"
            )
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
        keyPath: String, keyID: String, teamID: String, topic: String, url: String? = nil, caFile: String? = nil,
        defaultEnvironment: APNsEnvironment = .production, read: CredentialReader = CredentialFile.read
    ) throws(PushConfigurationError) -> APNsConfiguration {
        let bytes = try read(keyPath)
        do throws(PushConfigurationError) {
            return try APNsConfiguration(
                keyPEM: String(decoding: bytes, as: UTF8.self), keyID: keyID, teamID: teamID, topic: topic, url: url,
                caFile: caFile, defaultEnvironment: defaultEnvironment)
        } catch {
            throw PushConfigurationError("\(keyPath): \(error)")
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

/// What it takes to speak to FCM for one project: a service account.
package struct FCMConfiguration: Sendable {
    /// The service account's JSON, as Google's console hands it out.
    package var serviceAccount: [UInt8]
    /// Where to send instead of Google's host, without a path; for simulators. `http` only on a loopback address. Access
    /// tokens come from the service account's own `token_uri`.
    package var url: String?
    package var caFile: String?
    let account: ServiceAccount

    /// - Throws: when the service account lacks something or the address cannot be used.
    package init(serviceAccount: [UInt8], url: String? = nil, caFile: String? = nil) throws(PushConfigurationError) {
        self.serviceAccount = serviceAccount
        account = try ServiceAccount(json: serviceAccount)
        self.url = try url.map { url throws(PushConfigurationError) in try GatewayURL.checked(url, name: "TANDEM_FCM_URL") }
        self.caFile = caFile
    }

    /// The same with the service account read from `path` by `read`.
    package static func load(
        path: String, url: String? = nil, caFile: String? = nil, read: CredentialReader = CredentialFile.read
    ) throws(PushConfigurationError) -> FCMConfiguration {
        let bytes = try read(path)
        do throws(PushConfigurationError) {
            return try FCMConfiguration(serviceAccount: bytes, url: url, caFile: caFile)
        } catch {
            throw PushConfigurationError("\(path): \(error)")
        }
    }

    /// The project the service account belongs to.
    package var projectID: String { account.projectID }
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
