package import HubCore
package import HubDefinitions

/// The delivery task as a pure value: items come in, effects go out.
///
/// The book knows who is attached, whose receipts are awaited, which replays are on their way and which publishes are decided but not yet
/// committed. It decides who is told on which surface, and in which order that happens. The book performs no I/O and reads no clock, so the
/// simulation drives the same value that ships. One book serves a set of channels; a process may hold several. One thread owns it. The
/// book cannot be copied: a hidden copy would make the next change copy whole tables.
///
/// A turn is `begin`, one `take` per item, `commit`, and `end`. The caller carries out each call's effects, in order, before the next call.
package struct DeliveryBook: ~Copyable {
    /// Settings that stay the same for the book's life.
    package struct Settings: Sendable {
        /// Event loops of this process, which report to the book.
        package var loopCount: Int
        /// Events are numbered from here. Books of several nodes need ranges of their own.
        package var firstNumber: UInt64 = 0
        package var tokenAge: TokenAge
        /// Refuses notifications that no gateway takes; nil: none is refused.
        package var payloadCheck: (any PayloadCheck)?
        /// Part of the spread for one recipient of a large audience: 0 up to 1.
        package var fraction: @Sendable () -> Double

        package init(
            loopCount: Int, tokenAge: TokenAge = .standard, payloadCheck: (any PayloadCheck)? = nil,
            fraction: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
        ) {
            self.loopCount = loopCount
            self.tokenAge = tokenAge
            self.payloadCheck = payloadCheck
            self.fraction = fraction
        }
    }

    let settings: Settings
    /// The definitions in force.
    package internal(set) var definitions: DefinitionSet
    package internal(set) var attendance = Attendance()
    package internal(set) var escalation = Escalation()
    /// Recent changes of people's connections.
    package internal(set) var changes = PresenceLog()
    var replays = Replays()
    var unseenPushes = UnseenPushes()
    var hearing: Hearing
    /// A change of the definitions that some loop has not answered.
    var change: DefinitionChange?
    /// Decided publishes that wait for the next commit.
    var prepared: [PreparedPublish] = []
    /// A batch is with the store.
    var isCommitting = false
    /// Some connection may be barred from a channel.
    var hasExpelled = false
    /// Events that were decided in the last millisecond that had any. Milliseconds since 1970.
    var justDecided: (at: Int64, events: Set<String>) = (.min, [])
    /// Per loop, the last attendance ticket in the book. Loops of other nodes follow those of this process.
    var attendedUpTo: [UInt64]
    /// Loops of other nodes.
    var nodeLoops: [Range<Int>] = []
    /// The newest number that names an event to the loops.
    var lastNumber: UInt64 = 0
    /// Recipient lists of the newest events: events of one session mostly have the same recipients.
    private var snapshots: [RecipientSnapshot] = []
    /// Milliseconds on the monotonic clock at which the turn began.
    private(set) var begunAt: Int64 = 0
    /// Milliseconds on the monotonic clock at which the next turn is due without any item; nil: never.
    package private(set) var wakeAt: Int64?

    /// Publishes in one transaction.
    package static let commitMax = 64
    /// Publishes that may wait for their commit; one more is refused.
    package static let waitingMax = 10_000
    private static let snapshotsMax = 8

    package init(_ settings: Settings, definitions: DefinitionSet) {
        self.settings = settings
        self.definitions = definitions
        hearing = Hearing(loopCount: settings.loopCount)
        attendedUpTo = Array(repeating: 0, count: settings.loopCount)
        lastNumber = settings.firstNumber
        replays = Replays(firstToken: settings.firstNumber)
    }

    /// Whoever is not attached counts as on the way back for a while, because an earlier process had people a moment ago.
    package mutating func wasAway(at now: Moment) { attendance.booted(now: now.monotonic) }

    // MARK: A turn

    /// Begins a turn.
    package mutating func begin(at now: Moment) {
        assert(now.monotonic >= begunAt, "time goes on: \(begunAt), \(now.monotonic)")
        begunAt = now.monotonic
        note(hearing.woke(now: now.monotonic))
    }

    /// Takes one item. `need(of:)` says what the answer has to hold.
    package mutating func take(_ item: Item, _ answer: Answer = .nothing, at now: Moment) -> [Effect] {
        assert(!isCommitting, "an item came in the middle of a commit")
        switch item {
        case .publish(let publish): return take(publish, answer, at: now)
        case .report(let loop, let report):
            log(report, at: now)
            return take(report, loop: loop, answer, at: now)
        case .heard(let round, let source, let newcomers):
            let arriving = newcomers + attendance.takeReturns()
            note(hearing.answered(round, by: source, newcomers: arriving, now: begunAt))
        case .received(let receipt): return received(receipt, at: now)
        case .deviceState(let app, let user, let device, let state, let keepsWorking):
            log(state, app: app, user: user, device: device, at: now)
            attendance.setDeviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking)
            if state == .background {
                for connection in attendance.connections(app: app, user: user, device: device) { leftScreen(connection, at: now) }
            }
        case .signed(let connection, let socket, let app, let user, let device, let channel):
            guard connection.loop < attendedUpTo.count else { break }
            attendance.bind(socketID: socket, app: app, user: user, device: device, now: now.monotonic)
            return [.signed(connection, channel: channel)]
        case .removed(let session, let users, let isOver): return remove(users, from: session, isOver: isOver)
        case .rosterChanged(let app, let session, let user): return rosterChanged(app: app, session: session, user: user, answer)
        case .definitions(let new, let waiter): return change(to: new, waiter: waiter, at: now)
        case .recovered(let event): return recover(event, at: now)
        case .takenOver(let event): return takeOver(event, at: now)
        case .replay(let replay): return send(replay, at: now)
        case .tick: break
        }
        return []
    }

    /// Ends a turn after its commit: everything that has fallen due.
    /// - Parameter isLast: no loop is asked any more, and everything that is due now goes out.
    package mutating func end(at now: Moment, isLast: Bool = false) -> [Effect] {
        assert(prepared.isEmpty && !isCommitting, "the turn's publishes are committed")
        if isLast { return advance(upTo: now.monotonic, at: now) }
        // After the commit, so that a replay finds every event that was decided during the absence.
        var effects: [Effect] = replays.takeReady().flatMap { arrival -> [Effect] in
            [.comeback(.came(app: arrival.app, user: arrival.user)), .read(arrival)]
        }
        note(Hearing.Delay(from: begunAt, until: now.monotonic))
        note(hearing.giveUp(now: begunAt))
        // No later than the last complete hearing: neither a slow commit nor a busy loop may overtake receipts that have arrived. Events
        // near their end cannot wait for it.
        effects += advance(upTo: hearing.dueUpTo(now: begunAt, isWaiting: escalation.eventCount > 0), at: now)
        let isWaiting = escalation.eventCount > 0
        if let round = hearing.ask(now: now.monotonic, due: escalation.nextDue, isWaiting: isWaiting) { effects.append(.ask(round: round)) }
        wakeAt = [hearing.nextLook(due: escalation.nextDue, isWaiting: isWaiting), escalation.nextLastCall].compactMap { $0 }.min()
        return effects
    }

    /// Begins the last turn: a change of the definitions is given up, and its publishes go on.
    package mutating func close() -> [Effect] { finishChange() }

    /// The hub was late: this part of every wait does not count.
    mutating func note(_ delay: Hearing.Delay?) {
        if let delay { escalation.hubWasLate(from: delay.from, until: delay.until, least: delay.least) }
    }

    // MARK: Definitions

    private mutating func change(to new: DefinitionSet, waiter: UInt64, at now: Moment) -> [Effect] {
        // Publishes that the former definitions decided go out first.
        let effects = commit(at: now) + [.definitions(new)]
        change = DefinitionChange(from: definitions, loopCount: settings.loopCount, overtaking: change, waiter: waiter)
        definitions = new
        return effects
    }

    /// Lets the held publishes and the waiting callers of a change go on.
    mutating func finishChange() -> [Effect] {
        guard let finished = change else { return [] }
        change = nil
        return [.again(finished.held), .done(finished.waiters)]
    }

    // MARK: Identities

    /// The next name of an event between delivery and the loops.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// The recipient list in its stored form.
    mutating func snapshot(of users: [String]) -> RecipientSnapshot {
        if let index = snapshots.firstIndex(where: { $0.users == users }) { return snapshots[index] }
        let snapshot = RecipientSnapshot(users: users)
        if snapshots.count == Self.snapshotsMax { snapshots.removeFirst() }
        snapshots.append(snapshot)
        return snapshot
    }

    // MARK: Questions

    /// Presence of users in a channel. Left out are users without a connection; a question about one user alone finds recent changes, too.
    package func presence(app: String, channel: String, users: [String], at now: Moment) -> [String: ParticipantPresence] {
        var presence: [String: ParticipantPresence] = [:]
        for user in users {
            let known = attendance.presence(app: app, channel: channel, user: user)
            let changes = users.count == 1 ? changes.changes(app: app, channel: channel, user: user) : []
            if known == nil && changes.isEmpty { continue }
            presence[user] = ParticipantPresence(
                connections: known?.connections ?? 0, state: known?.state ?? .unknown,
                sockets: attendance.sockets(app: app, channel: channel, user: user, now: now.monotonic), changes: changes)
        }
        return presence
    }
}
