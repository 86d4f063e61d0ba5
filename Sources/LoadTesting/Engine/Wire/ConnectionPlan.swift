/// What one connection is for, from its opening to its end. Stays on its worker's thread.
final class ConnectionPlan {
    /// Path and query of the upgrade; nil: an HTTP connection for publishing.
    var path: String?
    var subprotocol: String?
    var isBinary = false
    var steps: [OpeningStep] = []
    /// Of the scenario's channels.
    var channel = 0
    /// The connection's number in the whole run, for its source address.
    var number = 0
    /// When it ought to be opened; nil: now.
    var due: UInt64?
    /// What the scenario calls it by.
    var tag = 0
    /// Its sequences begin with 0, not with what comes first.
    var hearsAll = true
    /// It is one of the connections that are counted; false for those that publish.
    var isCounted = true
    /// What it receives goes into the tally by itself, not by its watcher.
    var isTallied = true
    /// What the times from due to the upgrade's answer, and to the end of the opening, are counted as.
    var upgradedKind: Int?
    var openedKind: Int?
    /// Wants every message, also those that hold no mark.
    var wantsMessages = false
    weak var watcher: (any LinkWatcher)?

    /// One of the connections that are counted.
    var isSubscriber: Bool { path != nil && isCounted }

    init() {}

    /// A subscriber as the dialect makes it.
    convenience init(_ dialect: any Dialect, channel name: String, index: Int) {
        self.init()
        path = dialect.path(channel: name)
        subprotocol = dialect.subprotocol
        isBinary = dialect.isBinary
        steps = dialect.opening(channel: name)
        channel = index
    }
}

/// Who is told of what happens to a connection; on the worker's thread.
protocol LinkWatcher: AnyObject {
    /// All opening steps are done.
    func opened(_ slot: Int, now: UInt64)
    /// It is gone, and the slot free.
    /// - Parameter code: of the server's close frame; nil: it ended without one.
    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64)
    /// An event, for plans that want them.
    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64)
    /// The answer to what was last sent on an HTTP connection; `status` 0 when there is none because it was no answer.
    func answered(_ slot: Int, _ answer: HTTPAnswer, now: UInt64)
}

extension LinkWatcher {
    func opened(_ slot: Int, now: UInt64) {}
    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {}
    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {}
    func answered(_ slot: Int, _ answer: HTTPAnswer, now: UInt64) {}
}
