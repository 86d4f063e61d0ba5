/// The state that a node wants Redis to have, by key: that something is there, or not. Only the newest wish of a key counts.
///
/// A batch whose answer was lost is wished again. A key travels in one batch at a time, so an older wish never follows a newer one.
struct Wishes<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Wish {
        var value: Value
        /// Nothing shall be there.
        var isAbsence: Bool
        /// A newer value than the one that travels.
        var isNew = true
        var travels = false
    }

    private var wishes: [Key: Wish] = [:]
    /// Keys with new wishes, in order; some may have travelled meanwhile.
    private var waiting: [Key] = []
    private var head = 0

    var isEmpty: Bool { wishes.isEmpty }
    /// Whether a wish waits for its turn.
    var hasWaiting: Bool { head < waiting.count }

    /// Keys that are known.
    var count: Int { wishes.count }

    /// Wishes.
    /// - Parameter isAbsence: whether nothing is left of the key once the wish is carried out.
    mutating func wish(_ key: Key, _ value: Value, isAbsence: Bool) {
        let travels = wishes[key]?.travels ?? false
        wishes[key] = Wish(value: value, isAbsence: isAbsence, travels: travels)
        if !travels { waiting.append(key) }
    }

    /// The oldest wishes that wait, each key once.
    mutating func take(most: Int) -> [(key: Key, value: Value)] {
        var batch: [(key: Key, value: Value)] = []
        while batch.count < most, head < waiting.count {
            let key = waiting[head]
            head += 1
            guard var wish = wishes[key], wish.isNew, !wish.travels else { continue }
            (wish.isNew, wish.travels) = (false, true)
            wishes[key] = wish
            batch.append((key, wish.value))
        }
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            head = 0
        }
        return batch
    }

    /// Redis has carried the batch's wish out.
    /// - Returns: whether it still is the newest.
    mutating func succeeded(_ key: Key) -> Bool {
        guard var wish = wishes[key] else { return false }
        wish.travels = false
        if wish.isNew {
            waiting.append(key)
        } else if wish.isAbsence {
            wishes[key] = nil
            return true
        }
        wishes[key] = wish
        return !wish.isNew
    }

    /// Nobody knows whether the batch's wish was carried out.
    mutating func failed(_ key: Key) {
        wishes[key]?.travels = false
        wishes[key]?.isNew = true
        waiting.append(key)
    }

    /// Redis' memory was lost. A wish that travels is wished again after its answer.
    mutating func restart() {
        for (key, wish) in wishes {
            guard !wish.isAbsence || wish.travels else {
                wishes[key] = nil
                continue
            }
            wishes[key]?.isNew = true
            if !wish.travels { waiting.append(key) }
        }
    }
}
