/// `application/x-www-form-urlencoded`, as Pusher's client libraries send it to an auth endpoint.
enum FormText {
    /// Members per form, repeated ones included. The hub's own forms have a handful, and the sender may be unauthenticated.
    static let membersMax = 100

    /// Members by name; the first of several equal names counts. Nil for an incomplete percent escape, for bytes that are not UTF-8,
    /// and for more than `membersMax` members.
    static func decode(_ body: [UInt8]) -> [String: String]? {
        var members: [String: String] = [:]
        // One piece more than the bound reveals an excess.
        let pairs = body.split(separator: UInt8(ascii: "&"), maxSplits: membersMax)
        guard pairs.count <= membersMax else { return nil }
        for pair in pairs {
            let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = text(pair[..<equals]), let value = text(pair[equals...].dropFirst()) else { return nil }
            if members[name] == nil { members[name] = value }
        }
        return members
    }

    private static func text(_ encoded: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encoded.count)
        var rest = encoded
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
