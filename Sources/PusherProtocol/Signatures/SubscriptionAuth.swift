internal import HubCore
package import HubCrypto

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
    ///   - key: the secret of a key of this app; nil for every other key.
    /// - Returns: the key that signed.
    /// - Throws: the hosted service's sentence, which quotes what the client sent.
    @discardableResult
    package static func verify(
        auth: String?, socketID: SocketID, channel: ChannelName, channelData: String?, key: (String) -> HMACKey?
    ) throws(ProtocolError) -> String {
        let (name, signed, key) = try split(auth, what: "subscription", key: key)
        let text = subscriptionText(socketID, channel.text, channelData)
        if key.isCode(signed, of: text) { return name }
        if !channel.kind.isPresence, channelData?.isEmpty == false,
            key.isCode(signed, of: subscriptionText(socketID, channel.text, nil))
        {
            return name
        }
        throw invalid(signed, text)
    }

    /// Checks the auth value of a sign-in; parameters, result and error as for a subscription.
    @discardableResult
    package static func verifyUser(
        auth: String, socketID: SocketID, userData: String, key: (String) -> HMACKey?
    ) throws(ProtocolError) -> String {
        let (name, signed, key) = try split(auth, what: "user", key: key)
        let text = userText(socketID, userData)
        guard key.isCode(signed, of: text) else { throw invalid(signed, text) }
        return name
    }

    private static func subscriptionText(_ socketID: SocketID, _ channel: String, _ channelData: String?) -> [UInt8] {
        guard let channelData, !channelData.isEmpty else { return text(socketID, ":", channel) }
        return text(socketID, ":", channel, more: channelData)
    }

    private static func userText(_ socketID: SocketID, _ userData: String) -> [UInt8] { text(socketID, "::user::", userData) }

    private static func text(_ socketID: SocketID, _ separator: StaticString, _ part: String, more: String? = nil) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(SocketID.bytesMax + separator.utf8CodeUnitCount + part.utf8.count + 1 + (more?.utf8.count ?? 0))
        socketID.append(to: &text)
        text.append(literal: separator)
        text.append(text: part)
        if let more {
            text.append(UInt8(ascii: ":"))
            text.append(text: more)
        }
        return text
    }

    private static func signature(of text: [UInt8], secret: String) -> String { Hex.encode(HMACKey(secret).code(of: text)) }

    private static func split(
        _ auth: String?, what: String, key: (String) -> HMACKey?
    ) throws(ProtocolError) -> (name: String, signed: ArraySlice<UInt8>, key: HMACKey) {
        guard let auth, !auth.isEmpty else {
            throw ProtocolError(message: "Missing \(what) auth data: expected 'key:signature'")
        }
        let text = Array(auth.utf8)
        // Keys hold no colon; the text after the first one is the signature.
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
            throw ProtocolError(message: "Invalid \(what) auth data: expected 'key:signature'")
        }
        let name = String(decoding: text[..<colon], as: UTF8.self)
        guard let key = key(name) else {
            throw ProtocolError(message: "Invalid key in \(what) auth data: '\(name)'")
        }
        return (name, text[(colon + 1)...], key)
    }

    private static func invalid(_ signed: ArraySlice<UInt8>, _ text: [UInt8]) -> ProtocolError {
        let (signed, text) = (String(decoding: signed, as: UTF8.self), String(decoding: text, as: UTF8.self))
        return ProtocolError(message: "Invalid signature: Expected HMAC SHA256 hex digest of \(text), but got \(signed)")
    }
}
