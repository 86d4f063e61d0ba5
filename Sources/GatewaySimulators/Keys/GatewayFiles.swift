/// Paths of the simulators' keys and settings; absolute.
package struct GatewayFiles: Sendable, Equatable {
    package let folder: String
    /// The authority of the servers' certificate, which a client has to trust.
    package var authority: String { folder + "/ca.pem" }
    package var authorityKey: String { folder + "/ca-key.pem" }
    package var certificate: String { folder + "/server.pem" }
    package var certificateKey: String { folder + "/server-key.pem" }
    package var serviceAccount: String { folder + "/service-account.json" }
    /// Shell exports of all settings that Tandem needs.
    package var environment: String { folder + "/gateways.env" }
    /// Path of the signing key. Apple's file names contain the key's id.
    package func apnsKey(id: String) -> String { folder + "/AuthKey_\(id).p8" }
}
