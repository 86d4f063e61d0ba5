internal import HubCrypto

/// The id that an app made up for its installation, long enough that nobody else can guess it.
///
/// It recognises people, so it is a secret: stores, listings, logs and tokens hold the names derived here, never the id itself.
package struct InstallationID: Sendable, Equatable {
    /// Unicode scalars of the shortest id that counts, and how many of them differ at least. A UUID has 36 and some 14.
    package static let charactersMin = 22
    package static let differentMin = 10
    /// Ids that begin so are names that the hub gives, or names of the hub's own users.
    static let reservedPrefixes = ["unnamed", "client:"]
    private static let ownerPrefix = "client:"
    private static let digestBytes = 16

    /// The device id of every row that was written under this installation: `dev_` and 32 hexadecimal digits.
    package let handle: String
    /// The user of a device that has joined nothing yet: `client:` and 32 hexadecimal digits.
    package let owner: String

    /// Nil for an id that is too short or too plain to be a secret.
    package init?(_ text: String) {
        let scalars = text.unicodeScalars
        guard scalars.count >= Self.charactersMin, Set(scalars).count >= Self.differentMin,
            !Self.reservedPrefixes.contains(where: text.hasPrefix)
        else { return nil }
        let digits = Hex.encode(Array(Digest.sha256(Array(text.utf8)).prefix(Self.digestBytes)))
        handle = "dev_\(digits)"
        owner = Self.ownerPrefix + digits
    }
}
