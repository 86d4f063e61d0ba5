import HubCore
import HubCrypto

/// The service account's token endpoint (RFC 7523; docs/protocol.md, 8.1).
struct OAuthEndpoint {
    static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    static let scopes = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]
    /// The audience in Google's libraries, whatever the account's `token_uri` is.
    static let googleAudience = "https://oauth2.googleapis.com/token"
    static let lifetimeSecondsMax: Int64 = 3600
    /// Tolerance for a client's clock.
    static let skewSeconds: Int64 = 300

    let account: ServiceAccount
    let publicKey: RS256PublicKey
    let tokens: AccessTokens
    let lifetimeSeconds: Int
    let clock: any TimeSource

    struct Refusal: Error, Equatable {
        var status = 400
        var error: String
        var description: String

        var response: HTTPResponse {
            .json(["error": .string(error), "error_description": .string(description)], status: status)
        }
    }

    /// The assertion's claims, if the grant is valid.
    func claims(of request: ReceivedRequest) throws(Refusal) -> JSONValue {
        guard request.method == "POST" else {
            throw Refusal(status: 405, error: "invalid_request", description: "Use POST.")
        }
        let type = request.header("content-type")?.lowercased() ?? ""
        guard type.hasPrefix("application/x-www-form-urlencoded") else {
            throw Refusal(error: "invalid_request", description: "Content-Type must be application/x-www-form-urlencoded.")
        }
        let form = PercentEncoding.parameters(String(decoding: request.body, as: UTF8.self))
        guard form.first(where: { $0.name == "grant_type" })?.value == Self.grantType else {
            throw Refusal(error: "unsupported_grant_type", description: "Invalid grant_type: expected the JWT bearer grant.")
        }
        guard let assertion = form.first(where: { $0.name == "assertion" })?.value, let token = WebToken(assertion) else {
            throw Refusal(error: "invalid_request", description: "Missing or unreadable assertion.")
        }
        guard token.header["alg"]?.stringValue == "RS256", token.header["kid"]?.stringValue == account.keyID,
            publicKey.isValid(signature: token.signature, for: token.signedBytes)
        else { throw Refusal(error: "invalid_grant", description: "Invalid JWT Signature.") }
        try check(token.claims)
        return token.claims
    }

    func grant() -> HTTPResponse {
        .json([
            "access_token": .string(tokens.issue(now: clock.monotonicMilliseconds)),
            "expires_in": .int(Int64(lifetimeSeconds)), "token_type": "Bearer",
        ])
    }

    private func check(_ claims: JSONValue) throws(Refusal) {
        guard claims["iss"]?.stringValue == account.email else {
            throw Refusal(error: "invalid_grant", description: "Invalid issuer: account not found.")
        }
        guard [account.tokenURL, Self.googleAudience].contains(claims["aud"]?.stringValue) else {
            throw Refusal(error: "invalid_grant", description: "Invalid JWT: wrong audience.")
        }
        let scopes = claims["scope"]?.stringValue?.split(separator: " ").map(String.init) ?? []
        guard scopes.contains(where: Self.scopes.contains) else {
            throw Refusal(error: "invalid_scope", description: "Invalid OAuth scope: it must include firebase.messaging.")
        }
        let now = clock.wallSeconds
        guard let issuedAt = claims["iat"]?.intValue, let expiresAt = claims["exp"]?.intValue, issuedAt >= 0,
            expiresAt > issuedAt, expiresAt - issuedAt <= Self.lifetimeSecondsMax, issuedAt <= now + Self.skewSeconds,
            expiresAt > now - Self.skewSeconds
        else {
            throw Refusal(
                error: "invalid_grant",
                description: "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
                    + "Check your iat and exp values in the JWT claim.")
        }
    }
}

/// The identity of the simulated service account.
struct ServiceAccount: Sendable, Equatable {
    var projectID: String
    var email: String
    var keyID: String
    /// The token endpoint, and the audience of assertions.
    var tokenURL: String
}
