internal import HubCrypto

/// The handshake of a request for a WebSocket (RFC 6455, 4.1).
package struct UpgradeOffer: Sendable, Equatable {
    /// Nil without the header.
    let key: String?
    let version: String?
    /// In the client's order of preference.
    let protocols: [String]

    /// The handshake's headers; nil without the header.
    package init(key: String?, version: String?, protocols: [String]) {
        self.key = key
        self.version = version
        self.protocols = protocols
    }

    /// The supported sub-protocols. PusherSwift offers the first, and Apple's stack fails unless its offer is accepted.
    package static let protocolsSpoken = ["pusher-channels-protocol-7", "pusher-channels-protocol-6", "pusher-channels-protocol-5"]

    /// The answer to a valid handshake; throws the refusal of any other (RFC 6455, 4.2).
    package func accept(method: String, framing: BodyFraming) throws(HeadRefusal) -> [UInt8] {
        guard framing == .none else { throw HeadRefusal(400, "a handshake has no body") }
        guard method == "GET" else { throw HeadRefusal(405, "a WebSocket is asked for by GET", header: "Allow", "GET") }
        guard version == "13" else { throw Self.versionNeeded }
        guard let key, Self.isKey(key) else {
            throw HeadRefusal(400, "Sec-WebSocket-Key must be 16 random bytes in Base64")
        }
        var answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        answer += "Sec-WebSocket-Accept: \(Self.proof(of: key))\r\n"
        // No common sub-protocol is no mistake: the connection continues without one (RFC 6455, 4.2.2).
        if let spoken = protocols.first(where: Self.protocolsSpoken.contains) { answer += "Sec-WebSocket-Protocol: \(spoken)\r\n" }
        return Array((answer + "\r\n").utf8)
    }

    private static var versionNeeded: HeadRefusal {
        HeadRefusal(426, "Sec-WebSocket-Version must be 13", header: "Sec-WebSocket-Version", "13")
    }

    /// Sixteen bytes: 22 characters and two signs of padding.
    private static func isKey(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        guard bytes.count == 24, bytes[22] == UInt8(ascii: "="), bytes[23] == UInt8(ascii: "=") else { return false }
        return bytes[..<22].allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
    }

    /// The value of `Sec-WebSocket-Accept` (RFC 6455, 4.2.2).
    private static func proof(of key: String) -> String {
        let digest = Digest.sha1(Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8))
        let proof = Base64URL.encode(digest).replacing("-", with: "+").replacing("_", with: "/") + "="
        assert(proof.utf8.count == 28, "a digest of \(digest.count) bytes made a proof of \(proof.utf8.count)")
        return proof
    }
}
