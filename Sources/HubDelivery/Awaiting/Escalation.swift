package import HubCore

/// The events that somebody has not confirmed yet: whose receipt is awaited until when, and what happens then.
///
/// Presence never decides alone. Everybody who might be reached by the socket is a target with a due time; a receipt before it
/// settles the target, and whoever is left at that time gets a push. So no way in which a socket can be dead loses anybody. A
/// plain value over a clock that is passed in, owned by one thread, without I/O: the caller stores what it is told and carries
/// out what falls due.
package struct Escalation {
    /// One participant, or one of their devices where each device stands for itself, that an event waits for.
    package struct Target: Sendable, Equatable {
        package var user: String
        /// Nil: all devices of the participant together.
        package var device: String?
        package var policy: Policy
        /// Milliseconds after the commit.
        package var wait: Int64
        /// Milliseconds after the commit until the event is worth nothing to this target. No wait is stretched so far that the push
        /// would come too late.
        package var lifetime: Int64
        /// The user's place in the event's recipients.
        package var recipient: Int
        /// What was known when the event was committed: `live`, `quiet`, `grace`, …
        package var reason: String
        /// The push was put off because the hub itself was late.
        package var isHubLate = false

        package init(
            user: String, device: String?, policy: Policy, wait: Int64, lifetime: Int64 = .max / 4, recipient: Int, reason: String
        ) {
            self.user = user
            self.device = device
            self.policy = policy
            self.wait = wait
            self.lifetime = lifetime
            self.recipient = recipient
            self.reason = reason
        }
    }

    /// An event that was committed with targets.
    package struct Opening: Sendable {
        /// Names the event to the loops.
        package var number: UInt64
        package var event: String
        package var app: String
        package var channel: String
        /// Per loop, the last ticket of those who get the frame.
        package var attendedUpTo: [UInt64]
        /// A user's targets stand together.
        package var targets: [Target]

        package init(number: UInt64, event: String, app: String, channel: String, attendedUpTo: [UInt64], targets: [Target]) {
            self.number = number
            self.event = event
            self.app = app
            self.channel = channel
            self.attendedUpTo = attendedUpTo
            self.targets = targets
        }
    }

    /// What the caller has to carry out.
    package enum Effect: Sendable, Equatable {
        /// Push to these targets. `settled`: recipients of whom no other target is waited for; only they are done with once the
        /// rows are committed. Where each device stands for itself, a recipient can have one that is pushed to and one that is
        /// still waited for.
        case push(event: String, [Target], settled: [Int])
        /// Ask these users' connections to the channel for a sign of life, and report the cursor with `proving`.
        case prove(number: UInt64, event: String, app: String, channel: String, users: [String])
        /// These recipients confirmed the event, on the last of their targets that was waited for.
        case confirmed(event: String, recipients: [Int])
        /// A receipt came from somebody who had just been given up, of the event that a push is on its way for.
        case answered(Answered)
        /// Nobody is waited for any more.
        case closed(event: String)
    }

    /// A receipt behind its push.
    package struct Answered: Sendable, Equatable {
        package var event: String
        package var channel: String
        package var user: String
        /// The user's place in the event's recipients.
        package var recipient: Int
        /// The target's; nil: all devices of the participant together.
        package var target: String?
        /// The connection's; nil: not known.
        package var device: String?
    }

    /// A receipt as it came from a connection.
    package struct Receipt: Sendable {
        package var connection: ConnectionID
        package var cursor: UInt64

        package init(connection: ConnectionID, cursor: UInt64) {
            self.connection = connection
            self.cursor = cursor
        }
    }

    /// What makes a push that is due wait for longer.
    struct Patience {
        let lateness: Lateness
        /// When somebody last came to a channel that replays what they missed, or was on the way there; nil: not lately.
        let cameAt: (_ app: String, _ channel: String, _ user: String) -> Int64?
    }

    private struct Channel: Hashable {
        let app: String
        let name: String
    }

    private var open: [UInt64: OpenEvent] = [:]
    private var numbers: [String: UInt64] = [:]
    private var byChannel: [Channel: [UInt64]] = [:]
    /// Each open event's next time, and outdated times: an entry counts when it is its event's `scheduled`.
    private var agenda = Agenda()
    private var effects: [Effect] = []
    /// Events with confirmations that are not yet among the effects.
    private var confirming: [UInt64] = []
    private var lateness = Lateness()
    /// Targets of all open events.
    package private(set) var targetCount = 0

    /// Open events and their targets that are kept; a publish beyond it is refused.
    package static let eventsMax = 20_000
    package static let targetsMax = 4_000_000
    /// How long a replay may take to be confirmed before its push is sent all the same, in milliseconds.
    package static func replayGrace(_ policy: Policy) -> Int64 { policy == .critical ? 2000 : 5000 }

    package init() {}

    package var eventCount: Int { open.count }
    /// Whether an event with so many targets stays within the bounds.
    package func hasRoom(forTargets count: Int) -> Bool {
        open.count < Self.eventsMax && targetCount + count <= Self.targetsMax
    }
    /// When `advance` has something to do next; nil: nothing is waited for.
    package var nextDue: Int64? { agenda.first?.at }
    /// For tests: entries of the agenda, which outdated ones must not outnumber.
    package var agendaCount: Int { agenda.count }
    /// For tests: channels with open events.
    package var channelCount: Int { byChannel.count }

    // MARK: Events

    /// - Parameter now: milliseconds on a clock that only grows; of the commit.
    package mutating func open(_ opening: Opening, now: Int64) {
        guard !opening.targets.isEmpty else { return }
        let event = OpenEvent(opening, committedAt: now)
        open[opening.number] = event
        numbers[opening.event] = opening.number
        byChannel[Channel(app: opening.app, name: opening.channel), default: []].append(opening.number)
        targetCount += opening.targets.count
        schedule(event)
    }

    /// Behind the event, on that loop, went a PING with that cursor.
    package mutating func probed(_ number: UInt64, loop: Int, cursor: UInt64) {
        open[number]?.cursors[loop] = cursor
    }

    /// The connections asked for a sign of life got a PING with that cursor.
    package mutating func proving(_ number: UInt64, loop: Int, cursor: UInt64) {
        guard let event = open[number] else { return }
        event.asks[loop].append((cursor: cursor, at: event.askedAt))
    }

    /// The event was written once more, to a connection that came back.
    package mutating func replayed(_ event: String, user: String, to connection: ConnectionID, cursor: UInt64, now: Int64) {
        guard let event = numbers[event].flatMap({ open[$0] }) else { return }
        var replays = event.replays[user] ?? []
        if replays.count == OpenEvent.replaysMax { replays.removeFirst() }
        replays.append(OpenEvent.Replay(connection: connection, cursor: cursor, at: now))
        event.replays[user] = replays
    }

    // MARK: Receipts

    /// A connection has read everything before a cursor: settles, or settles for now, what it was sent and who it stands for.
    ///
    /// Costs as much as the open events of the channels that the connection is subscribed to.
    /// - Parameters:
    ///   - seats: what the connection is subscribed to now.
    ///   - now: milliseconds on the clock of the commits.
    package mutating func received(_ receipt: Receipt, seats: [Attendance.KnownSeat], now: Int64) {
        // An app in the background reads its socket, too, while nobody looks; unless it said that it shows what it reads.
        for seat in seats where seat.state != .background || seat.keepsWorking {
            for number in byChannel[Channel(app: seat.app, name: seat.channel)] ?? [] {
                if let event = open[number] { received(receipt, seat, event, now: now) }
            }
        }
    }

    private mutating func received(_ receipt: Receipt, _ seat: Attendance.KnownSeat, _ event: OpenEvent, now: Int64) {
        let targets = event.targets(of: seat.user)
        guard !targets.isEmpty, let writtenAt = event.timeWritten(to: seat, readBy: receipt) else { return }
        // Who answers late may have read the event late, after leaving the screen, and goes on answering from then.
        let readAt = max(writtenAt, now - DeviceState.promptAnswer.milliseconds)
        for index in targets {
            if let device = event.opening.targets[index].device, let own = seat.device, own != device { continue }
            if event.phases[index] == .settled {
                // Whether an app that says nothing was seen, nobody can know: its push goes.
                if seat.state != .unknown, event.pushed.remove(index) != nil { answered(index, seat, of: event) }
            } else if seat.state != .unknown {
                confirm(index, of: event)
            } else if event.isProof(receipt, of: index, writtenAt: writtenAt) {
                confirm(index, of: event)
            } else if event.phases[index] == .waiting {
                event.provision(index, writtenAt: readAt)
                schedule(event)
            } else if event.provisionAgain(index, writtenAt: writtenAt) {
                schedule(event)
            }
        }
        closeIfSettled(event)
    }

    private mutating func answered(_ index: Int, _ seat: Attendance.KnownSeat, of event: OpenEvent) {
        let (opening, target) = (event.opening, event.opening.targets[index])
        effects.append(
            .answered(
                Answered(
                    event: opening.event, channel: opening.channel, user: target.user, recipient: target.recipient, target: target.device,
                    device: seat.device)))
    }

    /// The app itself said that the event, or the notification of it, arrived.
    /// - Parameter device: the one that said so, where each device stands for itself; nil: any.
    package mutating func confirmed(event: String, user: String, device: String? = nil) {
        guard let event = numbers[event].flatMap({ open[$0] }) else { return }
        for index in event.targets(of: user) where event.phases[index] != .settled {
            if let device, let own = event.opening.targets[index].device, own != device { continue }
            confirm(index, of: event)
        }
        closeIfSettled(event)
    }

    /// Whether somebody waits for the user's receipt.
    package func isWaiting(event: String, user: String) -> Bool {
        guard let event = numbers[event].flatMap({ open[$0] }) else { return false }
        return event.targets(of: user).contains { event.phases[$0] != .settled }
    }

    private mutating func confirm(_ index: Int, of event: OpenEvent) {
        event.settle(index)
        guard event.isSettled(userOf: index) else { return }
        if event.confirmations.isEmpty { confirming.append(event.opening.number) }
        event.confirmations.append(event.opening.targets[index].recipient)
    }

    /// Confirmations become effects together: a session of 10,000 confirms within a moment.
    private mutating func tellConfirmations(of event: OpenEvent) {
        guard !event.confirmations.isEmpty else { return }
        effects.append(.confirmed(event: event.opening.event, recipients: event.confirmations))
        event.confirmations = []
    }

    private mutating func closeIfSettled(_ event: OpenEvent) {
        guard event.unsettled == 0, open.removeValue(forKey: event.opening.number) != nil else { return }
        let opening = event.opening
        tellConfirmations(of: event)
        effects.append(.closed(event: opening.event))
        numbers[opening.event] = nil
        targetCount -= opening.targets.count
        let channel = Channel(app: opening.app, name: opening.channel)
        byChannel[channel]?.removeAll { $0 == opening.number }
        if byChannel[channel]?.isEmpty == true { byChannel[channel] = nil }
        if agenda.count > 2 * open.count + 64 {
            agenda.keep { number, at in open[number]?.scheduled == at }
        }
    }

    // MARK: Time

    /// The hub was late: so much of everybody's wait does not count.
    package mutating func hubWasLate(from: Int64, until: Int64, least: Int64 = Lateness.leastMilliseconds) {
        lateness.note(from: from, until: until, least: least)
    }

    /// Does what is due, and returns it with everything that happened since the last call, in order.
    /// - Parameters:
    ///   - now: all receipts that had come by then were heard.
    ///   - cameAt: asked for who is due: when they last came to a channel that replays what they missed, or were on the way there.
    package mutating func advance(
        now: Int64, cameAt: (_ app: String, _ channel: String, _ user: String) -> Int64? = { _, _, _ in nil }
    ) -> [Effect] {
        withoutActuallyEscaping(cameAt) { advance(now: now, Patience(lateness: lateness, cameAt: $0)) }
    }

    private mutating func advance(now: Int64, _ patience: Patience) -> [Effect] {
        while let next = agenda.first, next.at <= now {
            agenda.removeFirst()
            guard let event = open[next.number], event.scheduled == next.at else { continue }
            event.scheduled = nil
            askForProof(event, now: now)
            push(event, now: now, patience)
            schedule(event)
        }
        for number in confirming {
            if let event = open[number] { tellConfirmations(of: event) }
        }
        confirming.removeAll(keepingCapacity: true)
        defer { effects = [] }
        return effects
    }

    /// Puts the event's next time on the agenda, when that is sooner than the one that stands there.
    private mutating func schedule(_ event: OpenEvent) {
        guard event.unsettled > 0, let next = event.nextTime, next < event.scheduled ?? .max else { return }
        event.scheduled = next
        agenda.add(next, event.opening.number)
    }

    private mutating func askForProof(_ event: OpenEvent, now: Int64) {
        let users = event.takeProofs(now: now)
        guard !users.isEmpty else { return }
        event.askedAt = now
        let opening = event.opening
        effects.append(
            .prove(number: opening.number, event: opening.event, app: opening.app, channel: opening.channel, users: users))
    }

    private mutating func push(_ event: OpenEvent, now: Int64, _ patience: Patience) {
        let due = event.takeDue(now: now, patience)
        guard !due.isEmpty else { return }
        tellConfirmations(of: event)
        // Two devices of one recipient can fall due together.
        var seen: Set<Int> = []
        let settled = due.filter(event.isSettled(userOf:)).map { event.opening.targets[$0].recipient }.filter { seen.insert($0).inserted }
        let targets = due.map { index in
            var target = event.opening.targets[index]
            target.isHubLate = event.late.contains(index)
            return target
        }
        effects.append(.push(event: event.opening.event, targets, settled: settled))
        closeIfSettled(event)
    }
}
