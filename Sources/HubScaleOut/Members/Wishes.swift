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
        /// The one that travels is an absence.
        var travelsAsAbsence = false
        /// Redis had a value of the key, in this memory or in one that it lost.
        var wasDone = false
        /// When its coming was told, in this memory or in one before; nil: another node had told of it.
        var toldAt: ContinuousClock.Instant?
        /// Its coming was told just before the loss: some nodes may not have read it.
        var isRecent = false
        /// The wish follows from a lost memory: Redis had a value of the key, and nobody knows it any more.
        var isRepeated = false
        /// The wish waits until all nodes have written into the new memory what they have.
        var isLate = false
        /// Until when an absence is remembered that was carried out: a memory may be lost before all others have heard of it.
        var restsUntil: ContinuousClock.Instant?
        /// The same for the absence that travels, if this node has heard of it already.
        var heardUntil: ContinuousClock.Instant?
    }

    private var wishes: [Key: Wish] = [:]
    /// Keys with new wishes, in order; some may have travelled meanwhile.
    private var waiting: [Key] = []
    private var head = 0
    /// Not every node has written into the new memory what it has.
    private var isRebuilding = false

    var isEmpty: Bool { wishes.isEmpty }
    /// Whether a wish waits for its turn.
    var hasWaiting: Bool { head < waiting.count }

    /// Keys that are known.
    var count: Int { wishes.count }

    /// The same for another run of the node, of which Redis knows nothing.
    var inherited: Wishes {
        var all = Wishes()
        for (key, wish) in wishes where !wish.isAbsence || wish.isNew || wish.travels {
            all.wish(key, wish.value, isAbsence: wish.isAbsence)
        }
        return all
    }

    /// Wishes.
    /// - Parameter isAbsence: whether nothing is left of the key once the wish is carried out.
    mutating func wish(_ key: Key, _ value: Value, isAbsence: Bool) {
        var wish = wishes[key] ?? Wish(value: value, isAbsence: isAbsence)
        (wish.value, wish.isAbsence, wish.isNew) = (value, isAbsence, true)
        wish.isLate = isAbsence && (wish.isLate || wish.isRepeated && isRebuilding)
        wish.restsUntil = nil
        wishes[key] = wish
        if !wish.travels, !wish.isLate { waiting.append(key) }
    }

    /// Wishes the absence of a value that another node had in a memory that was lost. This node's own wishes go before.
    mutating func wishLost(_ key: Key, _ value: Value) {
        guard wishes[key] == nil else { return }
        var wish = Wish(value: value, isAbsence: true)
        (wish.wasDone, wish.isRepeated, wish.isLate) = (true, true, isRebuilding)
        wishes[key] = wish
        if !wish.isLate { waiting.append(key) }
    }

    /// The oldest wishes that wait, each key once.
    mutating func take(most: Int) -> [(key: Key, value: Value)] {
        var batch: [(key: Key, value: Value)] = []
        while batch.count < most, head < waiting.count {
            let key = waiting[head]
            head += 1
            guard var wish = wishes[key], wish.isNew, !wish.travels, !wish.isLate else { continue }
            (wish.isNew, wish.travels, wish.travelsAsAbsence, wish.heardUntil) = (false, true, wish.isAbsence, nil)
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
    /// - Parameters:
    ///   - until: time until which an absence is remembered; nil: it is not.
    ///   - toldAt: when its coming was told by this; nil: it was not.
    /// - Returns: whether it still is the newest.
    mutating func succeeded(
        _ key: Key, restsUntil until: ContinuousClock.Instant? = nil, toldAt: ContinuousClock.Instant? = nil
    ) -> Bool {
        guard var wish = wishes[key] else { return false }
        wish.travels = false
        if wish.isLate {
            wishes[key] = wish
            return false
        }
        wish.wasDone = !wish.travelsAsAbsence
        if wish.travelsAsAbsence {
            wish.toldAt = nil
        } else if !wish.isRepeated {
            wish.toldAt = toldAt ?? wish.toldAt
        }
        wish.isRepeated = wish.isRepeated && wish.isNew
        if wish.isNew {
            waiting.append(key)
        } else if wish.isAbsence {
            (wish.wasDone, wish.restsUntil) = (true, wish.heardUntil ?? until)
            wishes[key] = until == nil ? nil : wish
            return true
        }
        wishes[key] = wish
        return !wish.isNew
    }

    /// This node has heard of an absence: the others have until then.
    /// - Returns: whether it was one of this node's.
    mutating func heard(_ key: Key, until: ContinuousClock.Instant) -> Bool {
        guard let wish = wishes[key] else { return false }
        if let known = wish.restsUntil {
            wishes[key]?.restsUntil = min(known, until)
        } else if wish.travels, wish.travelsAsAbsence {
            wishes[key]?.heardUntil = until
        } else {
            return false
        }
        return true
    }

    /// Forgets an absence that was to be remembered until this time at the latest.
    mutating func forget(_ key: Key, at now: ContinuousClock.Instant) {
        if let until = wishes[key]?.restsUntil, until <= now { wishes[key] = nil }
    }

    /// Nobody knows whether the batch's wish was carried out.
    mutating func failed(_ key: Key) {
        wishes[key]?.travels = false
        wishes[key]?.isNew = true
        if wishes[key]?.isLate == false { waiting.append(key) }
    }

    /// Whether Redis had a value of the key in a memory that it lost, and the others may hear of it now.
    func isRepeated(_ key: Key) -> Bool { wishes[key].map { $0.isRepeated && !$0.isLate } ?? false }

    /// Whether some nodes may not have heard of the value in the memory that was lost.
    func isRecent(_ key: Key) -> Bool { wishes[key]?.isRecent ?? false }

    /// Nothing is left to be told of what is there no more.
    var areEndsTold: Bool { !wishes.values.contains { $0.isLate || $0.isAbsence && ($0.isNew || $0.travels) } }

    /// Redis' memory was lost. A wish that travels is wished again after its answer. An absence of what Redis had waits for `releaseLate`.
    /// - Parameter since: comings that were told since then may not be known to all nodes.
    mutating func restart(since: ContinuousClock.Instant) {
        isRebuilding = true
        for (key, wish) in wishes {
            guard !wish.isAbsence || wish.travels || wish.wasDone else {
                wishes[key] = nil
                continue
            }
            wishes[key]?.isNew = true
            wishes[key]?.restsUntil = nil
            wishes[key]?.isRepeated = wish.wasDone
            wishes[key]?.isRecent = wish.toldAt.map { $0 > since } ?? false
            wishes[key]?.isLate = wish.isAbsence && wish.wasDone
            if !wish.travels, wishes[key]?.isLate == false { waiting.append(key) }
        }
    }

    /// Answers were forgotten: whatever is there is wished once more, as what it is in this memory.
    mutating func again() {
        for (key, wish) in wishes where !wish.isAbsence {
            wishes[key]?.isNew = true
            if !wish.travels { waiting.append(key) }
        }
    }

    /// All nodes have written down what they have: absences may be wished now.
    mutating func releaseLate() {
        isRebuilding = false
        for (key, wish) in wishes where wish.isLate {
            wishes[key]?.isLate = false
            if !wish.travels { waiting.append(key) }
        }
    }
}
