/// The connections of one loop that are behind, sorted by how far: who is furthest is found without a look at the others.
///
/// Kept in classes of which each ends an eighth of a power of two above its beginning. A connection changes its class after an eighth
/// more or less, so most bytes that come and go cost nothing here; of two in one class either may count as the furthest.
struct Laggards {
    private var classes: [Set<UInt32>] = Array(repeating: [], count: Self.wordCount * 64)
    /// A bit for each class that has somebody.
    private var occupied: [UInt64] = Array(repeating: 0, count: Self.wordCount)
    /// Words that were looked at to find somebody: what it costs.
    private(set) var looks = 0

    private static let wordCount = 8

    /// The class of so many bytes; 0: not behind at all.
    static func rank(_ bytes: Int) -> Int {
        guard bytes >= 8 else { return max(0, bytes) }
        let exponent = Int.bitWidth - 1 - bytes.leadingZeroBitCount
        return (exponent - 2) * 8 + (bytes >> (exponent - 3)) & 7
    }

    /// A connection was so many bytes behind, and is behind by so many now.
    mutating func move(_ slot: UInt32, from before: Int, to after: Int) {
        let (former, rank) = (Self.rank(before), Self.rank(after))
        guard former != rank else { return }
        if former > 0 {
            classes[former].remove(slot)
            if classes[former].isEmpty { occupied[former / 64] &= ~(1 << UInt64(former % 64)) }
        }
        if rank > 0 {
            classes[rank].insert(slot)
            occupied[rank / 64] |= 1 << UInt64(rank % 64)
        }
    }

    /// One of those furthest behind, and their class.
    mutating func furthest() -> (slot: UInt32, rank: Int)? {
        for word in occupied.indices.reversed() {
            looks += 1
            guard occupied[word] != 0 else { continue }
            let rank = word * 64 + 63 - occupied[word].leadingZeroBitCount
            return classes[rank].first.map { ($0, rank) }
        }
        return nil
    }
}
