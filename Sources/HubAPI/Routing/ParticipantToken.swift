internal import HubChannels
internal import HubCore
internal import HubCrypto
internal import HubDefinitions
internal import HubJSON
internal import PusherProtocol

/// The reach of a participant token beyond the session's own channels.
enum ParticipantScope: String, CaseIterable {
    /// Issued by a join, which proves little: reaches the person while a join made the user id and this is its only session.
    case join
    /// Issued by the backend: reaches the session.
    case session
    /// Issued by the backend: reaches the person, in all sessions of the app.
    case app
}

/// Claims of a participant token: person, session and device.
struct ParticipantClaims: Equatable {
    var app: String
    var session: String
    var user: String
    var device: String
    var scope: ParticipantScope
    /// The participant's number, never reused: the token dies with the row. Nil in tokens of earlier versions.
    var number: Int64?
    /// Seconds since 1970.
    var issuedAt: Int64
    /// Seconds since 1970; the token is void from this second on.
    var expiresAt: Int64
}

/// The bearer token that joining returns: a JSON Web Token (RFC 7519), HS256 with the secret of the app's key in `kid`.
///
/// A token is valid as long as its key is configured, so it outlives the rotation of other keys.
enum ParticipantToken {
    static let lifetimeSeconds: Int64 = 24 * 60 * 60
    /// Usual tokens have about 500 bytes; names of full length bring them to about 2,000.
    static let bytesMax = 4096
    private static let identifierByteCount = 16

    /// Reason for a refused token, for the answer. Contains no help for forging one.
    struct Refusal: Error, Equatable {
        let sentence: String

        static let malformed = Refusal(sentence: "the participant token is not one of this server: join the session again")
        static let expired = Refusal(sentence: "the participant token has expired: join the session again")
    }

    /// Signs a token of `lifetimeSeconds` with the app's `signer`.
    /// - Parameter device: a name without a secret.
    static func issue(
        app: App, participant: Participant, device: String, scope: ParticipantScope, nowSeconds: Int64,
        random: (Int) -> [UInt8] = SecureRandom.bytes
    ) -> String {
        let (key, secret) = app.signer
        let header: JSONValue = ["alg": "HS256", "kid": .string(key), "typ": "JWT"]
        let payload: JSONValue = [
            "app": .string(app.id),
            "session": .string(participant.session),
            "sub": .string(participant.user),
            "number": .int(participant.number),
            "device": .string(device),
            "scope": .string(scope.rawValue),
            "iat": .int(nowSeconds),
            "exp": .int(nowSeconds + lifetimeSeconds),
            "jti": .string(Hex.encode(random(identifierByteCount))),
        ]
        let signed = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(payload.serialized())
        return signed + "." + Base64URL.encode(HMAC.sha256(key: secret.utf8, message: signed.utf8))
    }

    /// Verifies a token of one of these apps.
    ///
    /// The header only names the key: the algorithm is always HS256 (RFC 8725, 3.1). The payload is read only after
    /// the signature has been verified.
    static func verify(
        _ token: String, apps: AppDirectory, nowSeconds: Int64
    ) throws(Refusal) -> (claims: ParticipantClaims, app: App) {
        guard token.utf8.count <= bytesMax else { throw .malformed }
        let parts = token.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = object(parts[0]), header["alg"] == "HS256", header["crit"] == nil,
            let key = header["kid"]?.stringValue, let app = apps.app(key: key), let secret = app.secrets[key],
            let signature = Base64URL.decode(parts[2])
        else { throw .malformed }
        let expected = HMAC.sha256(key: secret.utf8, message: "\(parts[0]).\(parts[1])".utf8)
        guard constantTimeEquals(signature, expected) else { throw .malformed }
        guard let payload = object(parts[1]), payload["app"]?.stringValue == app.id, let claims = ParticipantClaims(payload) else {
            throw .malformed
        }
        guard nowSeconds < claims.expiresAt else { throw .expired }
        return (claims, app)
    }

    private static func object(_ part: Substring) -> JSONValue? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        // Details about a forged token's JSON are of no use.
        return try? JSONValue(parsing: bytes)
    }
}

extension App {
    /// The key that signs the hub's own tokens: the first in the configuration, so that all nodes take the same key. Such a signature is
    /// valid for connections by any key of the app. Reading the configuration ensures that there is a key.
    var signer: (key: String, secret: String) {
        if let signingKey, let secret = secrets[signingKey] { return (signingKey, secret) }
        guard let first = secrets.min(by: { $0.key < $1.key }) else { preconditionFailure("app \(id) has no key") }
        return (first.key, first.value)
    }
}

extension ParticipantClaims {
    fileprivate init?(_ payload: JSONValue) {
        guard let app = payload["app"]?.stringValue, let session = payload["session"]?.stringValue,
            let user = payload["sub"]?.stringValue, let device = payload["device"]?.stringValue,
            let issuedAt = payload["iat"]?.intValue, let expiresAt = payload["exp"]?.intValue,
            // Tokens of earlier versions came from joins.
            let scope = ParticipantScope(rawValue: payload["scope"]?.stringValue ?? ParticipantScope.join.rawValue)
        else { return nil }
        self.init(
            app: app, session: session, user: user, device: device, scope: scope, number: payload["number"]?.intValue, issuedAt: issuedAt,
            expiresAt: expiresAt)
    }
}
