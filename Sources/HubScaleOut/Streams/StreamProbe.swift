internal import HubCore

/// Whether what a node says arrives: its messages come back to it through the stream. A node that has read none of its own for a second
/// sends itself a probe, which is news to nobody. One thread at a time.
struct StreamProbe: Sendable {
    /// Time after which a node that reads nothing of its own sends a probe: a second, for who looks with the ticks.
    static let every: Duration = .seconds(1) - .milliseconds(Tick.lateMax)

    /// The last message that came back: when, and how long it took.
    private(set) var last: (at: ContinuousClock.Instant, took: Duration)?
    private var sentAt: ContinuousClock.Instant?

    /// Its first byte is one that no message has: theirs begin with a version. Older builds read a time in the others, of their own probes.
    static let payload = [UInt8](repeating: 0, count: 9)

    static func isProbe(_ payload: ArraySlice<UInt8>) -> Bool { payload.count == Self.payload.count && payload.first == 0 }

    /// A message of the node's own was read.
    mutating func readBack(at now: ContinuousClock.Instant, took: Duration) { last = (now, took) }

    /// Whether a probe is to be sent, which is then taken as sent.
    mutating func isDue(at now: ContinuousClock.Instant) -> Bool {
        if let moment = [last?.at, sentAt].compactMap({ $0 }).max(), now < moment + Self.every { return false }
        sentAt = now
        return true
    }
}
