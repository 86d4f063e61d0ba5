internal import HubDelivery

/// Checks on a device token's text. The text never tells the platform: an iOS app may hold an FCM token.
enum DeviceToken {
    /// FCM documents no length; real tokens have 150 to 300 bytes.
    static let bytesMax = 4096
    /// Hexadecimal digits. Apple's tokens have 32 bytes today and up to 100 by its documentation.
    private static let apnsDigits = 64...200

    /// Printable ASCII without spaces, as both gateways issue.
    static func isPlausible(_ token: String) -> Bool {
        (1...bytesMax).contains(token.utf8.count) && token.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    static func isHexBytes(_ token: String) -> Bool {
        !token.isEmpty && token.utf8.count.isMultiple(of: 2) && token.utf8.allSatisfy(isHexDigit)
    }

    /// Whether the text has the form of a raw APNs token. FCM's tokens have letters beyond F, and in practice a colon.
    static func looksLikeAPNs(_ token: String) -> Bool { isHexBytes(token) && apnsDigits.contains(token.utf8.count) }

    /// Gateway for a registration that names none.
    static func provider(of token: String?, on platform: DevicePlatform) -> PushProvider {
        guard platform == .ios, let token else { return .fcm }
        return looksLikeAPNs(token) ? .apns : .fcm
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }
}
