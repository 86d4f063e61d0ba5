package import HubCore
internal import PusherProtocol

/// Token bucket in one number.
struct TokenBucket {
    /// Nanoseconds of the monotonic clock: the time at which all taken tokens are refilled, at one token per interval.
    private var paidAt: UInt64 = 0

    /// Takes a token.
    /// - Returns: false if none is left.
    mutating func take(burst: UInt64, interval: UInt64, now: UInt64) -> Bool {
        guard paidAt <= now + (burst - 1) * interval else { return false }
        paidAt = max(paidAt, now) + interval
        return true
    }

    mutating func giveBack(interval: UInt64) {
        paidAt = paidAt > interval ? paidAt - interval : 0
    }
}

/// Rate limits of a connection.
///
/// Every frame takes a token. A connection without tokens is closed with 4100, so the client reconnects after a while.
/// Answers to the hub's questions are free. Work for the single delivery task has smaller buckets in addition.
extension ChannelEngine {
    /// Enough for the maximum of subscriptions, twice over.
    static let framesBurst: UInt64 = 2_000
    /// Frames a second, in addition to the client events that the app allows.
    static let framesPerSecond = 100
    /// Burst of app states, for an app that declares its state on each of its channels.
    static let statesBurst: UInt64 = 120
    static let stateInterval: UInt64 = 200_000_000
    /// All channels of a connection at once, then ten per second.
    static let attachmentsBurst = UInt64(subscriptionsMax)
    static let attachmentInterval: UInt64 = 100_000_000

    /// Takes a frame's token, or closes the connection.
    /// - Returns: false if the connection is being closed.
    func pays(_ connection: Connection) -> Bool {
        if connection.frames.take(burst: Self.framesBurst, interval: connection.app.frameInterval, now: time.monotonicNanoseconds) {
            return true
        }
        refuse(connection.id, .tooManyFrames)
        return false
    }

    /// Counts a frame without any other callback: a fragment of a message, or an unasked PONG.
    package func receivedFrame(from id: ConnectionID) {
        if let connection = connection(id) { _ = pays(connection) }
    }

    /// Takes a token for an app state.
    func paysState(_ connection: Connection) -> Bool {
        connection.states.take(burst: Self.statesBurst, interval: Self.stateInterval, now: time.monotonicNanoseconds)
    }

    /// Takes a token for a subscription to a channel with a definition.
    func paysAttachment(_ connection: Connection) -> Bool {
        connection.attachments.take(burst: Self.attachmentsBurst, interval: Self.attachmentInterval, now: time.monotonicNanoseconds)
    }
}

extension App {
    /// Nanoseconds per token.
    var frameInterval: UInt64 { 1_000_000_000 / UInt64(ChannelEngine.framesPerSecond + max(0, clientEventsPerSecond)) }
}
