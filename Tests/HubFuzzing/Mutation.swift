import HubTesting

extension SeededRandom {
    mutating func below(_ end: Int) -> Int { Int(truncatingIfNeeded: next() % UInt64(end)) }
    mutating func chance(_ part: Int, in whole: Int) -> Bool { below(whole) < part }
    mutating func element<Element>(of list: [Element]) -> Element { list[below(list.count)] }

    /// Corrupts bytes with up to six flips, cuts, repetitions, inserted tokens or pieces of another input.
    mutating func corrupt(_ bytes: [UInt8], tokens: [[UInt8]], other: [UInt8] = []) -> [UInt8] {
        var bytes = bytes
        for _ in 0...below(6) {
            let place = below(bytes.count + 1)
            switch below(10) {
            case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
            case 1 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 2 where place < bytes.count: bytes[place] = element(of: Self.troublesomeBytes)
            case 3: bytes.insert(element(of: Self.troublesomeBytes), at: place)
            case 4, 5: bytes.insert(contentsOf: element(of: tokens), at: place)
            case 6: bytes.removeSubrange(place..<min(bytes.count, place + 1 + below(16)))
            case 7:
                let end = min(bytes.count, place + 1 + below(32))
                let piece = bytes[place..<end]
                for _ in 0...below(chance(1, in: 50) ? 400 : 3) { bytes.insert(contentsOf: piece, at: place) }
            case 8 where chance(1, in: 3): bytes.removeSubrange(place...)
            case 9 where !other.isEmpty:
                let start = below(other.count)
                bytes.replaceSubrange(place..., with: other[start...])
            default: continue
            }
        }
        return bytes
    }

    private static let troublesomeBytes: [UInt8] = [
        0x00, 0x01, 0x09, 0x0A, 0x0D, 0x1F, 0x20, 0x22, 0x23, 0x26, 0x2C, 0x2D, 0x2E, 0x2F, 0x3A, 0x3B, 0x3D, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D,
        0x7F,
        0x80, 0xBF, 0xC0, 0xC2, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFE, 0xFF,
    ]
}

/// The inputs of a target: well-formed ones, corrupted ones, and stored ones corrupted further.
struct InputSource {
    let seeds: [[UInt8]]
    let tokens: [[UInt8]]
    let wellFormed: (inout SeededRandom) -> [UInt8]

    /// - Parameter tokens: the tokens of the target's language.
    init(_ target: String, tokens: [String], wellFormed: @escaping (inout SeededRandom) -> [UInt8]) {
        seeds = SeedFiles.inputs(of: target).map(\.bytes)
        self.tokens = tokens.map { Array($0.utf8) }
        self.wellFormed = wellFormed
    }

    func draw(_ random: inout SeededRandom) -> [UInt8] {
        let bytes: [UInt8]
        switch random.below(20) {
        case 0..<8: bytes = wellFormed(&random)
        case let draw where draw < 16 || seeds.isEmpty:
            bytes = random.corrupt(wellFormed(&random), tokens: tokens, other: wellFormed(&random))
        default: bytes = random.corrupt(random.element(of: seeds), tokens: tokens, other: random.element(of: seeds))
        }
        return bytes.count > FuzzTarget.inputBytesMax ? Array(bytes.prefix(FuzzTarget.inputBytesMax)) : bytes
    }
}
