internal import HubCore
internal import PusherProtocol

/// A channel as one loop sees it: the loop's own subscribers, and the frames that wait for the end of the turn.
final class Channel {
    let app: Int
    let name: ChannelName
    // Unchecked: one thread, and no write calls back into a channel. A dynamic exclusivity check is a function call,
    // which would be a noticeable cost per event in a channel of ten.
    /// The subscribers' slots, contiguous for the fan-out loop. `subscriptions` runs parallel.
    /// Memory of its own, because reading an array costs a retain and a release at each step of the fan-out.
    @exclusivity(unchecked) private var slotList = Scratch<UInt32>(capacity: 4)
    private(set) var subscriptions: ContiguousArray<Subscription> = []
    /// Number of pages, which come first among the subscribers. Pages are asked for receipts by `pusher:ping`, all others by PING.
    private(set) var pageCount = 0
    /// Receipt pings sent to the channel's pages.
    var pings = PingLog()
    private var parts: (pages: Channel, others: Channel)?
    /// The channel's place and frames in the turn that `FanOut` collects.
    @exclusivity(unchecked) private var waitingFrames = Waiting()
    /// `LatestOnlyFrame.line` of the channel's events; 0: no event supersedes another.
    let line: UInt32
    /// The channel has a definition: delivery receives reports about its subscribers.
    var isWatched: Bool
    /// Events whose PING has not been sent yet.
    var unpinged: [UInt64] = []
    /// Earliest time of the next PING.
    var pingPace = ReceiptPingPace()
    /// Highest ticket of all subscribers so far.
    private(set) var newestTicket: UInt64 = 0

    /// `FanOut` has written the channel's frames to some subscribers, but not yet to all.
    @exclusivity(unchecked) private var isOnItsWay = false

    /// The channel's place in the turn, and its frames.
    struct Waiting {
        var place = -1
        var last: UInt32 = 0
        var byteCount = 0

        var isEmpty: Bool { place < 0 }
    }

    init(app: Int, name: ChannelName, isWatched: Bool, line: UInt32 = 0) {
        self.app = app
        self.name = name
        self.line = line
        self.isWatched = isWatched
    }

    /// Number of subscribers.
    var count: Int { unsafe slotList.count }
    /// The subscribers' slots; valid until the next change of the subscribers.
    var slots: UnsafeBufferPointer<UInt32> { unsafe slotList.buffer }

    var waiting: Waiting {
        get { unsafe waitingFrames }
        set { unsafe waitingFrames = newValue }
    }

    var isGoingOut: Bool {
        get { unsafe isOnItsWay }
        set { unsafe isOnItsWay = newValue }
    }

    /// Frames wait for subscribers of this channel, or have reached only some of them.
    var isInTurn: Bool { !waiting.isEmpty || isGoingOut || parts?.pages.isInTurn == true || parts?.others.isInTurn == true }

    /// Two channels with the current pages and the other subscribers, for frames that only one of the groups gets in this turn.
    /// - Precondition: no turn is on its way out.
    func takeParts() -> (pages: Channel, others: Channel) {
        assert(parts.map { !$0.pages.isInTurn && !$0.others.isInTurn } ?? true, "the parts of \(name) change while their frames wait")
        let parts = parts ?? (Channel(app: app, name: name, isWatched: false), Channel(app: app, name: name, isWatched: false))
        self.parts = parts
        parts.pages.copySlots(0..<pageCount, of: self)
        parts.others.copySlots(pageCount..<count, of: self)
        return parts
    }

    private func copySlots(_ range: Range<Int>, of channel: Channel) {
        unsafe slotList.count = 0
        unsafe slotList.append(from: channel.slotList.base + range.lowerBound, count: range.count)
    }

    func add(_ subscription: Subscription, isPage: Bool) {
        assert(!isInTurn, "\(name) gets a subscriber while frames for the others wait")
        assert(subscription.channel == name && subscription.isJoining, "\(name) gets a subscriber of \(subscription.channel)")
        let position = unsafe slotList.count
        subscription.position = position
        subscription.pingsAnswered = pings.count
        unsafe slotList.append(UInt32(subscription.connection.slot))
        subscriptions.append(subscription)
        if isPage {
            swap(position, pageCount)
            pageCount += 1
        }
        newestTicket = max(newestTicket, subscription.ticket)
        assert(isConsistent, "\(name) has \(count) slots, \(subscriptions.count) subscriptions and \(pageCount) pages")
    }

    /// Notes a newer ticket of a subscriber.
    func raiseTicket(_ ticket: UInt64) {
        newestTicket = max(newestTicket, ticket)
    }

    /// O(1): the last page replaces a page that leaves, and the last subscriber replaces the last page.
    func remove(_ subscription: Subscription) {
        // Otherwise another subscriber would lose its place, and this one's slot would go on receiving.
        precondition(
            subscriptions.indices.contains(subscription.position) && subscriptions[subscription.position] === subscription,
            "connection \(subscription.connection) is not subscriber \(subscription.position) of \(name)")
        assert(!isInTurn, "\(name) loses a subscriber while frames for it wait")
        if subscription.position < pageCount {
            pageCount -= 1
            swap(subscription.position, pageCount)
        }
        unsafe swap(subscription.position, slotList.count - 1)
        unsafe slotList.count -= 1
        subscriptions.removeLast()
        assert(isConsistent, "\(name) has \(count) slots, \(subscriptions.count) subscriptions and \(pageCount) pages")
    }

    /// Whether slots and subscriptions run parallel. Compares the entries of small channels only, so that filling one takes linear time.
    private var isConsistent: Bool {
        guard count == subscriptions.count, (0...count).contains(pageCount) else { return false }
        if count > 64 { return true }
        let isParallel = subscriptions.indices.allSatisfy { place in
            let subscription = subscriptions[place]
            return unsafe subscription.position == place && Int(slots[place]) == subscription.connection.slot
        }
        return unsafe isParallel && Set(slots).count == count
    }

    private func swap(_ one: Int, _ other: Int) {
        if one == other { return }
        unsafe slotList.swapAt(one, other)
        subscriptions.swapAt(one, other)
        subscriptions[one].position = one
        subscriptions[other].position = other
    }
}

/// One connection's relation to one channel, from the request until the end.
final class Subscription {
    enum Phase {
        /// The channel's home has been asked; no event is delivered yet.
        case joining
        case active(Channel)
    }

    let connection: ConnectionID
    let channel: ChannelName
    let serial: UInt32
    /// Number of the channel's `pings` before the subscription or answered since.
    var pingsAnswered: UInt32 = 0
    /// Presence member id.
    let user: String?
    var phase = Phase.joining
    /// Whether the channel's home has not answered yet.
    var isJoining: Bool { if case .joining = phase { true } else { false } }
    /// Index in the channel's arrays while active.
    var position = 0
    var audience = RoleSet.unmatched
    /// Bytes charged to the connection's anonymous memory; 0 for signed subscriptions.
    var anonymousBytes: UInt32 = 0
    /// Ticket of the attendance report; 0 in channels without a definition.
    var ticket: UInt64 = 0

    init(connection: ConnectionID, channel: ChannelName, serial: UInt32, user: String?) {
        self.connection = connection
        self.channel = channel
        self.serial = serial
        self.user = user
    }
}
