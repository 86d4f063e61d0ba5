internal import HubCrypto

/// The handshake of a request for a WebSocket (RFC 6455, 4.1).
package struct UpgradeOffer: Sendable {
    /// Nil without the header.
    let key: [UInt8]?
    /// The client speaks the version of the RFC, which is 13.
    let isOfRFC: Bool
    /// The first sub-protocol in the client's order that is supported.
    let spoken: StaticString?

    /// The supported sub-protocols. PusherSwift offers the first, and Apple's stack fails unless its offer is accepted.
    static let protocolsSpoken: [StaticString] = [
        "pusher-channels-protocol-7", "pusher-channels-protocol-6", "pusher-channels-protocol-5",
    ]

    /// The answer to a valid handshake; throws the refusal of any other (RFC 6455, 4.2).
    package func accept(method: String, framing: BodyFraming) throws(HeadRefusal) -> [UInt8] {
        guard framing == .none else { throw HeadRefusal(400, "a handshake has no body") }
        guard method == "GET" else { throw HeadRefusal(405, "a WebSocket is asked for by GET", header: "Allow", "GET") }
        guard isOfRFC else {
            throw HeadRefusal(426, "Sec-WebSocket-Version must be 13", header: "Sec-WebSocket-Version", "13")
        }
        guard let key, Self.isKey(key) else {
            throw HeadRefusal(400, "Sec-WebSocket-Key must be 16 random bytes in Base64")
        }
        var answer: [UInt8] = []
        answer.reserveCapacity(Self.answerBytesMax)
        answer += Self.switching
        // The proof that the key was read (RFC 6455, 4.2.2).
        answer += Base64.encode(Digest.sha1(key + Self.suffix))
        // No common sub-protocol is no mistake: the connection continues without one (RFC 6455, 4.2.2).
        if let spoken { answer += Array("\r\nSec-WebSocket-Protocol: \(spoken)".utf8) }
        answer += Self.end
        assert(answer.count <= Self.answerBytesMax, "an answer of \(answer.count) bytes")
        return answer
    }

    private static let switching = Array(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ".utf8)
    private static let suffix = Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
    private static let end = Array("\r\n\r\n".utf8)
    private static let answerBytesMax = 192

    /// Sixteen bytes: 22 characters and two signs of padding.
    private static func isKey(_ key: [UInt8]) -> Bool {
        guard key.count == 24, key[22] == UInt8(ascii: "="), key[23] == UInt8(ascii: "=") else { return false }
        return key[..<22].allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
    }
}
