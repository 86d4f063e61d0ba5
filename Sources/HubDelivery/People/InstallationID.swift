internal import HubCrypto

/// An id that the app made up for its installation, too long to be guessed.
///
/// It recognises people, so it is a secret: stores, listings, logs and tokens hold the names derived from it, never the id itself.
package struct InstallationID: Sendable, Equatable {
    /// Unicode scalars of the shortest accepted id. A UUID has 36.
    package static let charactersMin = 22
    /// Least number of different scalars in an accepted id. A UUID has some 14.
    package static let differentMin = 10
    /// Prefixes of names that the hub gives, and of its own users.
    static let reservedPrefixes = ["unnamed", "client:"]
    private static let ownerPrefix = "client:"
    private static let digestBytes = 16

    /// Device id of every row written under this installation: `dev_` and 32 hexadecimal digits.
    package let handle: String
    /// User id of a device that has joined nothing yet: `client:` and 32 hexadecimal digits.
    package let owner: String

    /// Derives the names; nil for an id that is too short or too plain to be a secret.
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
