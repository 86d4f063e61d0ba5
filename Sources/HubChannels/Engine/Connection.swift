internal import HubCore
internal import PusherProtocol

/// One connection as the engine knows it.
final class Connection {
    let id: ConnectionID
    let app: App
    let socketID: SocketID
    /// It says `client=js`: the page answers `pusher:ping`, and the browser's network process PINGs, also for a page that is frozen.
    let isBrowser: Bool
    /// The peer's.
    let address: String
    /// Bytes of its subscriptions for which nobody has signed.
    var anonymousBytes = 0
    var subscriptions: [ChannelName: Subscription] = [:]
    /// The channels it was put out of, and as whom; nil: nobody knows.
    var barred: [ChannelName: String?] = [:]
    /// Whom it has signed in as.
    var user: SignedInUser?
    /// Set while the first status of the users it watches is being collected.
    var pendingWatchlist: ChannelEngine.PendingWatchlist?
    /// The `pusher:ping` events that were sent to it alone, and how many of them it has answered.
    var pings = PingLog()
    private var pingsAnswered: UInt32 = 0
    /// Unanswered ones of channels that it has left.
    private var pingsLeftBehind: UInt32 = 0
    /// The highest cursor that it has sent back.
    var lastReceipt: UInt64 = 0
    var frames = TokenBucket()
    var states = TokenBucket()
    var attachments = TokenBucket()
    /// The state that its app told last.
    var declared: (state: DeclaredAppState, keepsWorking: Bool)?
    /// Delivery has been told about it.
    var isWatched = false
    /// Client events of the second that began with the first of them.
    var clientEventCount = 0
    var clientEventsSinceNanoseconds: UInt64 = 0

    init(id: ConnectionID, app: App, socketID: SocketID, isBrowser: Bool, address: String) {
        self.id = id
        self.app = app
        self.socketID = socketID
        self.isBrowser = isBrowser
        self.address = address
    }

    /// Counts a `pusher:pong`. Costs as much as its subscriptions.
    ///
    /// The oldest `pusher:ping` is the one that it answers. Where a cursor is not known any more its ping counts as older than all others,
    /// so that nothing newer is ever taken for answered too soon.
    /// - Returns: the cursor of that ping; 0: it is not known any more; nil: none is unanswered.
    func takeAnswer() -> UInt64? {
        if pingsLeftBehind > 0 {
            pingsLeftBehind -= 1
            return 0
        }
        var oldest = pings.cursor(pingsAnswered)
        var way: Subscription?
        for subscription in subscriptions.values {
            guard case .active(let channel) = subscription.phase, let cursor = channel.pings.cursor(subscription.pingsAnswered),
                cursor < oldest ?? .max
            else { continue }
            (oldest, way) = (cursor, subscription)
        }
        guard let oldest else { return nil }
        if let way { way.pingsAnswered += 1 } else { pingsAnswered += 1 }
        return oldest
    }

    /// A subscription ends, and with it what tells the pings of its channel apart.
    func leaveBehind(_ subscription: Subscription, of channel: Channel) {
        if isBrowser { pingsLeftBehind += channel.pings.count - subscription.pingsAnswered }
    }
}
