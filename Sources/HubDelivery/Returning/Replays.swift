package import HubCore
internal import HubDefinitions

/// A new subscription to a channel whose definition replays missed events.
package struct Arrival: Sendable {
    package let connection: ConnectionID
    package let app: String
    package let channel: String
    package let user: String
    /// Time of the book's entry, in milliseconds since 1970. Later events reach the connection live.
    package var at: Int64
    /// Events that were decided before the entry, in the same millisecond.
    package var decidedJustBefore: Set<String> = []
    /// The only events that are meant; nil for all that were missed.
    package var events: Set<String>?

    package init(connection: ConnectionID, app: String, channel: String, user: String, at: Int64 = 0) {
        self.connection = connection
        self.app = app
        self.channel = channel
        self.user = user
        self.at = at
    }

    /// The events to send once more: decided before the arrival, not confirmed, and meant for the socket.
    /// - Parameter missed: in the order of their commits.
    package func replayed(_ missed: [MissedEvent]) -> [MissedEvent] {
        missed.filter { missed in
            let event = missed.event
            // A decision that was not stored may have been made again since, and the event was written live then.
            let isBefore = event.committedAt < at || event.committedAt == at && decidedJustBefore.contains(event.id)
            return isBefore && event.policy != .pushOnly && missed.note.choice != .socketOnly && events?.contains(event.id) ?? true
        }
    }
}

/// Events that are sent once more to a connection that came back.
package struct Replay: Sendable {
    package struct Item: Sendable, Equatable {
        package let event: String
        package let user: String
        /// The user's place among the event's recipients.
        package let recipient: Int

        package init(event: String, user: String, recipient: Int) {
            self.event = event
            self.user = user
            self.recipient = recipient
        }
    }

    package let arrival: Arrival
    package let items: [Item]

    package init(arrival: Arrival, items: [Item]) {
        self.arrival = arrival
        self.items = items
    }

    /// Nothing to send.
    package static func nothing(_ arrival: Arrival) -> Replay { Replay(arrival: arrival, items: []) }
}

/// The replays under way: what was written to whom, until its receipt comes.
///
/// The hub reads one replay of a connection at a time, and none of a channel whose earlier replay is unanswered. A client that asks again
/// and again holds up only itself.
package struct Replays: Sendable {
    /// The replays of one connection.
    private struct Line: Sendable {
        /// Being read, or on its way to the loop, and then with its token.
        var current: (arrival: Arrival, token: UInt64?)?
        /// The newest arrival of each channel that waits after it.
        var waiting: [Arrival] = []
        var written: [(cursor: UInt64, replay: Replay)] = []
        /// Read by an app that had not said that it is on the screen.
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
            let arrival = waiting.remove(at: index)
            current = (arrival, nil)
            return arrival
        }

        /// All that the line knows of.
        var arrivals: [Arrival] {
            let current = current.map { [$0.arrival] } ?? []
            return current + waiting + written.map(\.replay.arrival) + unseen.map(\.arrival)
        }

        /// Whether the arrival's missed events are being read.
        func isReading(_ arrival: Arrival) -> Bool {
            guard let current, current.token == nil else { return false }
            return current.arrival.channel == arrival.channel && current.arrival.at == arrival.at
        }
    }

    private var lines: [ConnectionID: Line] = [:]
    private var announced: [UInt64: Replay] = [:]
    private var ready: [Arrival] = []
    private var lastToken: UInt64

    /// - Parameter firstToken: tokens are numbered from here. Books of several nodes need ranges of their own.
    init(firstToken: UInt64 = 0) { lastToken = firstToken }

    /// Replays to one connection that are remembered until its app says that it is on the screen; the oldest give way.
    static let unseenMax = 8
    /// Events that one connection is sent at most when it comes back; the others stay fetchable.
    package static let eventsMax = 100
    /// Events written to one connection and not answered, beyond which its next replay waits.
    static let unansweredMax = 1000
    /// Replays of one connection: so many at once, then one each so long. Excess replays wait for the connection's next answer or arrival.
    static let burst: Int64 = 1000
    static let everyMilliseconds: Int64 = 1000

    /// Somebody has come to a channel that replays.
    /// - Parameter now: milliseconds on a clock that only grows, here and below.
    mutating func arrived(_ arrival: Arrival, now: Int64) {
        var line = lines.removeValue(forKey: arrival.connection) ?? Line()
        if let events = arrival.events, let known = line.waiting.firstIndex(where: { $0.channel == arrival.channel }) {
            line.waiting[known].events?.formUnion(events)
        } else {
            // This one missed all that an earlier one missed, and more.
            line.waiting.removeAll { $0.channel == arrival.channel }
            line.waiting.append(arrival)
        }
        lines[arrival.connection] = line
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
    mutating func finished(_ arrival: Arrival, now: Int64) {
        guard lines[arrival.connection]?.isReading(arrival) == true else { return }
        lines[arrival.connection]?.current = nil
        begin(arrival.connection, now: now)
    }

    /// A replay is on its way to its loop, where the token names it; nil: its connection or its channel is gone.
    mutating func announce(_ replay: Replay) -> UInt64? {
        let arrival = replay.arrival
        guard lines[arrival.connection]?.isReading(arrival) == true else { return nil }
        lastToken += 1
        announced[lastToken] = replay
        lines[arrival.connection]?.current = (arrival, lastToken)
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

    /// Takes the replays that the connection has read by now.
    mutating func received(_ connection: ConnectionID, cursor: UInt64, now: Int64) -> [Replay] {
        guard let waiting = lines[connection]?.written, !waiting.isEmpty else { return [] }
        lines[connection]?.written = waiting.filter { $0.cursor > cursor }
        begin(connection, now: now)
        return waiting.filter { $0.cursor <= cursor }.map(\.replay)
    }

    /// A replay was read, and the app has not said that it is on the screen.
    mutating func keepUnseen(_ replay: Replay) {
        lines[replay.arrival.connection]?.unseen.append(replay)
        if lines[replay.arrival.connection]?.unseen.count ?? 0 > Self.unseenMax { lines[replay.arrival.connection]?.unseen.removeFirst() }
    }

    /// The app is on the screen: what it read before is seen.
    mutating func takeUnseen(_ connection: ConnectionID) -> [Replay] {
        defer { lines[connection]?.unseen = [] }
        return lines[connection]?.unseen ?? []
    }

    /// Gives up the replays in all other channels: their receipts say nothing once another node has awaited the events in between. Costs
    /// O(n) in the connections with replays.
    mutating func keep(_ isKept: (_ app: String, _ channel: String) -> Bool, now: Int64) {
        func isOver(_ arrival: Arrival) -> Bool { !isKept(arrival.app, arrival.channel) }
        ready.removeAll(where: isOver)
        // Most lines are empty.
        let concerned = lines.filter { $0.value.arrivals.contains(where: isOver) }.map(\.key)
        for connection in concerned {
            if let (arrival, token) = lines[connection]?.current, isOver(arrival) {
                lines[connection]?.current = nil
                if let token { announced[token] = nil }
            }
            lines[connection]?.waiting.removeAll(where: isOver)
            lines[connection]?.written.removeAll { isOver($0.replay.arrival) }
            lines[connection]?.unseen.removeAll { isOver($0.arrival) }
            begin(connection, now: now)
        }
    }

    mutating func disconnected(_ connection: ConnectionID) {
        if let token = lines.removeValue(forKey: connection)?.current?.token { announced[token] = nil }
    }
}
