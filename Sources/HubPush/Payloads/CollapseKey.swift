internal import HubCore
internal import HubCrypto
internal import HubDelivery

/// Ids for deduplication, order and replacement at clients; equal on every gateway and every retry.
extension PushMessage {
    /// `nid`, `event_id`, `seq` and `ts`, which every payload contains and which override data of the same names.
    /// `ts` is in milliseconds since 1970; `seq` is missing while the event has no position.
    var identityMembers: [String: JSONValue] {
        var members: [String: JSONValue] = ["nid": .string(nid), "event_id": .string(event), "ts": .int(committedAt)]
        if sequence > 0 { members["seq"] = .int(sequence) }
        return members
    }

    /// The group for gateways. A hash replaces it above 64 bytes, APNs' limit for a collapse id.
    var collapseKey: String? {
        guard let group, !group.isEmpty else { return nil }
        return group.utf8.count > CollapseKey.bytesMax ? CollapseKey.hashed(group) : group
    }

    /// The group for a header, where only visible ASCII is safe.
    var collapseHeader: String? {
        guard let group, !group.isEmpty else { return nil }
        let isPlain = group.utf8.count <= CollapseKey.bytesMax && group.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return isPlain ? group : CollapseKey.hashed(group)
    }
}

enum CollapseKey {
    /// APNs: `apns-collapse-id` is at most 64 bytes.
    static let bytesMax = 64
    private static let hashedCount = 32

    /// The header `Topic` of web push: at most 32 URL-safe characters.
    static func webTopic(_ group: String) -> String {
        let isPlain =
            (1...hashedCount).contains(group.utf8.count)
            && group.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    true
                case UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
        return isPlain ? group : hashed(group)
    }

    /// A positive number of 31 bits.
    static func number(_ text: String) -> Int32 {
        let bytes = Digest.sha256(text.utf8).prefix(4)
        return Int32(bytes.reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF)
    }

    static func hashed(_ group: String) -> String { String(Base64URL.encode(Digest.sha256(group.utf8)).prefix(hashedCount)) }
}

/// Request id of one notification to one device: identical on every retry, so that a repetition is recognisable.
enum RequestID {
    /// Lower-case canonical UUID of version 8 (RFC 9562, 5.8), from a SHA-256 of both ids.
    static func make(nid: String, device: String) -> String {
        var message: [UInt8] = []
        message.reserveCapacity(nid.utf8.count + device.utf8.count + 1)
        message += nid.utf8
        // Separator: keeps ("a", "bc") and ("ab", "c") apart.
        message.append(0)
        message += device.utf8
        var bytes = Digest.sha256(message)
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Hex.digits(of: bytes)
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for range in [0..<8, 8..<12, 12..<16, 16..<20, 20..<32] {
            if range.lowerBound > 0 { text.append(UInt8(ascii: "-")) }
            text += digits[range]
        }
        return String(decoding: text, as: UTF8.self)
    }
}
