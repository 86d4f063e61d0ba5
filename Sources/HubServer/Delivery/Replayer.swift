internal import HubCore
internal import HubDelivery
internal import Logging
internal import PusherProtocol

/// Reads missed events and sends them to the connections that came back. A task of its own, because a thousand people may return at once.
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

    /// For tests: arrivals that wait.
    var waitingCount: Int { inbox.count }

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
            for (_, together) in Dictionary(grouping: arrivals, by: { [$0.app, $0.channel] }) {
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
                app: first.app, channel: first.channel, users: arrivals.map(\.user), now: time.wallMilliseconds,
                limit: Replays.eventsMax)
        } catch {
            logger.error("what somebody missed could not be read", metadata: ["error": "\(error)"])
        }
        var frames: [String: [UInt8]] = [:]
        for (arrival, missed) in zip(arrivals, missed) {
            guard let channel = ChannelName(arrival.channel) else { continue }
            var items: [Replay.Item] = []
            var bytes: [UInt8] = []
            for missed in arrival.replayed(missed) {
                let event = missed.event
                let frame =
                    frames[event.id]
                    ?? Frame.text(
                        ServerEvent.event(name: event.name, channel: channel, data: DataLiteral(content: event.data), eventID: event.id))
                frames[event.id] = frame
                bytes += frame
                items.append(Replay.Item(event: event.id, user: arrival.user, recipient: missed.recipient))
            }
            send(Replay(arrival: arrival, items: items), bytes)
        }
    }
}
