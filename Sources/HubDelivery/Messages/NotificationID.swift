internal import HubCrypto

/// Id of the notification of one event to one participant: the same on every surface, device and retry.
package enum NotificationID {
    /// The first 16 bytes of SHA-256 over event, app and user, as a lower-case UUID.
    ///
    /// - Parameters:
    ///   - event: a UUID. `app` consists of digits. Neither has a line break, so the joined text is unambiguous.
    package static func make(event: String, app: String, user: String) -> String {
        var (event, app, user) = (event, app, user)
        var message: [UInt8] = []
        message.reserveCapacity(event.utf8.count + app.utf8.count + user.utf8.count + 2)
        event.withUTF8 { unsafe message.append(contentsOf: $0) }
        message.append(UInt8(ascii: "\n"))
        app.withUTF8 { unsafe message.append(contentsOf: $0) }
        message.append(UInt8(ascii: "\n"))
        user.withUTF8 { unsafe message.append(contentsOf: $0) }
        return UUIDText.format(Digest.sha256(message))
    }

    /// Id of the push that clears a notification. Apps remember the ids that they have handled, so it cannot be the notification's own.
    package static func clearing(_ nid: String) -> String {
        UUIDText.format(Digest.sha256(Array("clear\n\(nid)".utf8)))
    }
}

/// Ids of events: version 7 UUIDs (RFC 9562, 5.7), which sort by creation time.
package enum EventID {
    /// Random bytes per id.
    package static let randomByteCount = 10

    /// Makes an id.
    /// - Parameters:
    ///   - wallMilliseconds: since 1970; the low 48 bits are used.
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

    /// The first 16 bytes as `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in lower case.
    static func format(_ bytes: [UInt8]) -> String {
        precondition(bytes.count >= byteCount, "\(bytes.count) bytes")
        return unsafe String(unsafeUninitializedCapacity: 2 * byteCount + 4) { text in
            var next = 0
            for index in 0..<byteCount {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    unsafe text[next] = UInt8(ascii: "-")
                    next += 1
                }
                unsafe text[next] = digit(bytes[index] >> 4)
                unsafe text[next + 1] = digit(bytes[index] & 15)
                next += 2
            }
            return next
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value }
}
