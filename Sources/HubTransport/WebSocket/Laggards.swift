/// The slow connections of one loop, sorted by bytes behind. The furthest is found without scanning the others.
///
/// Connections are kept in classes, eight per power of two. Most changes in bytes stay within a class and cost nothing
/// here. Within one class any connection may count as the furthest.
struct Laggards {
    private var classes: [Set<UInt32>] = Array(repeating: [], count: Self.wordCount * 64)
    /// A bit per class, set while the class is not empty.
    private var occupied: [UInt64] = Array(repeating: 0, count: Self.wordCount)
    /// Words scanned by `furthest` so far, as a measure of its cost.
    private(set) var looks = 0

    private static let wordCount = 8

    /// The class of a number of bytes; 0 means not behind.
    static func rank(_ bytes: Int) -> Int {
        guard bytes >= 8 else { return max(0, bytes) }
        let exponent = Int.bitWidth - 1 - bytes.leadingZeroBitCount
        return (exponent - 2) * 8 + (bytes >> (exponent - 3)) & 7
    }

    /// Moves a connection from `before` to `after` bytes behind.
    mutating func move(_ slot: UInt32, from before: Int, to after: Int) {
        let (former, rank) = (Self.rank(before), Self.rank(after))
        guard former != rank else { return }
        if former > 0 {
            let place = classes[former].remove(slot)
            assert(place != nil, "slot \(slot) was \(before) bytes behind and not in class \(former)")
            if classes[former].isEmpty { occupied[former / 64] &= ~(1 << UInt64(former % 64)) }
        }
        if rank > 0 {
            let isNew = classes[rank].insert(slot).inserted
            assert(isNew, "slot \(slot) is \(after) bytes behind and in class \(rank) already")
            occupied[rank / 64] |= 1 << UInt64(rank % 64)
        }
    }

    /// A connection of the highest class, and that class.
    mutating func furthest() -> (slot: UInt32, rank: Int)? {
        for word in occupied.indices.reversed() {
            looks += 1
            guard occupied[word] != 0 else { continue }
            let rank = word * 64 + 63 - occupied[word].leadingZeroBitCount
            assert(!classes[rank].isEmpty, "class \(rank) is marked and empty")
            return classes[rank].first.map { ($0, rank) }
        }
        return nil
    }
}
