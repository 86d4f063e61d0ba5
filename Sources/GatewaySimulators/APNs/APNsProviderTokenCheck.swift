import HubCore
import HubCrypto
import HubJSON

/// Checks the provider token as APNs does (docs/protocol.md, 9.1): a JWS with ES256, our key id and team id, at most an
/// hour old. Used on the APNs thread only.
final class APNsProviderTokenCheck {
    enum Verdict: Equatable {
        case valid
        case refused(reason: String)
    }

    static let ageSecondsMax: Int64 = 3600

    private let keyID: String
    private let teamID: String
    private let publicKey: ES256PublicKey
    private let clock: any TimeSource
    /// Tokens with a verified signature: a client sends the same one for an hour.
    private var verified: [String: (issuedAt: Int64, credential: JSONValue)] = [:]

    init(keyID: String, teamID: String, publicKey: ES256PublicKey, clock: any TimeSource) {
        self.keyID = keyID
        self.teamID = teamID
        self.publicKey = publicKey
        self.clock = clock
    }

    /// - Parameter authorization: the header's value; nil if it is missing.
    func check(_ authorization: String?) -> (verdict: Verdict, token: String) {
        guard let authorization, let token = BearerToken.read(authorization) else {
            return (.refused(reason: "MissingProviderToken"), "")
        }
        if let known = verified[token] { return (age(known.issuedAt), token) }
        guard let parts = WebToken(token), parts.header["alg"]?.stringValue == "ES256",
            parts.header["kid"]?.stringValue == keyID, parts.claims["iss"]?.stringValue == teamID,
            let issuedAt = parts.claims["iat"]?.intValue,
            publicKey.isValid(signature: parts.signature, for: parts.signedBytes)
        else { return (.refused(reason: "InvalidProviderToken"), token) }
        if verified.count >= SimulatorLimits.verifiedProviderTokensMax { verified.removeAll() }
        verified[token] = (issuedAt, parts.description)
        return (age(issuedAt), token)
    }

    /// The token's header and claims, for the record; nil if unreadable.
    func credential(_ token: String) -> JSONValue? {
        verified[token]?.credential ?? WebToken(token)?.description
    }

    private func age(_ issuedAt: Int64) -> Verdict {
        let now = clock.wallSeconds
        // An hour of tolerance either way. A token from the far future is useless to APNs too, but not "expired".
        if issuedAt > now + Self.ageSecondsMax { return .refused(reason: "InvalidProviderToken") }
        return issuedAt < now - Self.ageSecondsMax ? .refused(reason: "ExpiredProviderToken") : .valid
    }
}

/// The credential in an `authorization` header (RFC 6750, 2.1); the scheme's case does not matter.
enum BearerToken {
    static func read(_ header: String) -> String? {
        let parts = header.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }
}

/// The parts of a JSON Web Token in compact form (RFC 7519), unchecked.
struct WebToken {
    let header: JSONValue
    let claims: JSONValue
    let signature: [UInt8]
    let signedBytes: [UInt8]

    var description: JSONValue { ["header": header, "claims": claims] }

    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2]), let header = try? JSONValue(parsing: header),
            let claims = try? JSONValue(parsing: claims)
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        signedBytes = Array("\(parts[0]).\(parts[1])".utf8)
    }
}
