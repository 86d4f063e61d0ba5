package import PusherProtocol

/// Decides which facts are reported and when. A channel that empties, or a member who leaves, may be a page that reloads.
///
/// `vacated` and `memberRemoved` wait for three seconds. If the matching `occupied` or `memberAdded` follows within that time, neither is
/// reported. A removal takes its place in the order when it becomes certain, so other facts of the channel pass it. Holding them back would
/// delay every client event of a busy presence channel. Related facts keep their order: the joins and leaves of one member, the occupancy
/// of one channel, and every member's removal before the channel's own.
///
/// Pure: each call passes the time, in nanoseconds of one monotonic clock.
package struct FactDebounce {
    /// The subject of a fact: a member, or without a user the channel's occupancy.
    private struct Subject: Hashable {
        let app: Int
        let channel: ChannelName
        let user: String?

        init(_ fact: ChannelFact, user: String? = nil) {
            app = fact.app
            channel = fact.channel
            self.user = user
        }
    }

    private var removals = WaitingRoom<Subject, ChannelFact>()
    private var misses = WaitingRoom<Subject, Void>()
    private let heldMax: Int

    /// - Parameter heldMax: removals that may wait, and recent cache misses that are remembered.
    package init(heldMax: Int = WebhookLimits.heldMax) {
        self.heldMax = heldMax
    }

    /// Takes a fact that happened at `now`; returns it if it is reported at once. Call `settle` with the same time first.
    package mutating func take(_ fact: ChannelFact, now: UInt64) -> ChannelFact? {
        // Server-to-user channels belong to the service, not to the app, so their facts are never reported.
        if fact.channel.kind == .serverToUser { return nil }
        switch fact.event {
        case .vacated: return hold(fact, Subject(fact), now: now)
        case .memberRemoved(let user): return hold(fact, Subject(fact, user: user), now: now)
        case .occupied: return removals.cancel(Subject(fact)) ? nil : fact
        case .memberAdded(let user): return removals.cancel(Subject(fact, user: user)) ? nil : fact
        case .cacheMiss:
            _ = misses.takeDue(now: now)
            if misses.contains(Subject(fact)) { return nil }
            if misses.count < heldMax { misses.add(Subject(fact), (), due: now + WebhookLimits.cacheMissQuietNanoseconds) }
            return fact
        case .clientEvent, .subscriptionCount: return fact
        }
    }

    private mutating func hold(_ fact: ChannelFact, _ subject: Subject, now: UInt64) -> ChannelFact? {
        guard removals.count < heldMax else {
            removals.cancel(subject)
            return fact
        }
        removals.add(subject, fact, due: now + WebhookLimits.removalWaitNanoseconds)
        return nil
    }

    /// Returns the removals that became certain, in the order in which they happened.
    package mutating func settle(now: UInt64) -> [ChannelFact] { removals.takeDue(now: now) }

    /// Returns all waiting removals, for shutdown: nobody can return to an ended process.
    package mutating func settleAll() -> [ChannelFact] { removals.takeDue(now: .max) }

    /// When `settle` next has something to return; nil: never.
    package var nextDue: UInt64? { removals.nextDue }
}

/// Values that each wait for the same time, unless cancelled by their key.
///
/// A cancelled value keeps its place until its time, so each call costs the same at any queue length.
private struct WaitingRoom<Key: Hashable, Value> {
    private var queue: [(number: Int, key: Key, due: UInt64, value: Value)?] = []
    private var head = 0
    private var lastNumber = 0
    private var numbers: [Key: Int] = [:]

    /// Places in use, those of cancelled values included.
    var count: Int { queue.count - head }
    var nextDue: UInt64? { head < queue.count ? queue[head]?.due : nil }

    /// When the last value is due; 0 without values.
    private var lastDue: UInt64 { count > 0 ? queue[queue.count - 1]?.due ?? 0 : 0 }

    func contains(_ key: Key) -> Bool { numbers[key] != nil }

    /// Adds a value and replaces the one waiting under the same key. `due` never decreases from call to call.
    mutating func add(_ key: Key, _ value: Value, due: UInt64) {
        assert(lastDue <= due, "a value is due at \(due), before one that came earlier")
        lastNumber += 1
        numbers[key] = lastNumber
        queue.append((lastNumber, key, due, value))
    }

    /// Cancels a value. False if none waited under the key.
    @discardableResult
    mutating func cancel(_ key: Key) -> Bool { numbers.removeValue(forKey: key) != nil }

    mutating func takeDue(now: UInt64) -> [Value] {
        var due: [Value] = []
        while head < queue.count, let first = queue[head], first.due <= now {
            queue[head] = nil
            head += 1
            if numbers[first.key] == first.number {
                numbers[first.key] = nil
                due.append(first.value)
            }
        }
        // Compacting at this point costs each value one move on average.
        if head * 2 >= queue.count {
            queue.removeFirst(head)
            head = 0
        }
        assert(head <= queue.count && numbers.count <= count, "\(numbers.count) values wait in \(count) places")
        return due
    }
}
