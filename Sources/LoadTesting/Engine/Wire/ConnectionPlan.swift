/// The purpose of one connection, from its opening to its end. Stays on its worker's thread.
final class ConnectionPlan {
    /// Path and query of the upgrade; nil: an HTTP connection for publishing.
    var path: String?
    var subprotocol: String?
    var isBinary = false
    var steps: [OpeningStep] = []
    /// Index in the scenario's channels.
    var channel = 0
    /// The connection's number in the whole run, for its source address.
    var number = 0
    /// Its address's index, modulo their number; nil: the next of its thread's turns.
    var node: Int?
    /// Time at which it should be opened; nil: now.
    var due: UInt64?
    /// The scenario's own identifier.
    var tag = 0
    /// Whether its sequences begin at 0; false: with the first arrival.
    var hearsAll = true
    /// Whether the connection counts as a subscriber; false for publishers.
    var isCounted = true
    /// Whether its events go into the tally directly, instead of via its watcher.
    var isTallied = true
    /// Kind that counts the time from `due` to the upgrade's answer.
    /// Kind that counts the time from `due` to the end of the opening.
    var upgradedKind: Int?
    var openedKind: Int?
    /// Whether the watcher gets every message, including those without a mark.
    var wantsMessages = false
    weak var watcher: (any LinkWatcher)?

    /// Whether the connection counts as a subscriber.
    var isSubscriber: Bool { path != nil && isCounted }

    init() {}

    /// A subscriber's plan, with the dialect's steps.
    convenience init(_ dialect: any Dialect, channel name: String, index: Int) {
        self.init()
        path = dialect.path(channel: name)
        subprotocol = dialect.subprotocol
        isBinary = dialect.isBinary
        steps = dialect.opening(channel: name)
        channel = index
    }
}

/// Receives a connection's events on its worker's thread.
protocol LinkWatcher: AnyObject {
    /// All opening steps are complete.
    func opened(_ slot: Int, now: UInt64)
    /// The connection has ended, and its slot is free.
    /// - Parameter code: of the server's close frame; nil if there was none.
    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64)
    /// An event, if the plan wants messages.
    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64)
    /// The answer to the last request on an HTTP connection; `status` is 0 for a malformed answer.
    func answered(_ slot: Int, _ answer: HTTPAnswer, now: UInt64)
}

extension LinkWatcher {
    func opened(_ slot: Int, now: UInt64) {}
    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {}
    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {}
    func answered(_ slot: Int, _ answer: HTTPAnswer, now: UInt64) {}
}
