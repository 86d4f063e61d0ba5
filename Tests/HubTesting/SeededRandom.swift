/// Random numbers that are reproducible from a printed seed (SplitMix64).
package struct SeededRandom: RandomNumberGenerator {
    package var state: UInt64

    package init(state: UInt64) {
        self.state = state
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}

extension SeededRandom {
    /// The text with up to five characters removed, replaced or inserted from `noise`; with `isCut` also cut off anywhere.
    package mutating func mutilate(_ text: String, noise: String, isCut: Bool) -> String {
        var scalars = Array(text.unicodeScalars)
        let noise = Array(noise.unicodeScalars)
        if isCut { scalars = Array(scalars.prefix(Int.random(in: 0..<scalars.count, using: &self))) }
        for _ in 0..<Int.random(in: 0...5, using: &self) where !scalars.isEmpty {
            let place = Int.random(in: 0..<scalars.count, using: &self)
            let mark = noise[Int.random(in: 0..<noise.count, using: &self)]
            switch Int.random(in: 0..<3, using: &self) {
            case 0: scalars.remove(at: place)
            case 1: scalars.insert(mark, at: place)
            default: scalars[place] = mark
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
