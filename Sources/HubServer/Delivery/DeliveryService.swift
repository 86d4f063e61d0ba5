internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import HubPush
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// Delivery's own thread of work: keeps the attendance book, decides who is told on which surface, commits what was decided, and
/// only then lets the event out.
///
/// One task takes everything in order from one inbox: attendance reports, publishes, what apps say of themselves. So a
/// publish sees exactly what was reported before it, and a role that was assigned before a publish is in force on the loop
/// when its frame arrives there. Publishes that wait together are committed together.
final class DeliveryService: EventPort, AttendancePort {
    enum Item: Sendable {
        case reports(loop: Int, [LoopReport])
        case publish(PublishCommand)
        case deviceState(app: String, user: String, device: String, AppState, keepsWorking: Bool)
        case bind(SocketID, app: String, user: String, device: String, channel: ChannelName?, done: CheckedContinuation<Void, Never>)
        /// These are no participants of the session any more; nil: the session is over.
        case removed(Session, users: [String], isOver: Bool, done: CheckedContinuation<Void, Never>)
        case presence(app: String, channel: String, users: [String], done: CheckedContinuation<[String: ParticipantPresence], Never>)
        case rosterChanged(app: String, session: String, user: String)
        case definitions(DefinitionSet, done: CheckedContinuation<Void, Never>)
        /// An app told by HTTP what it got.
        case received(AppReceipt)
        /// Events that an earlier process left open.
        case recovered([RecoveredEvent])
        /// What somebody missed was read.
        case replay(Replay, frames: [UInt8])
        /// A loop has reported all that had come when it was asked, and has so many newcomers still to let in.
        case heard(round: UInt64, newcomers: Int)
        /// Something that is waited for may be due.
        case tick
    }

    private let inbox = Inbox<Item>()
    let relief = MemoryRelief()
    private let definitions: Mutex<DefinitionSet>
    let directory: any HubDelivery.Directory
    let store: any DeliveryStore
    let apps: AppDirectory
    let outbox: Outbox
    let escalator: Escalator
    let replayer: Replayer
    let ports: EnginePorts
    let time: any TimeSource
    let process: ProcessTag
    private let tokenAge: TokenAge
    let logger: Logger
    let alarm = Alarm()
    let figures = Mutex(DeliveryCounters())
    /// Whether somebody is connected to a channel that has a definition; as of the last turn.
    let isAttended = Flag()

    /// Publishes that may wait for their commit; one more is answered 503.
    static let waitingMax = 10_000
    /// Publishes committed in one transaction.
    static let commitMax = 64

    init(
        definitions: DefinitionSet, directory: any HubDelivery.Directory, store: any DeliveryStore, apps: AppDirectory, outbox: Outbox,
        escalator: Escalator, replayer: Replayer, ports: EnginePorts, process: ProcessTag, tokenAge: TokenAge = .standard,
        time: any TimeSource,
        logger: Logger
    ) {
        self.definitions = Mutex(definitions)
        self.directory = directory
        self.store = store
        self.apps = apps
        self.outbox = outbox
        self.escalator = escalator
        self.replayer = replayer
        self.ports = ports
        self.process = process
        self.tokenAge = tokenAge
        self.time = time
        self.logger = logger
    }

    // MARK: From any thread

    var currentDefinitions: DefinitionSet { definitions.withLock { $0 } }

    /// What waits for delivery's task.
    var waitingCount: Int { inbox.count }

    func isDefined(_ channel: ChannelName) -> Bool {
        traits(channel) != nil
    }

    /// The traits of a channel's definition that loops need.
    func traits(_ channel: ChannelName) -> ChannelTraits? {
        // Patterns begin with `private-` or `presence-`; all other channels are spared the lock.
        guard channel.kind.requiresAuthorization, let match = currentDefinitions.match(channel: channel.text) else { return nil }
        return ChannelTraits(user: match.placeholders.user, membersMax: match.definition.membersMax)
    }

    /// Puts other definitions in force; returns when every loop goes by them. Nothing happens once the service is closed.
    func change(to definitions: DefinitionSet) async {
        await order { .definitions(definitions, done: $0) }
    }

    func submit(_ command: PublishCommand) -> Bool {
        inbox.offer(.publish(command), limit: Self.waitingMax)
    }

    func report(_ reports: [LoopReport], loop: Int) {
        inbox.post(.reports(loop: loop, reports))
    }

    func bind(_ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?) async {
        await order { .bind(socketID, app: app, user: user, device: device, channel: channel, done: $0) }
    }

    func removed(_ session: Session, user: String) async {
        await order { .removed(session, users: [user], isOver: false, done: $0) }
    }

    func sessionEnded(_ session: Session, users: [String]) async {
        await order { .removed(session, users: users, isOver: true, done: $0) }
    }

    /// Has something done and waits for it; nothing is done once the service is closed.
    private func order(_ item: (CheckedContinuation<Void, Never>) -> Item) async {
        await withCheckedContinuation { done in
            if !inbox.offer(item(done), limit: .max) { done.resume() }
        }
    }

    func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool) async {
        inbox.post(.deviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking))
    }

    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence] {
        guard let definition = currentDefinitions.definition(named: session.definition) else { return [:] }
        var presence: [String: ParticipantPresence] = [:]
        for user in users {
            guard let channel = definition.pattern.channelName(session: session.id, user: user) else { continue }
            let answer = await withCheckedContinuation { done in
                if !inbox.offer(.presence(app: app, channel: channel, users: [user], done: done), limit: .max) {
                    done.resume(returning: [:])
                }
            }
            presence.merge(answer) { first, _ in first }
        }
        return presence
    }

    func rosterChanged(app: String, session: String, user: String) async {
        inbox.post(.rosterChanged(app: app, session: session, user: user))
    }

    func received(_ receipt: AppReceipt) async {
        inbox.post(.received(receipt))
    }

    /// No publish is taken from now on; `run` returns when what waits is done.
    func close() {
        inbox.close()
    }

    /// Takes up events that an earlier process left open. Before the first connection comes in.
    func recover(_ events: [RecoveredEvent]) {
        inbox.post(.recovered(events))
    }

    /// Sends somebody what they missed.
    func replay(_ replay: Replay, frames: [UInt8]) {
        inbox.post(.replay(replay, frames: frames))
    }

    // MARK: The one task

    /// Works the inbox off until `close`. Call once.
    /// - Parameter wasAway: an earlier process had people a moment ago: whoever is not there yet counts as on the way back.
    func run(wasAway: Bool) async {
        var desk = DecisionDesk(loopCount: ports.count, tokenAge: tokenAge, payloadCheck: PayloadSizes())
        if wasAway { desk.attendance.booted(now: now) }
        var change: DefinitionChange?
        var prepared: [PreparedPublish] = []
        var hearing = Hearing(loopCount: ports.count)
        while let items = await inbox.next() {
            let readAt = now
            desk.note(hearing.woke(now: readAt))
            for item in items {
                switch item {
                case .heard(let round, let newcomers):
                    let arriving = newcomers + desk.attendance.takeReturns()
                    desk.note(hearing.answered(round, newcomers: arriving, now: readAt))
                case .publish(let command):
                    if change == nil {
                        await take(command, &desk, &prepared)
                    } else if change?.hold(command) == false {
                        command.respond(
                            .failure(PublishRefusal(status: 503, sentence: "too many publishes are waiting: try again in a moment")))
                    }
                case .definitions(let new, let done):
                    // What was decided by the former ones goes out first.
                    await commit(&prepared, &desk)
                    change = DefinitionChange(from: currentDefinitions, loopCount: ports.count, overtaking: change, done: done)
                    definitions.withLock { $0 = new }
                    await outbox.change(to: new)
                    for loop in 0..<ports.count { ports.post(.definitionsChanged, to: loop) }
                case .reports(let loop, let reports):
                    figures.withLock { $0.heard(reports) }
                    for report in reports where await handle(report, loop: loop, &desk, &change) {
                        await finish(&change, &desk, &prepared)
                    }
                default: await handle(item, &desk)
                }
            }
            isAttended.set(desk.attendance.connectionCount > 0)
            await commit(&prepared, &desk)
            // Behind the commit, so that what was decided while they were away is found.
            for arrival in desk.takeArrivals() { read(arrival, &desk) }
            desk.note(Hearing.Delay(from: readAt, until: now))
            desk.note(hearing.giveUp(now: readAt))
            // As late as what was heard: neither a slow commit nor a busy loop may overtake the receipts that have come.
            carryOut(advance(now: hearing.dueUpTo(now: readAt, isWaiting: desk.escalation.eventCount > 0), &desk), desk)
            noteState(desk)
            let isWaiting = desk.escalation.eventCount > 0
            if let round = hearing.ask(now: now, due: desk.escalation.nextDue, isWaiting: isWaiting) { ask(round) }
            alarm.set(at: hearing.nextLook(due: desk.escalation.nextDue, isWaiting: isWaiting), now: now) { [inbox] in inbox.post(.tick) }
        }
        // Closed in the middle of a change: what waits for it is decided by what is known.
        await finish(&change, &desk, &prepared)
        await commit(&prepared, &desk)
        carryOut(advance(now: now, &desk), desk)
    }

    /// Has read what somebody has missed.
    private func read(_ arrival: Arrival, _ desk: inout DecisionDesk) {
        outbox.comebacks.withLock { $0.came(app: arrival.app, user: arrival.user, now: now) }
        if replayer.post(arrival) { return }
        desk.replays.finished(arrival.connection, now: now)
        outbox.comebacks.withLock { $0.replays([], app: arrival.app, user: arrival.user, now: now) }
    }

    /// Has every loop report what has come to it.
    private func ask(_ round: UInt64) {
        for loop in 0..<ports.count {
            ports.post(.report { [inbox] newcomers in inbox.post(.heard(round: round, newcomers: newcomers)) }, to: loop)
        }
    }

    /// What has fallen due. Whoever has just come back to a channel that replays what they missed is waited for.
    private func advance(now: Int64, _ desk: inout DecisionDesk) -> [Escalation.Effect] {
        let (definitions, attendance) = (currentDefinitions, desk.attendance)
        // Mostly all that fall due are of one channel.
        var known: (channel: String, replays: Bool)?
        return desk.escalation.advance(now: now) { app, channel, user in
            if known?.channel != channel { known = (channel, definitions.match(channel: channel)?.definition.replays == true) }
            return known?.replays == true ? attendance.cameAt(app: app, channel: channel, user: user) : nil
        }
    }

    private func noteState(_ desk: DecisionDesk) {
        figures.withLock { figures in
            figures.openEvents = desk.escalation.eventCount
            figures.openTargets = desk.escalation.targetCount
            figures.attendedConnections = desk.attendance.connectionCount
        }
    }

    /// Milliseconds on the clock of the attendance book and of everything that is waited for.
    var now: Int64 { Int64(time.monotonicNanoseconds / 1_000_000) }

    private func take(_ command: PublishCommand, _ desk: inout DecisionDesk, _ prepared: inout [PreparedPublish]) async {
        do {
            let publish = try await prepare(command, &desk)
            if command.purpose == .trial { command.respond(.success(publish.outcomes)) } else { prepared.append(publish) }
        } catch let refusal as PublishRefusal {
            command.respond(.failure(refusal))
        } catch {
            command.respond(.failure(storeFailure(error)))
        }
        if prepared.count >= Self.commitMax { await commit(&prepared, &desk) }
    }

    private func finish(_ change: inout DefinitionChange?, _ desk: inout DecisionDesk, _ prepared: inout [PreparedPublish]) async {
        guard let finished = change else { return }
        change = nil
        for command in finished.held { await take(command, &desk, &prepared) }
        finished.finish()
    }
}
