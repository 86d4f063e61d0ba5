internal import HubCrypto
internal import HubDelivery
internal import HubHTTPClient

/// FCM settings of one project: a service account. No description of it contains the key.
package struct FCMConfiguration: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The service account's JSON from Google's console.
    package var serviceAccount: [UInt8]
    /// Replacement for Google's host, without a path; for simulators. `http` only on a loopback address.
    /// Access tokens come from the service account's own `token_uri`.
    package var url: String?
    /// PEM file of trusted authorities instead of the system's; for simulators.
    package var caFile: String?
    /// The project's quota; the hub uses four fifths of it.
    package var messagesPerMinute: Int
    let account: ServiceAccount

    /// Google's default quota of a Firebase project.
    package static let messagesPerMinuteDefault = 600_000

    /// - Throws: if the service account is incomplete or the address cannot be used.
    package init(
        serviceAccount: [UInt8], url: String? = nil, caFile: String? = nil,
        messagesPerMinute: Int = FCMConfiguration.messagesPerMinuteDefault
    ) throws(PushConfigurationError) {
        precondition(messagesPerMinute > 0, "messagesPerMinute \(messagesPerMinute)")
        self.messagesPerMinute = messagesPerMinute
        self.serviceAccount = serviceAccount
        account = try ServiceAccount(json: serviceAccount)
        self.url = try url.map { url throws(PushConfigurationError) in try GatewayURL.checked(url, name: "TANDEM_FCM_URL") }
        self.caFile = caFile
    }

    /// Reads the service account from `path` via `read`.
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

    /// The service account's project.
    package var projectID: String { account.projectID }

    /// Identity of equal configurations.
    var identity: PushLanes.FCMIdentity {
        PushLanes.FCMIdentity(accountDigest: Digest.sha256(serviceAccount), url: url, caFile: caFile, messagesPerMinute: messagesPerMinute)
    }

    /// Project whose quota applies.
    var project: PushLanes.FCMProject { PushLanes.FCMProject(id: projectID, url: url) }

    package var description: String { "FCM service account of project \(projectID)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["projectID": projectID]) }
}

enum GatewayURL {
    /// The address without a trailing slash, after validation.
    static func checked(_ url: String, name: String) throws(PushConfigurationError) -> String {
        guard let parts = URLParts(url), parts.scheme == "https" || parts.scheme == "http" && parts.isLoopback else {
            throw PushConfigurationError("\(name) is not an https:// address; http:// is possible on a loopback address only")
        }
        return url.hasSuffix("/") ? String(url.dropLast()) : url
    }
}
