internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import Logging
internal import PusherProtocol

/// Somebody has subscribed to a channel whose definition replays what was missed.
struct Arrival: Sendable {
    let connection: ConnectionID
    let app: String
    let channel: ChannelName
    let user: String
    /// When it was entered in the book, in milliseconds since 1970: what is decided later reaches it live.
    var at: Int64 = 0
    /// Events that were decided before it, in the same millisecond.
    var decidedJustBefore: Set<String> = []

    /// Whether an event was decided before it, and so was not written to its connection.
    func missed(_ event: EventRecord) -> Bool { event.committedAt < at || decidedJustBefore.contains(event.id) }
}

/// What a connection that came back is sent once more.
struct Replay: Sendable {
    struct Item: Sendable {
        let event: String
        let user: String
        /// The user's place among the event's recipients.
        let recipient: Int
    }

    let arrival: Arrival
    let items: [Item]
}

/// The replays under way: what was written to whom, until its receipt comes.
///
/// A connection is read one replay at a time, and of one channel none while an earlier one is not answered: who asks again and again waits
/// for itself, and nobody else does.
struct Replays {
    /// The replays of one connection.
    private struct Line {
        /// Being read, or on its way to the loop, and then with its token.
        var current: (channel: ChannelName, token: UInt64?)?
        /// The newest arrival of each channel that waits after it.
        var waiting: [Arrival] = []
        var written: [(cursor: UInt64, replay: Replay)] = []
        /// Read by an app that had not said yet whether anybody looks at it.
        var unseen: [Replay] = []
        /// When all that have begun would be paid for, at one each `everyMilliseconds`.
        var paidAt: Int64 = 0

        mutating func next(now: Int64) -> Arrival? {
            guard current == nil, paidAt <= now + (Replays.burst - 1) * Replays.everyMilliseconds,
                written.reduce(0, { $0 + $1.replay.items.count }) < Replays.unansweredMax
            else { return nil }
            let unanswered = Set(written.map(\.replay.arrival.channel))
            guard let index = waiting.firstIndex(where: { !unanswered.contains($0.channel) }) else { return nil }
            paidAt = max(paidAt, now) + Replays.everyMilliseconds
            current = (waiting[index].channel, nil)
            return waiting.remove(at: index)
        }
    }

    private var lines: [ConnectionID: Line] = [:]
    private var announced: [UInt64: Replay] = [:]
    private var ready: [Arrival] = []
    private var lastToken: UInt64 = 0

    /// Replays to one connection that are remembered until its app says that it is on the screen; the oldest give way.
    static let unseenMax = 8
    /// Events that one connection is sent at most when it comes back; the others stay fetchable.
    static let eventsMax = 100
    /// Events written to one connection and not answered, beyond which its next replay waits.
    static let unansweredMax = 1000
    /// Replays of one connection: so many at once, then one each so long. What is over waits for the connection's next answer.
    static let burst: Int64 = 1000
    static let everyMilliseconds: Int64 = 1000

    /// Somebody has come to a channel that replays.
    /// - Parameter now: milliseconds on a clock that only grows, here and below.
    mutating func arrived(_ arrival: Arrival, now: Int64) {
        // This one missed all that an earlier one missed, and more.
        lines[arrival.connection, default: Line()].waiting.removeAll { $0.channel == arrival.channel }
        lines[arrival.connection]?.waiting.append(arrival)
        begin(arrival.connection, now: now)
    }

    /// Whose replays are to be read now; each ends with `announce` or `finished`.
    mutating func takeReady() -> [Arrival] {
        defer { ready = [] }
        return ready
    }

    private mutating func begin(_ connection: ConnectionID, now: Int64) {
        if let arrival = lines[connection]?.next(now: now) { ready.append(arrival) }
    }

    /// Nothing was missed, or it could not be read.
    mutating func finished(_ connection: ConnectionID, now: Int64) {
        lines[connection]?.current = nil
        begin(connection, now: now)
    }

    /// A replay is on its way to its loop, where the token names it; nil: its connection is gone.
    mutating func announce(_ replay: Replay) -> UInt64? {
        guard lines[replay.arrival.connection] != nil else { return nil }
        lastToken += 1
        announced[lastToken] = replay
        lines[replay.arrival.connection]?.current = (replay.arrival.channel, lastToken)
        return lastToken
    }

    /// The loop has written it, with a PING behind it.
    /// - Parameter cursor: 0: it has not, because the subscription had ended.
    mutating func wrote(_ token: UInt64, cursor: UInt64, now: Int64) -> Replay? {
        guard let replay = announced.removeValue(forKey: token) else { return nil }
        let connection = replay.arrival.connection
        lines[connection]?.current = nil
        if cursor > 0 { lines[connection]?.written.append((cursor, replay)) }
        begin(connection, now: now)
        return cursor > 0 ? replay : nil
    }

    /// What the connection has read by now.
    mutating func received(_ connection: ConnectionID, cursor: UInt64, now: Int64) -> [Replay] {
        guard let waiting = lines[connection]?.written, !waiting.isEmpty else { return [] }
        lines[connection]?.written = waiting.filter { $0.cursor > cursor }
        begin(connection, now: now)
        return waiting.filter { $0.cursor <= cursor }.map(\.replay)
    }

    /// A replay was read, and the app has not said yet whether anybody looks at it.
    mutating func keepUnseen(_ replay: Replay) {
        lines[replay.arrival.connection]?.unseen.append(replay)
        if lines[replay.arrival.connection]?.unseen.count ?? 0 > Self.unseenMax { lines[replay.arrival.connection]?.unseen.removeFirst() }
    }

    /// The app is on the screen: what it read before is seen.
    mutating func takeUnseen(_ connection: ConnectionID) -> [Replay] {
        defer { lines[connection]?.unseen = [] }
        return lines[connection]?.unseen ?? []
    }

    mutating func disconnected(_ connection: ConnectionID) {
        if let token = lines.removeValue(forKey: connection)?.current?.token { announced[token] = nil }
    }
}

/// Reads what people missed and sends it to the connections with which they came back. Its own task: a thousand may come back at once.
final class Replayer: Sendable {
    private let inbox = Inbox<Arrival>()
    private let store: any DeliveryStore
    private let time: any TimeSource
    private let logger: Logger

    /// Arrivals that may wait; beyond it somebody has to fetch what they missed.
    static let waitingMax = 100_000
    /// People of one channel whose replays are read together; the first are sent theirs while the next are read.
    private static let batchMax = 200

    init(store: any DeliveryStore, time: any TimeSource, logger: Logger) {
        self.store = store
        self.time = time
        self.logger = logger
    }

    /// - Returns: false: too many wait; it is not read.
    @discardableResult
    func post(_ arrival: Arrival) -> Bool {
        if inbox.offer(arrival, limit: Self.waitingMax) { return true }
        logger.warning(
            "too many people come back at once: somebody is not sent what they missed", metadata: ["limit": "\(Self.waitingMax)"])
        return false
    }

    func close() { inbox.close() }

    /// Works until `close`. Call once.
    /// - Parameter send: takes the replay and its frames, joined, in order. Both are empty if nothing was missed or nothing could be read.
    func run(send: @escaping @Sendable (Replay, [UInt8]) -> Void) async {
        while let arrivals = await inbox.next() {
            // Whoever comes together to a channel has mostly missed the same: each event is read and written out once for all of them.
            for (_, together) in Dictionary(grouping: arrivals, by: { [$0.app, $0.channel.text] }) {
                for start in stride(from: 0, to: together.count, by: Self.batchMax) {
                    await read(together[start..<min(start + Self.batchMax, together.count)], send)
                }
            }
        }
    }

    /// - Parameter arrivals: to one channel.
    private func read(_ arrivals: ArraySlice<Arrival>, _ send: @Sendable (Replay, [UInt8]) -> Void) async {
        guard let first = arrivals.first else { return }
        var missed = arrivals.map { _ in [MissedEvent]() }
        do {
            missed = try await store.missed(
                app: first.app, channel: first.channel.text, users: arrivals.map(\.user), now: time.wallMilliseconds,
                limit: Replays.eventsMax)
        } catch {
            logger.error("what somebody missed could not be read", metadata: ["error": "\(error)"])
        }
        var frames: [String: [UInt8]] = [:]
        for (arrival, missed) in zip(arrivals, missed) {
            var items: [Replay.Item] = []
            var bytes: [UInt8] = []
            for missed in missed where arrival.missed(missed.event) && missed.event.policy != .pushOnly && missed.note.choice != .socketOnly
            {
                let event = missed.event
                let frame =
                    frames[event.id]
                    ?? Frame.text(
                        ServerEvent.event(
                            name: event.name, channel: arrival.channel, data: DataLiteral(content: event.data), eventID: event.id))
                frames[event.id] = frame
                bytes += frame
                items.append(Replay.Item(event: event.id, user: arrival.user, recipient: missed.recipient))
            }
            send(Replay(arrival: arrival, items: items), bytes)
        }
    }
}
