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
struct Replays {
    private var announced: [UInt64: Replay] = [:]
    private var written: [ConnectionID: [(cursor: UInt64, replay: Replay)]] = [:]
    /// Read by apps that had not said yet whether anybody looks at them.
    private var unseen: [ConnectionID: [Replay]] = [:]
    private var lastToken: UInt64 = 0

    /// Replays to one connection that are remembered until its app says that it is on the screen; the oldest give way.
    static let unseenMax = 8
    /// Events that one connection is sent at most when it comes back; the others stay fetchable.
    static let eventsMax = 100

    /// A replay is on its way to its loop. The token names it there.
    mutating func announce(_ replay: Replay) -> UInt64 {
        lastToken += 1
        announced[lastToken] = replay
        return lastToken
    }

    /// The loop has written it, with a PING behind it.
    mutating func wrote(_ token: UInt64, cursor: UInt64) -> Replay? {
        guard let replay = announced.removeValue(forKey: token) else { return nil }
        written[replay.arrival.connection, default: []].append((cursor, replay))
        return replay
    }

    /// What the connection has read by now.
    mutating func received(_ connection: ConnectionID, cursor: UInt64) -> [Replay] {
        guard let waiting = written[connection] else { return [] }
        let rest = waiting.filter { $0.cursor > cursor }
        written[connection] = rest.isEmpty ? nil : rest
        return waiting.filter { $0.cursor <= cursor }.map(\.replay)
    }

    /// A replay was read, and the app has not said yet whether anybody looks at it.
    mutating func keepUnseen(_ replay: Replay) {
        unseen[replay.arrival.connection, default: []].append(replay)
        if unseen[replay.arrival.connection, default: []].count > Self.unseenMax { unseen[replay.arrival.connection]?.removeFirst() }
    }

    /// The app is on the screen: what it read before is seen.
    mutating func takeUnseen(_ connection: ConnectionID) -> [Replay] { unseen.removeValue(forKey: connection) ?? [] }

    mutating func disconnected(_ connection: ConnectionID) {
        written[connection] = nil
        unseen[connection] = nil
        if !announced.isEmpty { announced = announced.filter { $0.value.arrival.connection != connection } }
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

    init(store: any DeliveryStore, time: any TimeSource, logger: Logger) {
        self.store = store
        self.time = time
        self.logger = logger
    }

    func post(_ arrival: Arrival) {
        if !inbox.offer(arrival, limit: Self.waitingMax) {
            logger.warning("too many people come back at once: somebody is not sent what they missed", metadata: ["limit": "\(Self.waitingMax)"])
        }
    }

    func close() { inbox.close() }

    /// Works until `close`. Call once.
    /// - Parameter send: takes the replay and its frames, joined, in order.
    func run(send: @escaping @Sendable (Replay, [UInt8]) -> Void) async {
        while let arrivals = await inbox.next() {
            for arrival in arrivals {
                do {
                    let missed = try await store.missed(
                        app: arrival.app, channel: arrival.channel.text, user: arrival.user, now: time.wallMilliseconds, limit: Replays.eventsMax)
                        .filter { arrival.missed($0.event) && $0.event.policy != .pushOnly && $0.note.choice != .socketOnly }
                    guard !missed.isEmpty else { continue }
                    let frames = missed.flatMap { missed in
                        Frame.text(
                            ServerEvent.event(
                                name: missed.event.name, channel: arrival.channel, data: DataLiteral(content: missed.event.data),
                                eventID: missed.event.id))
                    }
                    let items = missed.map { Replay.Item(event: $0.event.id, user: arrival.user, recipient: $0.recipient) }
                    send(Replay(arrival: arrival, items: items), frames)
                } catch {
                    logger.error("what somebody missed could not be read", metadata: ["error": "\(error)"])
                }
            }
        }
    }
}
