internal import Glibc

/// Header fields that came lately, with what they mean: a backend's next request brings the same ones, and is spared reading them.
///
/// Fields are known again only if all their bytes are the same. They are kept only if they mean the same behind every request line.
/// Credentials, origins, forwarded addresses and keys are never kept. Confined to one thread at a time.
package struct HeadMemory {
    /// Meaning of a request's fields, where they add no header that the API reads.
    struct Meaning {
        let framing: BodyFraming
        let isPersistent: Bool
    }

    private struct Block {
        let bytes: [UInt8]
        let meaning: Meaning
    }

    /// Blocks of fields, and bytes of each, that are kept. The longest-kept one makes room.
    static let blocksMax = 4
    static let blockBytesMax = 1_024

    /// Memory for the rest of a request.
    package var room = RequestRoom()
    private var blocks: [Block] = []
    private var oldest = 0

    /// Knows nothing.
    package init() { blocks.reserveCapacity(Self.blocksMax) }

    /// The fields that stand at `start`, up to and with the empty line; nil: they are new, or not all here.
    func recall(_ bytes: UnsafeRawBufferPointer, at start: Int) -> (meaning: Meaning, count: Int)? {
        guard let base = bytes.baseAddress else { return nil }
        for index in blocks.indices {
            let count = blocks[index].bytes.count
            guard count <= bytes.count - start else { continue }
            let isSame = unsafe blocks[index].bytes.withUnsafeBytes { own in
                guard let own = own.baseAddress else { return false }
                return unsafe memcmp(own, base + start, count) == 0
            }
            if isSame { return (blocks[index].meaning, count) }
        }
        return nil
    }

    /// Keeps fields that were not known.
    /// - Parameter fields: up to and with the empty line.
    mutating func keep(_ fields: UnsafeRawBufferPointer, _ meaning: Meaning) {
        guard fields.count <= Self.blockBytesMax else { return }
        let block = unsafe Block(bytes: Array(fields), meaning: meaning)
        if blocks.count < Self.blocksMax { return blocks.append(block) }
        blocks[oldest] = block
        oldest = (oldest + 1) % Self.blocksMax
    }
}
