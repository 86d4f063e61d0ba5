/// A sorted set: members by score, and by name where scores are the same.
struct SortedTable: Sendable {
    private var scores: [[UInt8]: Double] = [:]
    /// In order.
    private(set) var items: [(score: Double, member: [UInt8])] = []

    var count: Int { items.count }

    func score(_ member: [UInt8]) -> Double? { scores[member] }

    /// - Returns: whether the member is new.
    mutating func set(_ member: [UInt8], _ score: Double) -> Bool {
        let isNew = !remove(member)
        scores[member] = score
        items.insert((score, member), at: place(score, member))
        return isNew
    }

    /// - Returns: whether the member was there.
    mutating func remove(_ member: [UInt8]) -> Bool {
        guard let score = scores.removeValue(forKey: member) else { return false }
        items.remove(at: place(score, member))
        return true
    }

    /// Places of the items from one score through another.
    func range(_ least: Double, _ most: Double) -> Range<Int> {
        let start = first { $0.score >= least }
        return start..<max(start, first { $0.score > most })
    }

    private func place(_ score: Double, _ member: [UInt8]) -> Int {
        first { $0.score == score ? !$0.member.lexicographicallyPrecedes(member) : $0.score > score }
    }

    /// Place of the first item for which this is true, as it is for all behind it.
    private func first(_ isTrue: ((score: Double, member: [UInt8])) -> Bool) -> Int {
        var (low, high) = (0, items.count)
        while low < high {
            let middle = (low + high) / 2
            if isTrue(items[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
