package import HubCore
package import HubDefinitions

/// Events that await receipts, and the pushes of targets without one.
///
/// Presence never decides alone. Everybody whom the socket might reach is a target with a due time. A receipt before that time settles the
/// target; without one the target gets a push. So no dead socket loses anybody, however it died.
///
/// A plain value without I/O or clock, owned by one thread. The caller stores and carries out the effects.
package struct Escalation {
    /// A participant whose receipt an event awaits, or one of their devices where each device stands for itself.
    package struct Target: Sendable, Equatable {
        /// The participant's user id.
        package var user: String
        /// Nil for all devices of the participant together.
        package var device: String?
        /// Policy of the recipient's variant.
        package var policy: Policy
        /// Milliseconds from the commit to the push.
        package var wait: Int64
        /// Milliseconds from the commit until the event is worthless to this target. No wait is stretched so far that the push would come
        /// too late.
        package var lifetime: Int64
        /// Place in the event's recipients.
        package var recipient: Int
        /// State at the commit: `live`, `quiet`, `grace`, …
        package var reason: String
        /// Whether the push was put off because the hub itself was late.
        package var isHubLate = false

        /// The default `lifetime` never ends.
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

    /// A committed event with its targets.
    package struct Opening: Sendable {
        /// Number by which the loops know the event.
        package var number: UInt64
        /// The event's id.
        package var event: String
        /// The app's id.
        package var app: String
        /// The channel's name.
        package var channel: String
        /// Per loop, the last ticket of the subscribers who get the frame.
        package var attendedUpTo: [UInt64]
        /// Targets; those of one user are adjacent.
        package var targets: [Target]

        /// An opening with targets in any order of users, each user's adjacent.
        package init(number: UInt64, event: String, app: String, channel: String, attendedUpTo: [UInt64], targets: [Target]) {
            self.number = number
            self.event = event
            self.app = app
            self.channel = channel
            self.attendedUpTo = attendedUpTo
            self.targets = targets
        }
    }

    /// A consequence that the caller has to carry out.
    package enum Effect: Sendable, Equatable {
        /// Push to these targets. `settled` lists the recipients without a target that still waits; only these are done once the rows are
        /// committed. Where each device stands for itself, one device of a recipient can be pushed to while another is awaited.
        case push(event: String, [Target], settled: [Int])
        /// Ask these users' connections to the channel for a sign of life, and report the cursor with `proving`.
        case prove(number: UInt64, event: String, app: String, channel: String, users: [String])
        /// These recipients confirmed the event, with the last of their waiting targets.
        case confirmed(event: String, recipients: [Int])
        /// A receipt came after its target's push fell due.
        case answered(Answered)
        /// No target of the event waits any more.
        case closed(event: String)
    }

    /// A receipt that came after its target's push fell due.
    package struct Answered: Sendable, Equatable {
        /// The event's id.
        package var event: String
        /// The channel's name.
        package var channel: String
        /// The participant's user id.
        package var user: String
        /// Place in the event's recipients.
        package var recipient: Int
        /// The target's device; nil for all devices of the participant together.
        package var target: String?
        /// The connection's device; nil if unknown.
        package var device: String?
    }

    /// A receipt of a connection.
    package struct Receipt: Sendable {
        /// The connection that answered.
        package var connection: ConnectionID
        /// Cursor up to which the connection has read.
        package var cursor: UInt64
        /// Cursor of the connection's last receipt that was judged under the same facts; 0: none was.
        package var judgedUpTo: UInt64

        /// A receipt for `Escalation.received`.
        package init(connection: ConnectionID, cursor: UInt64, judgedUpTo: UInt64 = 0) {
            self.connection = connection
            self.cursor = cursor
            self.judgedUpTo = judgedUpTo
        }
    }

    /// Reasons to postpone a push that is due.
    struct Patience {
        let lateness: Lateness
        /// Time at which a user last came, or was on the way, to a channel that replays missed events; nil if not lately.
        let cameAt: (_ app: String, _ channel: String, _ user: String) -> Int64?
    }

    /// A channel of an app.
    struct Channel: Hashable, Sendable {
        let app: String
        let name: String
    }

    private var open: [UInt64: OpenEvent] = [:]
    private var numbers: [String: UInt64] = [:]
    private var byChannel: [Channel: [UInt64]] = [:]
    /// Next times of open events, among outdated ones: an entry counts if it equals its event's `scheduled`.
    private var agenda = Agenda()
    /// Times after which open events wait for no hearing, among those of closed ones.
    private var lastCalls = Agenda()
    private var effects: [Effect] = []
    /// Numbers of events with confirmations that are not yet among the effects.
    private var confirming: [UInt64] = []
    private var lateness = Lateness()
    /// Targets of all open events, settled ones included.
    package private(set) var targetCount = 0

    /// Most open events; a publish beyond it is refused.
    package static let eventsMax = 20_000
    /// Most targets of all open events; a publish beyond it is refused.
    package static let targetsMax = 4_000_000
    /// Milliseconds that the receipt of a replay may take before the push is sent.
    package static func replayGrace(_ policy: Policy) -> Int64 { policy == .critical ? 2000 : 5000 }

    /// Loops of all nodes; an event that was decided before the last of them came is opened with room for them.
    private var loopCount = 0

    /// Without open events.
    package init() {}

    /// Number of open events.
    package var eventCount: Int { open.count }
    /// Whether an event with so many targets stays within the bounds.
    package func hasRoom(forTargets count: Int) -> Bool {
        open.count < Self.eventsMax && targetCount + count <= Self.targetsMax
    }
    /// Time at which `advance` has work next; nil if no target waits.
    package var nextDue: Int64? { agenda.first?.at }
    /// Time at which `advance` has work although a hearing is not over; nil if no target waits.
    package var nextLastCall: Int64? { lastCalls.first?.at }
    /// For tests: entries of both agendas, which outdated ones must not outnumber.
    package var agendaCount: Int { max(agenda.count, lastCalls.count) }
    /// For tests: channels with open events.
    package var channelCount: Int { byChannel.count }

    // MARK: Events

    /// Opens an event; one without targets is ignored.
    /// - Parameter now: time of the commit, in milliseconds on a clock that only grows.
    package mutating func open(_ opening: Opening, now: Int64) {
        guard !opening.targets.isEmpty else { return }
        let event = OpenEvent(opening, committedAt: now)
        event.grow(toLoops: loopCount)
        open[opening.number] = event
        numbers[opening.event] = opening.number
        byChannel[Channel(app: opening.app, name: opening.channel), default: []].append(opening.number)
        targetCount += opening.targets.count
        schedule(event)
        addLastCall(event, now: now)
    }

    /// Notes the cursor of the PING that followed the event on a loop.
    package mutating func pinged(_ number: UInt64, loop: Int, cursor: UInt64) {
        open[number]?.cursors[loop] = cursor
    }

    /// Notes the cursor of the PING to the connections that were asked for a sign of life.
    package mutating func proving(_ number: UInt64, loop: Int, cursor: UInt64) {
        guard let event = open[number] else { return }
        event.asks[loop].append((cursor: cursor, at: event.askedAt))
    }

    /// Notes that the event was written once more, to a connection that came back.
    package mutating func replayed(_ event: String, user: String, to connection: ConnectionID, cursor: UInt64, now: Int64) {
        guard let event = numbers[event].flatMap({ open[$0] }) else { return }
        var replays = event.replays[user] ?? []
        if replays.count == OpenEvent.replaysMax { replays.removeFirst() }
        replays.append(OpenEvent.Replay(connection: connection, cursor: cursor, at: now))
        event.replays[user] = replays
    }

    // MARK: Several nodes

    /// Makes room for the receipts of further loops, which were sent no open event.
    package mutating func grow(toLoops count: Int) {
        loopCount = max(loopCount, count)
        for event in open.values { event.grow(toLoops: count) }
    }

    /// Receipts of these loops prove nothing any more.
    package mutating func forget(loops: Range<Int>) {
        for event in open.values { event.forget(loops: loops) }
    }

    /// The event had been written to subscribers of the loop up to this ticket.
    package mutating func setAttended(_ number: UInt64, loop: Int, upTo ticket: UInt64) {
        open[number]?.setAttended(loop: loop, upTo: ticket)
    }

    /// The event by its number, and its users who are waited for; nil: it is not open.
    package func waiting(_ number: UInt64) -> (opening: Opening, users: Set<String>)? {
        guard let event = open[number] else { return nil }
        let waiting = event.opening.targets.indices.filter { event.phases[$0] != .settled }
        return (event.opening, Set(waiting.map { event.opening.targets[$0].user }))
    }

    /// Waits no more for events of other channels, which somebody else awaits.
    /// - Returns: the events.
    package mutating func keep(_ isKept: (_ app: String, _ channel: String) -> Bool) -> [String] {
        let leaving = open.values.filter { !isKept($0.opening.app, $0.opening.channel) }
        for event in leaving { remove(event) }
        return leaving.map(\.opening.event)
    }

    // MARK: Receipts

    /// Settles, finally or provisionally, the targets whose events a connection has read.
    ///
    /// Costs O(n) in the open events of the connection's channels.
    /// - Parameters:
    ///   - seats: the connection's present subscriptions.
    ///   - now: milliseconds on the clock of the commits.
    package mutating func received(_ receipt: Receipt, seats: [Attendance.KnownSeat], now: Int64) {
        // An app in the background reads its socket unseen, unless it said that it shows the events it reads.
        for seat in seats where seat.state != .background || seat.keepsWorking {
            for number in byChannel[Channel(app: seat.app, name: seat.channel)] ?? [] {
                // Most open events were judged by an earlier receipt.
                if let event = open[number], !event.wasJudged(before: receipt, seat) { received(receipt, seat, event, now: now) }
            }
        }
    }

    private mutating func received(_ receipt: Receipt, _ seat: Attendance.KnownSeat, _ event: OpenEvent, now: Int64) {
        let targets = event.targets(of: seat.user)
        guard targets.contains(where: event.canAnswer), let writtenAt = event.timeWritten(to: seat, readBy: receipt) else { return }
        // A late answer may come from an app that has left the screen and still answers. The event then counts as written `promptAnswer`
        // ago.
        let readAt = max(writtenAt, now - DeviceState.promptAnswer.milliseconds)
        for index in targets {
            if let device = event.opening.targets[index].device, let own = seat.device, own != device { continue }
            if event.phases[index] == .settled {
                // An app that says nothing may have read the event unseen, so its push goes.
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

    /// Notes that the app itself confirmed the event, or its notification.
    /// - Parameter device: the device that confirmed, where each device stands for itself; nil for any.
    package mutating func confirmed(event: String, user: String, device: String? = nil) {
        guard let event = numbers[event].flatMap({ open[$0] }) else { return }
        for index in event.targets(of: user) where event.phases[index] != .settled {
            if let device, let own = event.opening.targets[index].device, own != device { continue }
            confirm(index, of: event)
        }
        closeIfSettled(event)
    }

    /// Notes that the user's app is in the background, where it reads unseen: only receipts under way are waited for.
    ///
    /// Costs O(n) in the open events of the channel.
    /// - Parameters:
    ///   - device: where each device stands for itself; nil for all.
    ///   - event: the number of the only event that is meant; nil for all.
    ///   - now: milliseconds on the clock of the commits.
    package mutating func leftScreen(
        app: String, channel: String, user: String, device: String?, event: UInt64? = nil, now: Int64
    ) {
        for number in event.map({ [$0] }) ?? byChannel[Channel(app: app, name: channel)] ?? [] {
            guard let event = open[number] else { continue }
            for index in event.targets(of: user) where event.phases[index] != .settled {
                let target = event.opening.targets[index]
                if let device, let own = target.device, own != device { continue }
                event.hasten(index, to: now + Self.replayGrace(target.policy))
            }
            schedule(event)
        }
    }

    /// Whether a receipt of the user is awaited.
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
        guard event.unsettled == 0, open[event.opening.number] != nil else { return }
        tellConfirmations(of: event)
        effects.append(.closed(event: event.opening.event))
        remove(event)
    }

    private mutating func remove(_ event: OpenEvent) {
        let opening = event.opening
        open[opening.number] = nil
        // Another node may have awaited it in between, and this one again.
        if numbers[opening.event] == opening.number { numbers[opening.event] = nil }
        targetCount -= opening.targets.count
        let channel = Channel(app: opening.app, name: opening.channel)
        byChannel[channel]?.removeAll { $0 == opening.number }
        if byChannel[channel]?.isEmpty == true { byChannel[channel] = nil }
        if agenda.count > 2 * open.count + 64 {
            agenda.keep { number, at in open[number]?.scheduled == at }
        }
        if lastCalls.count > 2 * open.count + 64 { lastCalls.keep { number, _ in open[number] != nil } }
    }

    // MARK: Time

    /// Notes a delay of the hub, which no wait counts.
    package mutating func hubWasLate(from: Int64, until: Int64, least: Int64 = Lateness.leastMilliseconds) {
        lateness.note(from: from, until: until, least: least)
    }

    /// Does everything that is due, and returns all effects since the last call, in order.
    /// - Parameters:
    ///   - now: time up to which all receipts have been heard.
    ///   - clock: the time itself. An event near its end waits for no hearing: it would be worthless after it.
    ///   - cameAt: time at which a due user last came, or was on the way, to a channel that replays missed events.
    package mutating func advance(
        now: Int64, clock: Int64? = nil, cameAt: (_ app: String, _ channel: String, _ user: String) -> Int64? = { _, _, _ in nil }
    ) -> [Effect] {
        withoutActuallyEscaping(cameAt) { advance(now: now, clock: clock ?? now, Patience(lateness: lateness, cameAt: $0)) }
    }

    private mutating func advance(now: Int64, clock: Int64, _ patience: Patience) -> [Effect] {
        while let next = lastCalls.first, next.at <= clock {
            lastCalls.removeFirst()
            guard let event = open[next.number] else { continue }
            push(event, now: clock, patience)
            schedule(event)
            addLastCall(event, now: clock)
        }
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

    /// Puts the event's next time on the agenda if it is sooner than the time listed there.
    private mutating func schedule(_ event: OpenEvent) {
        guard event.unsettled > 0, let next = event.nextTime, next < event.scheduled ?? .max else { return }
        event.scheduled = next
        agenda.add(next, event.opening.number)
    }

    private mutating func addLastCall(_ event: OpenEvent, now: Int64) {
        if let last = event.lastCall { lastCalls.add(max(last, now + 1), event.opening.number) }
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
