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
    /// How many of the first subscribers are pages: those are asked for receipts by `pusher:ping`, the others by PING.
    private(set) var pageCount = 0
    /// Sent to its pages.
    var pings = PingLog()
    private var parts: (pages: Channel, others: Channel)?
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

    /// Frames for subscribers of it wait, or have gone out to some of them only.
    var isInTurn: Bool { !waiting.isEmpty || isGoingOut || parts?.pages.isInTurn == true || parts?.others.isInTurn == true }

    /// The pages and the others as two channels of those who are there now, for frames that only the ones or the others get in this turn.
    /// Not while a turn is on its way out.
    func takeParts() -> (pages: Channel, others: Channel) {
        let parts = parts ?? (Channel(app: app, name: name, isWatched: false), Channel(app: app, name: name, isWatched: false))
        self.parts = parts
        unsafe parts.pages.slotList.replaceSubrange(0..., with: slotList[..<pageCount])
        unsafe parts.others.slotList.replaceSubrange(0..., with: slotList[pageCount...])
        return parts
    }

    func add(_ subscription: Subscription, isPage: Bool) {
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
    }

    /// A subscriber of this channel got a newer ticket.
    func raiseTicket(_ ticket: UInt64) {
        newestTicket = max(newestTicket, ticket)
    }

    /// O(1): the last page takes the place of a page that leaves, and the last subscriber that of the last page.
    func remove(_ subscription: Subscription) {
        if subscription.position < pageCount {
            pageCount -= 1
            swap(subscription.position, pageCount)
        }
        unsafe swap(subscription.position, slotList.count - 1)
        unsafe slotList.removeLast()
        subscriptions.removeLast()
    }

    private func swap(_ one: Int, _ other: Int) {
        if one == other { return }
        unsafe slotList.swapAt(one, other)
        subscriptions.swapAt(one, other)
        subscriptions[one].position = one
        subscriptions[other].position = other
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
    /// Of the channel's `pings`: those before it came, and those that it has answered since.
    var pingsAnswered: UInt32 = 0
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
