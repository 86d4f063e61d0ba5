internal import HubCore
internal import HubCrypto

/// The recipients of an event, in an order that stays: what the bits of its fan-out count.
///
/// A session's events mostly have the same recipients, so the list is stored once under a key made of its content, and each
/// event refers to it. Making the value costs a walk over the list and its digest; keep it for as long as the roster stays.
package struct RecipientSnapshot: Sendable, Equatable {
    /// Distinct user ids, byte by byte. Their positions are the recipients' places.
    package let users: [String]
    /// SHA-256 of `encoded`: equal lists have equal keys.
    package let key: [UInt8]
    /// Of each user, in order, the count of UTF-8 bytes (LEB128) and the bytes.
    package let encoded: [UInt8]

    /// Costs under a millisecond for 10,000 users.
    /// - Parameter users: distinct.
    package init(users: [String]) {
        assert(Set(users.map { ExactText($0) }).count == users.count, "recipients are distinct")
        self.users = users
        var encoded: [UInt8] = []
        encoded.reserveCapacity(users.count * 12)
        for user in users {
            let bytes = user.utf8
            Self.append(bytes.count, to: &encoded)
            encoded.append(contentsOf: bytes)
        }
        self.encoded = encoded
        key = Digest.sha256(encoded)
    }

    /// A stored list.
    /// - Returns: nil when the bytes are not those that were stored under the key.
    package init?(encoded: [UInt8], key: [UInt8]) {
        guard Digest.sha256(encoded) == key, let users = Self.decode(encoded) else { return nil }
        self.users = users
        self.encoded = encoded
        self.key = key
    }

    package static func == (a: RecipientSnapshot, b: RecipientSnapshot) -> Bool { a.key == b.key }

    private static func append(_ count: Int, to encoded: inout [UInt8]) {
        var rest = count
        while rest >= 0x80 {
            encoded.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        encoded.append(UInt8(rest))
    }

    private static func decode(_ encoded: [UInt8]) -> [String]? {
        var users: [String] = []
        var next = 0
        while next < encoded.count {
            var (count, shift) = (0, 0)
            while true {
                guard next < encoded.count, shift < 28 else { return nil }
                let byte = encoded[next]
                next += 1
                count |= Int(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 { break }
            }
            guard count <= encoded.count - next, let user = String(validating: encoded[next..<next + count], as: UTF8.self) else {
                return nil
            }
            users.append(user)
            next += count
        }
        return users
    }
}
