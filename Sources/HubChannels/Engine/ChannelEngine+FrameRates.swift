package import HubCore
internal import PusherProtocol

/// A token bucket in one number.
struct TokenBucket {
    /// In nanoseconds of the monotonic clock: when all that was taken would be paid for, at one token each interval.
    private var paidAt: UInt64 = 0

    /// Whether there is a token; if so, it is taken.
    mutating func take(burst: UInt64, interval: UInt64, now: UInt64) -> Bool {
        guard paidAt <= now + (burst - 1) * interval else { return false }
        paidAt = max(paidAt, now) + interval
        return true
    }

    mutating func giveBack(interval: UInt64) {
        paidAt = paidAt > interval ? paidAt - interval : 0
    }
}

/// How much a connection may say.
///
/// Every frame takes a token, whatever is in it; who has none left is closed with 4100, upon which clients come back a little later. What
/// answers a question of the hub takes none. What becomes work of the one delivery task has smaller buckets behind that.
extension ChannelEngine {
    /// A connection may subscribe to all that it can have at once, twice over.
    static let framesBurst: UInt64 = 2_000
    /// Frames a second, in addition to the client events that the app allows.
    static let framesPerSecond = 100
    /// An app may say on each of its channels where it is.
    static let statesBurst: UInt64 = 120
    static let stateInterval: UInt64 = 200_000_000
    /// All the channels of a connection at once, then ten in a second.
    static let attachmentsBurst = UInt64(subscriptionsMax)
    static let attachmentInterval: UInt64 = 100_000_000

    /// Takes the token of a frame; false: there was none, and the connection is being closed.
    func pays(_ connection: Connection) -> Bool {
        if connection.frames.take(burst: Self.framesBurst, interval: connection.app.frameInterval, now: time.monotonicNanoseconds) {
            return true
        }
        refuse(connection.id, .tooManyFrames)
        return false
    }

    /// A frame that nothing else tells of: a fragment of a message, a PONG to no question.
    package func receivedFrame(from id: ConnectionID) {
        if let connection = connection(id) { _ = pays(connection) }
    }

    /// Whether an app may say its state once more.
    func paysState(_ connection: Connection) -> Bool {
        connection.states.take(burst: Self.statesBurst, interval: Self.stateInterval, now: time.monotonicNanoseconds)
    }

    /// Whether a connection may come to one more channel that has a definition.
    func paysAttachment(_ connection: Connection) -> Bool {
        connection.attachments.take(burst: Self.attachmentsBurst, interval: Self.attachmentInterval, now: time.monotonicNanoseconds)
    }
}

extension App {
    /// In nanoseconds.
    var frameInterval: UInt64 { 1_000_000_000 / UInt64(ChannelEngine.framesPerSecond + max(0, clientEventsPerSecond)) }
}
