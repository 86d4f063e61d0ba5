/// The channels of one publish: in the order given, each once.
///
/// A table of indexes with a plain hash replaces a `Set`, whose seeded hash takes a fifth of a channel's cost. Only a
/// signed publisher can make names collide. Collisions then cost comparisons, at most `PublishLimits.channelsMax` squared.
struct DistinctNames {
    private(set) var names: [ChannelName] = []
    /// Indexes into `names`, counted from 1, at the place of their hash or the next free one; 0: free. The size is a
    /// power of two, and the table at most half full.
    private var places: [Int32] = []
    private let countMax: Int

    /// - Parameter countMax: the most names that will be appended.
    init(countMax: Int) { self.countMax = countMax }

    mutating func append(_ name: ChannelName) {
        // One name is the usual case and needs no table.
        if names.count == 1, places.isEmpty {
            if name == names[0] { return }
            makeTable()
        }
        if !places.isEmpty, !isNew(name) { return }
        names.append(name)
        assert(
            names.count <= countMax && (places.isEmpty || 2 * names.count <= places.count),
            "\(names.count) names, at most \(countMax), in a table of \(places.count)")
    }

    private mutating func makeTable() {
        var size = 4
        while size < 2 * countMax { size *= 2 }
        places = [Int32](repeating: 0, count: size)
        places[Self.hash(names[0]) & (size - 1)] = 1
    }

    /// Enters the name to be appended next; false when it is present already.
    private mutating func isNew(_ name: ChannelName) -> Bool {
        let mask = places.count - 1
        var entry = Self.hash(name) & mask
        while places[entry] != 0 {
            if names[Int(places[entry]) - 1] == name { return false }
            entry = (entry + 1) & mask
        }
        places[entry] = Int32(names.count + 1)
        return true
    }

    /// FNV-1a over eight bytes at a time, and mixed once more at the end, so that the low bits depend on all of them.
    private static func hash(_ name: ChannelName) -> Int {
        var text = name.text
        return text.withUTF8 { bytes in
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(bytes.count)
            func mix(_ word: UInt64) {
                hash = (hash ^ word) &* 0x100_0000_01B3
                hash ^= hash >> 29
            }
            let raw = UnsafeRawBufferPointer(bytes)
            var place = 0
            while place + 8 <= raw.count {
                mix(unsafe raw.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                place += 8
            }
            while place < raw.count {
                mix(UInt64(unsafe raw[place]))
                place += 1
            }
            // A product's bits depend on lower ones alone, and names often differ in their last byte, which is the highest.
            hash ^= hash >> 32
            return Int(truncatingIfNeeded: (hash &* 0x9E37_79B9_7F4A_7C15) >> 32)
        }
    }
}
