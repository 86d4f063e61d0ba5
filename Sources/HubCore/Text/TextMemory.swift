internal import Glibc

/// Texts that came lately: one that comes again takes no memory from the heap. Confined to one thread at a time.
package final class TextMemory {
    /// A longer text is not kept.
    package static let bytesMax = 256
    /// A text of at most so many bytes is part of its `String`.
    private static let bytesInPlace = 15

    // Guard: the thread that has the memory. Unchecked: an entry is read or set at once.
    /// Each text at the place of its hash. Another one with that place takes it over.
    /// Empty until the first text is kept: some memories live for one document.
    @exclusivity(unchecked) private var texts: [String] = []
    private let count: Int

    /// - Parameter count: how many texts are kept, a power of two.
    package init(count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "\(count) texts are no power of two")
        self.count = count
    }

    /// The text that these bytes are in UTF-8. Bytes that are none are repaired, as by `String`.
    package func text(of bytes: UnsafeRawBufferPointer) -> String {
        guard bytes.count > Self.bytesInPlace, bytes.count <= Self.bytesMax else { return unsafe String(decoding: bytes, as: UTF8.self) }
        if unsafe texts.isEmpty { unsafe texts = Array(repeating: "", count: count) }
        let place = unsafe Self.hash(bytes) & (count - 1)
        let known = unsafe texts[place]
        if unsafe Self.isSame(known, bytes) { return known }
        let text = unsafe String(decoding: bytes, as: UTF8.self)
        unsafe texts[place] = text
        return text
    }

    private static func isSame(_ text: String, _ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe text.utf8.withContiguousStorageIfAvailable { own in
            guard own.count == bytes.count, let start = own.baseAddress, let other = bytes.baseAddress else { return false }
            return unsafe memcmp(start, other, bytes.count) == 0
        } ?? false
    }

    /// Length, first and last eight bytes. Texts that collide are made anew each time, which is the worst that a client can bring about.
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        let first = unsafe bytes.loadUnaligned(as: UInt64.self)
        let last = unsafe bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
        var mixed = first ^ last &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(bytes.count)
        // A product's bits depend on lower ones alone, and names often differ in their last byte, which is the highest.
        mixed ^= mixed >> 32
        return Int(truncatingIfNeeded: (mixed &* 0xD6E8_FEB8_6659_FD93) >> 40)
    }
}

@available(*, unavailable)
extension TextMemory: Sendable {}
