internal import HubCore
internal import PusherProtocol

/// Engine state of one connection.
final class Connection {
    let id: ConnectionID
    /// Its app as in force now.
    var app: App
    let socketID: SocketID
    /// The client says `client=js`. The page answers `pusher:ping`; the browser answers PINGs itself, even for a frozen page.
    let isBrowser: Bool
    /// The peer's.
    let address: String
    /// Bytes of its anonymous subscriptions.
    var anonymousBytes = 0
    var subscriptions: [ChannelName: Subscription] = [:]
    /// Channels that the connection is barred from, with the user it stood for; nil: unknown.
    var barred: [ChannelName: String?] = [:]
    /// User of the sign-in.
    var user: SignedInUser?
    /// Set while the first status of the watched users is being collected.
    var pendingWatchlist: ChannelEngine.PendingWatchlist?
    /// `pusher:ping` events sent to this connection alone.
    var pings = PingLog()
    /// Number of `pings` that are answered.
    private var pingsAnswered: UInt32 = 0
    /// Unanswered pings of channels that the connection has left.
    private var pingsLeftBehind: UInt32 = 0
    /// Highest cursor received.
    var lastReceipt: UInt64 = 0 {
        didSet { assert(lastReceipt > oldValue, "connection \(id) confirms cursor \(lastReceipt) after \(oldValue)") }
    }
    var frames = TokenBucket()
    var states = TokenBucket()
    var attachments = TokenBucket()
    /// Last state declared by the app.
    var declared: (state: DeclaredAppState, keepsWorking: Bool)?
    /// Delivery knows of this connection.
    var isWatched = false
    /// Client events within the current second, which began with the first of them.
    var clientEventCount = 0
    var clientEventsSinceNanoseconds: UInt64 = 0

    init(id: ConnectionID, app: App, socketID: SocketID, isBrowser: Bool, address: String) {
        self.id = id
        self.app = app
        self.socketID = socketID
        self.isBrowser = isBrowser
        self.address = address
    }

    /// Counts a `pusher:pong`, which answers the oldest `pusher:ping`. O(subscriptions).
    ///
    /// A ping whose cursor has been forgotten counts as older than all others. So no newer ping is taken for answered too soon.
    /// - Returns: the ping's cursor; 0: forgotten; nil: no ping is unanswered.
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

    /// Keeps the number of a channel's unanswered pings when its subscription ends.
    func leaveBehind(_ subscription: Subscription, of channel: Channel) {
        assert(
            subscription.pingsAnswered <= channel.pings.count,
            "\(subscription.pingsAnswered) of \(channel.pings.count) pings are answered")
        if isBrowser { pingsLeftBehind += channel.pings.count - subscription.pingsAnswered }
    }
}
