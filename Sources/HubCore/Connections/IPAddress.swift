/// An IPv4 or IPv6 address, parsed without a resolver. IPv4 is stored as an IPv4-mapped IPv6 address (RFC 4291,
/// 2.5.5.2), so both spellings are one value.
package struct IPAddress: Hashable, Sendable {
    /// The address's first 64 bits.
    package let high: UInt64
    /// The address's last 64 bits.
    package let low: UInt64

    private static let ipv4Prefix: UInt64 = 0xFFFF << 32

    /// An IPv6 address by its halves; an IPv4 address by its IPv4-mapped form.
    package init(high: UInt64, low: UInt64) {
        (self.high, self.low) = (high, low)
    }

    /// Bytes in network order: four, or sixteen. Nil for every other count.
    package init?(bytes: some Collection<UInt8>) {
        func number(_ part: some Sequence<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: self.init(high: 0, low: Self.ipv4Prefix | number(bytes))
        case 16: self.init(high: number(bytes.prefix(8)), low: number(bytes.dropFirst(8)))
        default: return nil
        }
    }

    /// Dotted decimals, or hexadecimal groups (RFC 4291, 2.2), with or without a zone. No port and no brackets.
    package init?(_ text: String) {
        var text = text
        // Most addresses are plain dotted decimals.
        if let number = text.withUTF8({ unsafe Self.ipv4($0) }) {
            self.init(high: 0, low: Self.ipv4Prefix | UInt64(number))
        } else {
            self.init(text: ArraySlice(text.utf8))
        }
    }

    /// The same for a part of a text.
    package init?(_ text: Substring) { self.init(text: ArraySlice(text.utf8)) }

    private init?(text: ArraySlice<UInt8>) {
        let text = text.prefix { $0 != UInt8(ascii: "%") }
        if !text.contains(UInt8(ascii: ":")) {
            guard let number = Self.ipv4(text) else { return nil }
            self.init(high: 0, low: Self.ipv4Prefix | UInt64(number))
            return
        }
        guard let halves = Self.halves(text) else { return nil }
        let (front, back) = halves
        guard let back else {
            guard front.count == 8 else { return nil }
            self.init(groups: front)
            return
        }
        guard front.count + back.count < 8 else { return nil }
        self.init(groups: front + Array(repeating: 0, count: 8 - front.count - back.count) + back)
    }

    private init(groups: [UInt16]) {
        assert(groups.count == 8, "an IPv6 address of \(groups.count) groups")
        func number(_ part: some Sequence<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
        self.init(high: number(groups.prefix(4)), low: number(groups.dropFirst(4)))
    }

    /// Whether the address is an IPv4 one, in either spelling.
    package var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// This machine itself: 127.0.0.0/8 or ::1.
    package var isLoopback: Bool { isIPv4 ? (low >> 24) & 0xFF == 127 : high == 0 && low == 1 }

    /// The key for counting a peer: an IPv4 address, or the first 64 bits of an IPv6 address. The owner of an IPv6
    /// address usually has its whole /64.
    package var neighbourhood: IPAddress { isIPv4 ? self : IPAddress(high: high, low: 0) }

    /// The groups before and after a `::`; without a `::` the second half is nil.
    private static func halves(_ bytes: ArraySlice<UInt8>) -> ([UInt16], [UInt16]?)? {
        let colon = UInt8(ascii: ":")
        guard let gap = bytes.indices.dropLast().first(where: { bytes[$0] == colon && bytes[$0 + 1] == colon }) else {
            return groups(bytes, isLast: true).map { ($0, nil) }
        }
        guard let front = groups(bytes[..<gap], isLast: false), let back = groups(bytes[(gap + 2)...], isLast: true) else { return nil }
        return (front, back)
    }

    /// Groups of up to four hexadecimal digits; the last may be dotted decimals, which are two groups.
    private static func groups(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt16]? {
        if bytes.isEmpty { return [] }
        var groups: [UInt16] = []
        let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if isLast, index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
                guard let tail = ipv4(part) else { return nil }
                groups += [UInt16(tail >> 16), UInt16(tail & 0xFFFF)]
                continue
            }
            let text = String(decoding: part, as: UTF8.self)
            guard (1...4).contains(part.count), text.allSatisfy(\.isHexDigit), text.utf8.count == text.count,
                let group = UInt16(text, radix: 16)
            else {
                return nil
            }
            groups.append(group)
        }
        return groups.count <= 8 ? groups : nil
    }

    /// Four decimals without leading zeros, which some programs read as octal.
    private static func ipv4(_ text: some Sequence<UInt8>) -> UInt32? {
        var (address, part, digits, dots): (UInt32, UInt32, Int, Int) = (0, 0, 0, 0)
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                guard digits == 0 || part > 0 else { return nil }
                part = part * 10 + UInt32(byte - UInt8(ascii: "0"))
                digits += 1
                guard part <= 255 else { return nil }
            case UInt8(ascii: "."):
                guard digits > 0, dots < 3 else { return nil }
                (address, part, digits, dots) = (address << 8 | part, 0, 0, dots + 1)
            default: return nil
            }
        }
        return digits > 0 && dots == 3 ? address << 8 | part : nil
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimals, or groups with the longest run of zeros left out (RFC 5952).
    package var description: String {
        if isIPv4 { return dottedDecimals }
        let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { (half >> $0) & 0xFFFF } }
        var (best, length) = (0, 1)
        var start = 0
        while start < groups.count {
            let run = groups[start...].prefix { $0 == 0 }.count
            if run > length { (best, length) = (start, run) }
            start += max(run, 1)
        }
        func text(_ part: ArraySlice<UInt64>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        return length == 1 ? text(groups[...]) : "\(text(groups[..<best]))::\(text(groups[(best + length)...]))"
    }
    private var dottedDecimals: String {
        // Fifteen bytes fit into a string without an allocation.
        unsafe String(unsafeUninitializedCapacity: 15) { text in
            let zero = UInt8(ascii: "0")
            var count = 0
            func append(_ byte: UInt8) {
                unsafe text[count] = byte
                count += 1
            }
            for shift: UInt64 in [24, 16, 8, 0] {
                if count > 0 { append(UInt8(ascii: ".")) }
                let part = UInt8(truncatingIfNeeded: low >> shift)
                if part >= 100 { append(zero + part / 100) }
                if part >= 10 { append(zero + part / 10 % 10) }
                append(zero + part % 10)
            }
            return count
        }
    }
}

/// All addresses that begin with the same bits: `10.0.0.0/8`, `2001:db8::/32`, or one address.
package struct IPNetwork: Hashable, Sendable {
    private let address: IPAddress
    /// Bits out of 128, also for an IPv4 network.
    private let bits: Int

    /// Nil when the text is no network, or when bits after the prefix are set: then address or length is a mistake.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard !text.contains("%"), let address = IPAddress(parts[0]) else { return nil }
        let isIPv4 = address.isIPv4 && !parts[0].contains(":")
        let most = isIPv4 ? 32 : 128
        var length = most
        if parts.count == 2 {
            let digits = parts[1]
            guard (1...3).contains(digits.utf8.count), digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let given = Int(digits), given <= most
            else { return nil }
            length = given
        }
        self.address = address
        bits = length + 128 - most
        assert((0...128).contains(bits), "a network of \(bits) bits")
        guard Self.masked(address, bits) == address else { return nil }
    }

    /// Whether the address lies in the network.
    package func contains(_ other: IPAddress) -> Bool { Self.masked(other, bits) == address }

    private static func masked(_ address: IPAddress, _ bits: Int) -> IPAddress {
        func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
        return IPAddress(high: address.high & mask(bits), low: address.low & mask(bits - 64))
    }
}
