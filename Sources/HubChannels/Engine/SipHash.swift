/// SipHash-2-4 of one 64-bit number: short and keyed. Known hashes reveal nothing about those of other numbers.
struct SipHash {
    let key: (UInt64, UInt64)

    func hash(_ word: UInt64) -> UInt64 {
        var v0 = key.0 ^ 0x736F_6D65_7073_6575
        var v1 = key.1 ^ 0x646F_7261_6E64_6F6D
        var v2 = key.0 ^ 0x6C79_6765_6E65_7261
        var v3 = key.1 ^ 0x7465_6462_7974_6573
        func rotated(_ value: UInt64, _ count: UInt64) -> UInt64 { value << count | value >> (64 - count) }
        func round() {
            v0 &+= v1
            v1 = rotated(v1, 13) ^ v0
            v0 = rotated(v0, 32)
            v2 &+= v3
            v3 = rotated(v3, 16) ^ v2
            v0 &+= v3
            v3 = rotated(v3, 21) ^ v0
            v2 &+= v1
            v1 = rotated(v1, 17) ^ v2
            v2 = rotated(v2, 32)
        }
        // The number, and a last word with its byte count.
        for block in [word, 8 << 56] {
            v3 ^= block
            round()
            round()
            v0 ^= block
        }
        v2 ^= 0xFF
        for _ in 0..<4 { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }
}
