package import HubChannels
internal import PusherProtocol

/// Decides which facts are told and when: a channel that empties, or a member who leaves, may be a page that reloads.
///
/// `vacated` and `memberRemoved` wait for three seconds; if the matching `occupied` or `memberAdded` comes within them, neither
/// is told. A removal's place in the order is the moment at which it has become certain, so the other facts of the channel pass
/// it: holding them back as well would delay every client event of a busy presence channel. What belongs together keeps its
/// order all the same: the comings and goings of one member, those of one channel's occupancy, and every member's removal
/// before the channel's own.
///
/// Pure: time comes in with each call, in nanoseconds of one clock that never goes back.
package struct FactDebounce {
    /// What comes and goes: a member, or without a user the channel's occupancy.
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

    package init(heldMax: Int = WebhookLimits.heldMax) {
        self.heldMax = heldMax
    }

    /// Takes a fact that happened at `now`; returns it when it is to be told at once. Call `settle` with the same time before.
    package mutating func take(_ fact: ChannelFact, now: UInt64) -> ChannelFact? {
        // Belongs to the service, not to the app: nobody is told of it.
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

    /// The removals that have become certain, in the order in which they happened.
    package mutating func settle(now: UInt64) -> [ChannelFact] { removals.takeDue(now: now) }

    /// All removals that still wait: the process ends, and nobody can come back to it.
    package mutating func settleAll() -> [ChannelFact] { removals.takeDue(now: .max) }

    /// When `settle` has something to return next; nil: never.
    package var nextDue: UInt64? { removals.nextDue }
}

/// Values that wait for the same length of time each, and can be called off by their key.
///
/// A value that was called off keeps its place until its time, so each call costs the same whatever is waiting.
private struct WaitingRoom<Key: Hashable, Value> {
    private var queue: [(number: Int, key: Key, due: UInt64, value: Value)?] = []
    private var head = 0
    private var lastNumber = 0
    private var numbers: [Key: Int] = [:]

    /// Places in use, those of values that were called off included.
    var count: Int { queue.count - head }
    var nextDue: UInt64? { head < queue.count ? queue[head]?.due : nil }

    func contains(_ key: Key) -> Bool { numbers[key] != nil }

    /// Takes the place of what waits under the same key. `due` is not before that of the calls before.
    mutating func add(_ key: Key, _ value: Value, due: UInt64) {
        lastNumber += 1
        numbers[key] = lastNumber
        queue.append((lastNumber, key, due, value))
    }

    /// False when nothing waited under the key.
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
        // Moving the rest now costs each value one move on average.
        if head * 2 >= queue.count {
            queue.removeFirst(head)
            head = 0
        }
        return due
    }
}
