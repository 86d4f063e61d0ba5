/// Where the simulators' keys and settings lie; absolute paths.
package struct GatewayFiles: Sendable, Equatable {
    package let folder: String
    /// The authority that signed the servers' certificate: what a client has to trust.
    package var authority: String { folder + "/ca.pem" }
    package var authorityKey: String { folder + "/ca-key.pem" }
    package var certificate: String { folder + "/server.pem" }
    package var certificateKey: String { folder + "/server-key.pem" }
    package var serviceAccount: String { folder + "/service-account.json" }
    /// Shell exports of every setting that Tandem needs.
    package var environment: String { folder + "/gateways.env" }
    /// Apple's name for the signing key: its id is part of it.
    package func apnsKey(id: String) -> String { folder + "/AuthKey_\(id).p8" }
}
