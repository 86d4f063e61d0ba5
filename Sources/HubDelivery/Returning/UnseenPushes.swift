internal import HubCore

/// Pushes that were decided for apps in the background, whose sockets get the event, too.
///
/// Commit, lane and libcurl's queue take their time. An app that comes to the screen meanwhile shows the event itself. Once its receipt has
/// come, the push would tell its user twice.
///
/// A plain value without a clock of its own.
struct UnseenPushes: Sendable {
    /// The participant for whom the event was pushed, or one of their devices where each device stands for itself.
    struct Target: Sendable, Hashable {
        let user: String
        /// Nil for all devices of the participant together.
        let device: String?
    }

    private struct Event: Sendable {
        let id: String
        let channel: Escalation.Channel
        let decidedAt: Int64
        /// Per loop, the last ticket of the subscribers who get the frame.
        var attendedUpTo: [UInt64]
        /// Per loop, the cursor of the PING after the event.
        var cursors: [UInt64?]
        /// Places among the event's recipients.
        var recipients: [Target: Int]

        /// Whether the subscription was there when the event was decided, and its role gets the event.
        func wasSent(_ number: UInt64, to seat: Attendance.KnownSeat, on loop: Int) -> Bool {
            number >= seat.firstEvent && loop < attendedUpTo.count && seat.ticket <= attendedUpTo[loop]
        }
    }

    /// An event that somebody saw on the screen.
    struct Seen: Sendable, Equatable {
        let item: Replay.Item
        let channel: String
        /// The device whose push is spared, where each device stands for itself; nil: all of the user's.
        let device: String?
        /// The device that read it; nil if unknown.
        let reader: String?
    }

    /// An event whose receipt is missing, of an app on the screen.
    private struct Unread {
        let number: UInt64
        let target: Target
    }

    private var events: [UInt64: Event] = [:]
    private var byChannel: [Escalation.Channel: [UInt64]] = [:]
    /// Numbers in the order of the decisions.
    private var queue: [UInt64] = []
    private var queueHead = 0
    private var recipientCount = 0
    /// Apps that are on the screen again, with the events whose receipts are missing.
    private var opened: [ConnectionID: [Unread]] = [:]

    /// Milliseconds for which a decision is kept: longer than most pushes wait in a lane.
    static let rememberedMilliseconds: Int64 = 10_000
    /// Events of one connection whose receipts are missing; the pushes of older ones go.
    static let unreadMax = 64
    /// Most recipients of all kept decisions. If exceeded, the oldest decisions are dropped and their pushes go.
    static let recipientsMax = 200_000

    /// For tests: events that are kept.
    var eventCount: Int { events.count }
    private let recipientsMax: Int

    init(recipientsMax: Int = Self.recipientsMax) { self.recipientsMax = recipientsMax }

    /// Keeps a decision.
    /// - Parameters:
    ///   - number: by which the loops know the event.
    ///   - recipients: places of the pushed among the event's recipients.
    ///   - now: milliseconds on a clock that only grows, here and below.
    mutating func decided(
        _ number: UInt64, event: String, app: String, channel: String, attendedUpTo: [UInt64], recipients: [Target: Int], now: Int64
    ) {
        let channel = Escalation.Channel(app: app, name: channel)
        events[number] = Event(
            id: event, channel: channel, decidedAt: now, attendedUpTo: attendedUpTo,
            cursors: Array(repeating: nil, count: attendedUpTo.count), recipients: recipients)
        byChannel[channel, default: []].append(number)
        queue.append(number)
        recipientCount += recipients.count
        forgetOld(now: now)
    }

    /// Notes the cursor of the PING that followed the event on a loop.
    mutating func pinged(_ number: UInt64, loop: Int, cursor: UInt64) {
        guard let count = events[number]?.cursors.count, loop < count else { return }
        events[number]?.cursors[loop] = cursor
    }

    /// An app is on the screen: one of its subscriptions. `left` is called before the first of them.
    /// - Parameter readUpTo: cursor of the connection's last receipt; 0: none has come.
    /// - Returns: the events that it has read by then, and the ids of those whose receipts are still to come.
    mutating func opened(
        _ connection: ConnectionID, _ seat: Attendance.KnownSeat, isOfOneDevice: Bool, readUpTo: UInt64, now: Int64
    ) -> (seen: [Seen], unread: [String]) {
        forgetOld(now: now)
        // An unknown device spares no particular push.
        if isOfOneDevice && seat.device == nil { return ([], []) }
        let target = Target(user: seat.user, device: isOfOneDevice ? seat.device : nil)
        var (seen, unread): ([Seen], [String]) = ([], [])
        for number in byChannel[Escalation.Channel(app: seat.app, name: seat.channel)] ?? [] {
            guard let event = events[number], event.recipients[target] != nil, event.wasSent(number, to: seat, on: connection.loop)
            else { continue }
            if let event = take(number, target, by: seat, on: connection.loop, upTo: readUpTo) {
                seen.append(event)
            } else {
                unread.append(event.id)
                opened[connection, default: []].append(Unread(number: number, target: target))
            }
        }
        opened[connection] = opened[connection]?.suffix(Self.unreadMax)
        return (seen, unread.suffix(Self.unreadMax))
    }

    /// Takes the events that an app on the screen has read by now.
    /// - Parameter seats: the connection's present subscriptions. An event that went to a former one proves nothing.
    mutating func received(_ connection: ConnectionID, seats: [Attendance.KnownSeat], upTo cursor: UInt64) -> [Seen] {
        guard let unread = opened[connection] else { return [] }
        var (seen, left): ([Seen], [Unread]) = ([], [])
        for place in unread {
            guard let event = events[place.number],
                let seat = seats.first(where: { $0.channel == event.channel.name && $0.user == place.target.user }),
                event.wasSent(place.number, to: seat, on: connection.loop)
            else { continue }
            if let event = take(place.number, place.target, by: seat, on: connection.loop, upTo: cursor) {
                seen.append(event)
            } else {
                left.append(place)
            }
        }
        opened[connection] = left.isEmpty ? nil : left
        return seen
    }

    /// The connection has ended, or its app has left the screen.
    mutating func left(_ connection: ConnectionID) { opened[connection] = nil }

    private mutating func take(
        _ number: UInt64, _ target: Target, by seat: Attendance.KnownSeat, on loop: Int, upTo cursor: UInt64
    ) -> Seen? {
        guard let event = events[number], let written = event.cursors[loop], cursor >= written, let recipient = event.recipients[target]
        else { return nil }
        events[number]?.recipients[target] = nil
        recipientCount -= 1
        let item = Replay.Item(event: event.id, user: target.user, recipient: recipient)
        return Seen(item: item, channel: event.channel.name, device: target.device, reader: seat.device)
    }

    // MARK: Several nodes

    /// Receipts of these loops prove nothing any more.
    mutating func forget(loops: Range<Int>) {
        for number in events.keys {
            for loop in loops where loop < events[number]?.cursors.count ?? 0 {
                events[number]?.cursors[loop] = nil
                events[number]?.attendedUpTo[loop] = 0
            }
        }
    }

    /// Forgets events of other channels.
    mutating func keep(_ isKept: (_ app: String, _ channel: String) -> Bool) {
        for (number, event) in events where !isKept(event.channel.app, event.channel.name) { forget(number) }
    }

    // MARK: Bounds

    private mutating func forgetOld(now: Int64) {
        while queueHead < queue.count {
            let number = queue[queueHead]
            if let event = events[number] {
                guard event.decidedAt <= now - Self.rememberedMilliseconds || recipientCount > recipientsMax else { break }
                forget(number)
            }
            queueHead += 1
        }
        if queueHead > 64, queueHead * 2 > queue.count {
            queue.removeFirst(queueHead)
            queueHead = 0
        }
    }

    private mutating func forget(_ number: UInt64) {
        guard let event = events.removeValue(forKey: number) else { return }
        recipientCount -= event.recipients.count
        byChannel[event.channel]?.removeAll { $0 == number }
        if byChannel[event.channel]?.isEmpty == true { byChannel[event.channel] = nil }
    }
}
