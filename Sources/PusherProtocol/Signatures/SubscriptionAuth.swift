import HubCrypto

/// Signatures by which an application's backend lets a connection subscribe or sign in (docs/protocol.md, 4.1):
/// `key:hex(HMAC-SHA256(secret, string))`.
///
/// The strings are signed as received, after the outer frame's JSON was unescaped. The texts are never parsed and
/// written anew, because other bytes of the same value have another signature.
package enum SubscriptionAuth {
    /// The auth value of a channel subscription.
    /// - Parameter channelData: nil or empty for none.
    package static func sign(
        socketID: SocketID, channel: String, channelData: String? = nil, key: String, secret: String
    ) -> String {
        key + ":" + signature(of: subscriptionText(socketID, channel, channelData), secret: secret)
    }

    /// The auth value of a sign-in.
    package static func signUser(socketID: SocketID, userData: String, key: String, secret: String) -> String {
        key + ":" + signature(of: userText(socketID, userData), secret: secret)
    }

    /// Checks the auth value of a channel subscription.
    ///
    /// A private channel's signature may leave out the channel data, since some SDKs attach data without signing it. A
    /// presence channel's signature must cover the data, which identifies the member.
    /// - Parameters:
    ///   - socketID: of the connection that sent the frame.
    ///   - channelData: as sent; nil or empty for none.
    ///   - secret: the secret of a key of this app; nil for every other key.
    /// - Returns: the key that signed.
    /// - Throws: the hosted service's sentence, which quotes what the client sent.
    @discardableResult
    package static func verify(
        auth: String?, socketID: SocketID, channel: ChannelName, channelData: String?, secret: (String) -> String?
    ) throws(ProtocolError) -> String {
        let (key, signed, keySecret) = try split(auth, what: "subscription", secret: secret)
        let text = subscriptionText(socketID, channel.text, channelData)
        if isValid(signed, text, keySecret) { return key }
        if !channel.kind.isPresence, channelData?.isEmpty == false,
            isValid(signed, subscriptionText(socketID, channel.text, nil), keySecret)
        {
            return key
        }
        throw invalid(signed, text)
    }

    /// Checks the auth value of a sign-in; parameters, result and error as for a subscription.
    @discardableResult
    package static func verifyUser(
        auth: String, socketID: SocketID, userData: String, secret: (String) -> String?
    ) throws(ProtocolError) -> String {
        let (key, signed, keySecret) = try split(auth, what: "user", secret: secret)
        let text = userText(socketID, userData)
        guard isValid(signed, text, keySecret) else { throw invalid(signed, text) }
        return key
    }

    private static func subscriptionText(_ socketID: SocketID, _ channel: String, _ channelData: String?) -> String {
        guard let channelData, !channelData.isEmpty else { return "\(socketID):\(channel)" }
        return "\(socketID):\(channel):\(channelData)"
    }

    private static func userText(_ socketID: SocketID, _ userData: String) -> String {
        "\(socketID)::user::\(userData)"
    }

    private static func signature(of text: String, secret: String) -> String {
        Hex.encode(HMAC.sha256(key: secret.utf8, message: text.utf8))
    }

    private static func isValid(_ signed: Substring, _ text: String, _ secret: String) -> Bool {
        constantTimeEquals(signed.utf8, signature(of: text, secret: secret).utf8)
    }

    private static func split(
        _ auth: String?, what: String, secret: (String) -> String?
    ) throws(ProtocolError) -> (key: String, signed: Substring, secret: String) {
        guard let auth, !auth.isEmpty else {
            throw ProtocolError(message: "Missing \(what) auth data: expected 'key:signature'")
        }
        // Keys hold no colon; the text after the first one is the signature.
        guard let colon = auth.firstIndex(of: ":") else {
            throw ProtocolError(message: "Invalid \(what) auth data: expected 'key:signature'")
        }
        let key = String(auth[..<colon])
        guard let keySecret = secret(key) else {
            throw ProtocolError(message: "Invalid key in \(what) auth data: '\(key)'")
        }
        return (key, auth[auth.index(after: colon)...], keySecret)
    }

    private static func invalid(_ signed: Substring, _ text: String) -> ProtocolError {
        ProtocolError(message: "Invalid signature: Expected HMAC SHA256 hex digest of \(text), but got \(signed)")
    }
}
