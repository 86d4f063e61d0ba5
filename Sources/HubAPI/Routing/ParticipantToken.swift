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

/// The bearer token that joining returns.
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
        return SignedToken.make(payload, type: "JWT", app: app)
    }

    /// Verifies a token of one of these apps.
    static func verify(
        _ token: String, apps: AppDirectory, nowSeconds: Int64
    ) throws(Refusal) -> (claims: ParticipantClaims, app: App) {
        // Tokens of earlier versions may be of any type; what is no participant's lacks the claims.
        guard let (payload, app) = SignedToken.open(token, type: nil, bytesMax: bytesMax, apps: apps),
            let claims = ParticipantClaims(payload)
        else { throw .malformed }
        guard nowSeconds < claims.expiresAt else { throw .expired }
        return (claims, app)
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
