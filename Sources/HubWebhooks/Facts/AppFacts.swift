internal import HubCore
package import HubDelivery
package import PusherProtocol

/// Facts of one app on their way to its endpoints.
///
/// One node among several owns the app's webhooks. All nodes read the same facts in the same order, and keep the recent ones. The
/// owner stores a mark with its batches: up to where facts were taken, and up to where removals that wait were told or dropped. The next
/// owner begins there, so no fact is lost, and none is told twice. Pure: each call passes the time, in nanoseconds of one monotonic clock.
package struct AppFacts {
    private typealias Recent = (fact: ChannelFact, at: UInt64, bytes: Int)

    private let app: String
    private let heldMax: Int
    /// Nil on a single node, which remembers nothing.
    private let recentBytesMax: Int?
    private var debounce: FactDebounce
    /// Places before `head` are empty.
    private var recent: [Recent?] = []
    private var head = 0
    private var recentBytes = 0
    private var told: StreamID?
    private var settled = StreamID.zero
    /// Mark of the former owner, until this node reads a fact behind it: it may begin while it is late.
    private var former: WebhookMark?
    /// Whether this node tells the facts.
    package private(set) var isOwn: Bool

    /// - Parameters:
    ///   - app: the app's id.
    ///   - heldMax: removals that may wait, and recent cache misses that are remembered.
    ///   - recentBytesMax: approximate size of the facts that are kept for a change of the owner; nil on a single node.
    package init(app: String, heldMax: Int, recentBytesMax: Int? = nil) {
        self.app = app
        self.heldMax = heldMax
        self.recentBytesMax = recentBytesMax
        debounce = FactDebounce(heldMax: heldMax)
        isOwn = recentBytesMax == nil
    }

    /// Everything that was told belongs to this mark; nil on a single node, and before the first fact.
    package var mark: WebhookMark? { told.map { WebhookMark(app: app, told: $0, settled: settled) } }
    /// When `settle` next has something to return; nil: never.
    package var nextDue: UInt64? { isOwn ? debounce.nextDue : nil }
    /// For tests: facts that are kept for a change of the owner.
    package var recentCount: Int { recent.count - head }

    /// Takes a fact that happened at `now`.
    /// - Returns: the facts to tell now.
    package mutating func take(_ fact: ChannelFact, now: UInt64) -> [ChannelFact] {
        keep(fact, now: now)
        return isOwn ? tell(fact, now: now) : []
    }

    /// The removals that became certain.
    package mutating func settle(now: UInt64) -> [ChannelFact] { isOwn ? settled(debounce.settle(now: now)) : [] }

    /// All removals that wait, for the end of the last node: nobody can return.
    package mutating func settleAll() -> [ChannelFact] { isOwn ? settled(debounce.settleAll()) : [] }

    // MARK: Owners

    /// This node owns the app's webhooks from now on.
    /// - Parameter mark: of the former owner; nil: no batch was ever stored.
    /// - Returns: the facts to tell now.
    package mutating func begin(after mark: WebhookMark?, now: UInt64) -> [ChannelFact] {
        assert(!isOwn, "the webhooks of app \(app) are taken over twice")
        isOwn = true
        (told, settled, former) = (mark?.told, mark?.settled ?? .zero, mark)
        var facts: [ChannelFact] = []
        for case let (fact, at, _)? in recent[head...] { facts += tell(fact, now: at) }
        return facts + settle(now: now)
    }

    /// Another node owns the app's webhooks.
    package mutating func end() {
        isOwn = false
        debounce = FactDebounce(heldMax: heldMax)
    }

    private mutating func tell(_ fact: ChannelFact, now: UInt64) -> [ChannelFact] {
        if let former, let position = fact.position, position <= former.told {
            // The former owner took it. A removal may have waited, and what followed may have cancelled it.
            if fact.isRemoval, position <= former.settled { return [] }
            return debounce.take(fact, now: now).flatMap { $0.isRemoval ? [$0] : nil } ?? []
        }
        var facts = settle(now: now)
        if let position = fact.position {
            // Facts come in their order, and a memory that was lost may count from below.
            (told, former) = (position, nil)
        }
        if let fact = debounce.take(fact, now: now) { facts.append(fact) }
        return facts
    }

    /// Removals settle in the order in which they happened.
    private mutating func settled(_ removals: [ChannelFact]) -> [ChannelFact] {
        settled = removals.last?.position ?? settled
        return removals
    }

    private mutating func keep(_ fact: ChannelFact, now: UInt64) {
        guard let recentBytesMax else { return }
        let bytes = fact.footprint
        recent.append((fact, now, bytes))
        recentBytes += bytes
        while head < recent.count, let oldest = recent[head],
            recentBytes > recentBytesMax || oldest.at + WebhookLimits.recentNanoseconds < now
        {
            recent[head] = nil
            head += 1
            recentBytes -= oldest.bytes
        }
        // Compacting at this point costs each fact one move on average.
        if head * 2 > recent.count {
            recent.removeFirst(head)
            head = 0
        }
    }
}

extension ChannelFact {
    /// Approximate size in memory: its own size plus its external texts.
    var footprint: Int {
        let own = 128 + channel.text.utf8.count
        return switch event {
        case .clientEvent(let name, let data, _, _): own + name.utf8.count + data.utf8.count
        case .memberAdded(let user), .memberRemoved(let user): own + user.utf8.count
        case .occupied, .vacated, .cacheMiss, .subscriptionCount: own
        }
    }

    fileprivate var isRemoval: Bool {
        switch event {
        case .vacated, .memberRemoved: true
        case .occupied, .memberAdded, .clientEvent, .cacheMiss, .subscriptionCount: false
        }
    }
}
