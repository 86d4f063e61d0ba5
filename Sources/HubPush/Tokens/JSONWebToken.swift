internal import HubCore
internal import HubCrypto

/// The compact form of a signed token (RFC 7515, 3.1).
enum JSONWebToken {
    /// - Parameter sign: makes the raw signature of its argument.
    static func make(
        header: JSONValue, claims: JSONValue, sign: ([UInt8]) throws(CryptoError) -> [UInt8]
    ) throws(CryptoError) -> String {
        let signed = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(claims.serialized())
        return signed + "." + Base64URL.encode(try sign(Array(signed.utf8)))
    }
}
