internal import HubCrypto

/// The id of what one participant is told about one event: the same on every surface, device and retry.
package enum NotificationID {
    /// The first 16 bytes of SHA-256 over event, app and user, as a lower-case UUID.
    ///
    /// - Parameters:
    ///   - event: a UUID; `app`: digits. Neither has a line break, which makes the joined text unambiguous.
    package static func make(event: String, app: String, user: String) -> String {
        UUIDText.format(Array(Digest.sha256("\(event)\n\(app)\n\(user)".utf8).prefix(UUIDText.byteCount)))
    }
}

/// Ids of events: version 7 UUIDs (RFC 9562, 5.7), so that ids sort by the time they were made.
package enum EventID {
    /// Random bytes that one id takes.
    package static let randomByteCount = 10

    /// - Parameters:
    ///   - wallMilliseconds: since 1970; 48 bits of it are used.
    ///   - random: at least `randomByteCount` bytes from a secure source.
    package static func make(wallMilliseconds: Int64, random: [UInt8]) -> String {
        precondition(random.count >= randomByteCount, "\(random.count) random bytes")
        var bytes = (0..<6).map { UInt8(truncatingIfNeeded: wallMilliseconds >> (40 - 8 * $0)) }
        bytes += random.prefix(randomByteCount)
        bytes[6] = bytes[6] & 0x0F | 0x70
        bytes[8] = bytes[8] & 0x3F | 0x80
        return UUIDText.format(bytes)
    }
}

enum UUIDText {
    static let byteCount = 16

    /// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in lower case.
    static func format(_ bytes: [UInt8]) -> String {
        precondition(bytes.count == byteCount, "\(bytes.count) bytes")
        let digits = Hex.encode(bytes).utf8
        var text: [UInt8] = []
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digit)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
