internal import HubCore
internal import PusherProtocol

/// A channel as one loop sees it: its own subscribers, and the frames that wait for the end of the turn.
final class Channel {
    let app: Int
    let name: ChannelName
    // Guard of the unchecked properties: one thread, and nothing that a write calls comes back to a channel. Checked, each look at them
    // is a call, which a channel of ten pays for with every event.
    @exclusivity(unchecked) private var slotList: ContiguousArray<UInt32> = []
    private(set) var subscriptions: ContiguousArray<Subscription> = []
    /// What `FanOut` has of it in this turn.
    @exclusivity(unchecked) private var waitingFrames = Waiting()
    /// Its events' `LatestOnlyFrame.line`; 0: every event counts.
    let line: UInt32
    /// The channel has a definition: delivery is told who is in it.
    var isWatched: Bool
    /// Events that wait for the PING behind them, and when it may be sent.
    var unprobed: [UInt64] = []
    var probePace = ProbePace()
    /// The highest ticket among those who ever subscribed.
    private(set) var newestTicket: UInt64 = 0

    /// `FanOut` has written a turn with frames of it to some of its subscribers, and to others not yet.
    @exclusivity(unchecked) private var isOnItsWay = false

    /// The channel's place among those of the turn, and its frames.
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

    /// The subscribers' slots, contiguous: what the fan-out loop walks. `subscriptions` runs parallel to it.
    /// Subscribers. Asked of the list itself: of `slots` it would be a copy's, which is retained.
    var count: Int { unsafe slotList.count }
    var slots: ContiguousArray<UInt32> { unsafe slotList }

    func withSlots(_ body: (UnsafeBufferPointer<UInt32>) -> Void) {
        unsafe slotList.withUnsafeBufferPointer { unsafe body($0) }
    }

    var waiting: Waiting {
        get { unsafe waitingFrames }
        set { unsafe waitingFrames = newValue }
    }

    var isGoingOut: Bool {
        get { unsafe isOnItsWay }
        set { unsafe isOnItsWay = newValue }
    }

    func add(_ subscription: Subscription) {
        subscription.position = unsafe slotList.count
        unsafe slotList.append(UInt32(subscription.connection.slot))
        subscriptions.append(subscription)
        newestTicket = max(newestTicket, subscription.ticket)
    }

    /// A subscriber of this channel got a newer ticket.
    func raiseTicket(_ ticket: UInt64) {
        newestTicket = max(newestTicket, ticket)
    }

    /// O(1): the last subscriber takes the leaver's place.
    func remove(_ subscription: Subscription) {
        let position = subscription.position
        unsafe slotList.swapAt(position, slotList.count - 1)
        subscriptions.swapAt(position, subscriptions.count - 1)
        subscriptions[position].position = position
        unsafe slotList.removeLast()
        subscriptions.removeLast()
    }
}

/// One connection's relation to one channel, from the request to its end.
final class Subscription {
    enum Phase {
        /// The channel's home has been asked; no event is delivered yet.
        case joining
        case active(Channel)
    }

    let connection: ConnectionID
    let channel: ChannelName
    let serial: UInt32
    /// Presence member id.
    let user: String?
    var phase = Phase.joining
    /// Index in the channel's arrays while active.
    var position = 0
    var audience = RoleSet.unmatched
    /// Bytes that it counts where nobody has signed for it.
    var anonymousBytes: UInt32 = 0
    /// Of its attendance report; 0 in channels that nobody watches.
    var ticket: UInt64 = 0

    init(connection: ConnectionID, channel: ChannelName, serial: UInt32, user: String?) {
        self.connection = connection
        self.channel = channel
        self.serial = serial
        self.user = user
    }
}
