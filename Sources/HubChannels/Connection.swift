internal import HubCore
internal import PusherProtocol

/// One connection as the engine knows it.
final class Connection {
    let id: ConnectionID
    let app: App
    let socketID: SocketID
    /// Its PONGs can come from the browser's network process while the page is frozen.
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
    /// Cursors of the `pusher:ping` events that it has not answered.
    var applicationPings: [UInt64] = []
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
}
