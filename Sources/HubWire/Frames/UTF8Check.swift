/// Checks text for UTF-8 as it arrives, in pieces cut anywhere (RFC 3629).
package struct UTF8Check: Sendable {
    /// Continuation bytes that the current character still needs.
    private var missing: UInt8 = 0
    /// Bounds of the next continuation byte: they exclude overlong forms, surrogates and code points above U+10FFFF.
    private var least: UInt8 = 0x80
    private var most: UInt8 = 0xBF

    /// No bytes yet.
    package init() {}

    /// Whether the bytes taken so far end between characters.
    package var isComplete: Bool { missing == 0 }

    /// Takes the next bytes. False when they are not UTF-8, whatever follows.
    package mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                assert(least == 0x80 && most == 0xBF, "a character ended with the bounds \(least) and \(most)")
                index = unsafe Self.endOfASCII(bytes, from: index)
                guard index < bytes.count else { return true }
                guard unsafe begin(bytes[index]) else { return false }
            } else {
                let byte = unsafe bytes[index]
                guard byte >= least, byte <= most else { return false }
                (least, most) = (0x80, 0xBF)
                missing -= 1
            }
            index += 1
        }
        return true
    }

    /// Whether all bytes are UTF-8.
    package static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var check = UTF8Check()
        return unsafe check.take(bytes) && check.isComplete
    }

    private mutating func begin(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x00...0x7F: break
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, least) = (2, 0xA0)
        case 0xED: (missing, most) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, least) = (3, 0x90)
        case 0xF4: (missing, most) = (3, 0x8F)
        case 0xF1...0xF3: missing = 3
        default: return false
        }
        return true
    }

    /// Steps of eight bytes: nearly all text is ASCII.
    private static func endOfASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        let highBits: UInt64 = 0x8080_8080_8080_8080
        var index = start
        while index + 8 <= bytes.count, unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & highBits == 0 { index += 8 }
        while index < bytes.count, unsafe bytes[index] < 0x80 { index += 1 }
        return index
    }
}
