import HubDelivery

/// The column `device` of `delivery`, a part of the row's key. A device's clear has a control character in front of the device's id, which
/// no id contains.
enum DeviceColumn {
    private static let mark: Unicode.Scalar = "\u{1F}"
    /// Whether a row is a clear.
    static let isClear = "(substr(delivery.device, 1, 1) = char(\(mark.value)))"

    static func text(_ delivery: PushRecord) -> String {
        delivery.purpose == .clear ? "\(mark)\(delivery.device)" : delivery.device
    }

    /// Appends the text, in UTF-8.
    static func append(_ delivery: PushRecord, to output: inout [UInt8]) {
        if delivery.purpose == .clear { output.append(UInt8(ascii: mark)) }
        output += delivery.device.utf8
    }

    static func read(_ text: String) -> (device: String, purpose: DeliveryPurpose) {
        text.unicodeScalars.first == mark ? (String(text.unicodeScalars.dropFirst()), .clear) : (text, .notification)
    }
}
