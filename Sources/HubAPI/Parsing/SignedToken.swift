internal import HubChannels
internal import HubCore
internal import HubCrypto
internal import HubJSON
internal import PusherProtocol

/// A JSON Web Token (RFC 7519) that the hub makes for itself: HS256 with the secret of the app's key in `kid`.
///
/// A token is valid as long as its key is configured, so it outlives the rotation of other keys.
enum SignedToken {
    /// Signs a payload with the app's `signer`.
    /// - Parameter type: the header's `typ`, which tells sorts of tokens apart.
    static func make(_ payload: JSONValue, type: String, app: App) -> String {
        let (key, secret) = app.signer
        let header: JSONValue = ["alg": "HS256", "kid": .string(key), "typ": .string(type)]
        let signed = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(payload.serialized())
        return signed + "." + Base64URL.encode(HMAC.sha256(key: secret.utf8, message: signed.utf8))
    }

    /// The payload of a token of one of these apps, and that app. Nil if it is none.
    ///
    /// The header only names the key: the algorithm is always HS256 (RFC 8725, 3.1). The payload is read only after the signature has been
    /// verified.
    /// - Parameter type: the header's `typ`; nil: it does not matter.
    static func open(_ token: String, type: String?, bytesMax: Int, apps: AppDirectory) -> (payload: JSONValue, app: App)? {
        guard token.utf8.count <= bytesMax else { return nil }
        let parts = token.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = object(parts[0]), header["alg"] == "HS256", header["crit"] == nil,
            type.map({ header["typ"]?.stringValue == $0 }) ?? true,
            let key = header["kid"]?.stringValue, let app = apps.app(key: key), let secret = app.secrets[key],
            let signature = Base64URL.decode(parts[2])
        else { return nil }
        let expected = HMAC.sha256(key: secret.utf8, message: "\(parts[0]).\(parts[1])".utf8)
        guard constantTimeEquals(signature, expected), let payload = object(parts[1]), payload["app"]?.stringValue == app.id else {
            return nil
        }
        return (payload, app)
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
