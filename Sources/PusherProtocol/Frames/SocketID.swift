internal import HubCore

/// The id of a connection that clients and publishers see: two numbers with a dot, as every server SDK validates it.
///
/// Both numbers stay below 2^53, so that a client which reads them as doubles prints them unchanged.
package struct SocketID: Hashable, Sendable, CustomStringConvertible {
    /// The number before the dot, below `numberEnd`.
    package let first: UInt64
    /// The number after the dot, below `numberEnd`.
    package let second: UInt64

    /// Both numbers are below this.
    package static let numberEnd: UInt64 = 1 << 53

    /// Both below `numberEnd`.
    package init(first: UInt64, second: UInt64) {
        precondition(first < Self.numberEnd && second < Self.numberEnd, "socket id \(first).\(second)")
        self.first = first
        self.second = second
    }

    /// Nil when the text is not `^\d+\.\d+$` or a number is not below `numberEnd`.
    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard let dot = bytes.firstIndex(of: UInt8(ascii: ".")), let first = Self.number(bytes[..<dot]),
            let second = Self.number(bytes[bytes.index(after: dot)...])
        else { return nil }
        self.first = first
        self.second = second
    }

    /// Whether the text has the form of a socket id. A malformed id is a publisher's error; the id of an unknown
    /// connection is not.
    package static func isWellFormed(_ text: some StringProtocol) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(isDigit) }
    }

    /// The most bytes of the text.
    static let bytesMax = 33

    package var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the text. Allocates nothing but the array's own room.
    package func append(to text: inout [UInt8]) {
        text.append(decimal: first)
        text.append(UInt8(ascii: "."))
        text.append(decimal: second)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private static func number(_ digits: some Collection<UInt8>) -> UInt64? {
        guard !digits.isEmpty else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            guard isDigit(byte) else { return nil }
            value = value * 10 + UInt64(byte - UInt8(ascii: "0"))
            guard value < numberEnd else { return nil }
        }
        return value
    }
}
