internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import HubOutbox
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// Delivery's doors: every thread leaves its items here, and one `DeliveryTask` works them off in order.
final class DeliveryService: EventPort, AttendancePort {
    enum Item: Sendable {
        /// An item that the book takes as it is.
        case book(DeliveryBook.Item)
        case reports(loop: Int, [LoopReport])
        case publish(PublishCommand)
        case received(AppReceipt)
        case bind(SocketID, app: String, user: String, device: String, channel: ChannelName?, done: CheckedContinuation<Void, Never>)
        case removed(Session, users: [String], isOver: Bool, done: CheckedContinuation<Void, Never>)
        case presence(app: String, channel: String, users: [String], done: CheckedContinuation<[String: ParticipantPresence], Never>)
        case definitions(DefinitionSet, done: CheckedContinuation<Void, Never>)
        /// Missed events of somebody were read, with their frames.
        case replay(Replay, frames: [UInt8])
        /// From another node, or about several.
        case node(NodeWord)
    }

    let inbox = Inbox<Item>()
    let relief = MemoryRelief()
    private let definitions: Mutex<DefinitionSet>
    let directory: any PeopleStore
    let store: any DeliveryStore
    let apps: AppDirectory
    let reader: AudienceReader
    let outbox: Outbox
    let pushes: any PushQueue
    let escalator: Escalator
    let replayer: Replayer
    let ports: EnginePorts
    let time: any TimeSource
    let process: ProcessTag
    let tokenAge: TokenAge
    let logger: Logger
    /// Facts for whoever looks; nil: nobody can.
    let live: LiveStream?
    /// Nil: there is one node.
    let several: Several?
    let alarm = Alarm()
    let counters = Mutex(DeliveryCounters())
    /// Whether somebody is connected to a channel that has a definition; as of the last turn.
    let isAttended = Flag()

    init(
        definitions: DefinitionSet, directory: any PeopleStore, store: any DeliveryStore, apps: AppDirectory, outbox: Outbox,
        pushes: (any PushQueue)? = nil, escalator: Escalator, replayer: Replayer, ports: EnginePorts, process: ProcessTag,
        tokenAge: TokenAge = .standard, time: any TimeSource, several: Several? = nil, live: LiveStream? = nil,
        logger: Logger
    ) {
        self.definitions = Mutex(definitions)
        self.directory = directory
        reader = AudienceReader(directory: directory)
        self.store = store
        self.apps = apps
        self.outbox = outbox
        self.pushes = pushes ?? outbox
        self.several = several
        self.escalator = escalator
        self.replayer = replayer
        self.ports = ports
        self.process = process
        self.tokenAge = tokenAge
        self.time = time
        self.live = live
        self.logger = logger
    }

    // MARK: From any thread

    var currentDefinitions: DefinitionSet { definitions.withLock { $0 } }

    /// Items that wait for delivery's task.
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
        if let several, command.purpose == .forecast, !several.isOwn(command, several.nodes.ownedNow) {
            return several.nodes.forecasts.ask(command)
        }
        if let several, several.isForOthers(command) { return several.nodes.publishes.forward(command) }
        return inbox.offer(.publish(command), limit: DeliveryBook.waitingMax)
    }

    func report(_ reports: [LoopReport], loop: Int) {
        inbox.post(.reports(loop: loop, reports))
        several?.nodes.report(reports, loop: loop)
    }

    func bind(_ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?) async {
        if let several {
            return await several.nodes.orders.order(
                .signed(socket: socketID.description, app: app, user: user, device: device, channel: channel?.text), isAwaited: false)
        }
        await order { .bind(socketID, app: app, user: user, device: device, channel: channel, done: $0) }
    }

    func removed(_ session: Session, user: String) async {
        if let several { return await several.nodes.orders.order(.removed(session, users: [user], isOver: false), isAwaited: true) }
        await order { .removed(session, users: [user], isOver: false, done: $0) }
    }

    func sessionEnded(_ session: Session, users: [String]) async {
        if let several { return await several.nodes.orders.order(.removed(session, users: users, isOver: true), isAwaited: true) }
        await order { .removed(session, users: users, isOver: true, done: $0) }
    }

    /// Has something done and waits for it; nothing is done once the service is closed.
    private func order(_ item: (CheckedContinuation<Void, Never>) -> Item) async {
        await withCheckedContinuation { done in
            if !inbox.offer(item(done), limit: .max) { done.resume() }
        }
    }

    func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool) async {
        if let several {
            return await several.nodes.orders.order(
                .deviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking), isAwaited: false)
        }
        inbox.post(.book(.deviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking)))
    }

    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence] {
        guard let definition = currentDefinitions.definition(named: session.definition) else { return [:] }
        // Most definitions have one channel for all.
        var groups: [String: [String]] = [:]
        for user in users {
            if let channel = definition.pattern.channelName(session: session.id, user: user) { groups[channel, default: []].append(user) }
        }
        var presence: [String: ParticipantPresence] = [:]
        for (channel, users) in groups {
            presence.merge(await self.presence(app: app, channel: channel, users: users)) { first, _ in first }
        }
        return presence
    }

    func presence(app: String, channel: String, users: [String]) async -> [String: ParticipantPresence] {
        var presence: [String: ParticipantPresence] = [:]
        for start in stride(from: 0, to: users.count, by: Self.presenceStep) {
            let part = Array(users[start..<min(users.count, start + Self.presenceStep)])
            presence.merge(await self.presence(app: app, channel: channel, part: part)) { first, _ in first }
        }
        return presence
    }

    /// People of one question: it has to fit a message between nodes, and the task serves nobody meanwhile.
    private static let presenceStep = 1_000

    private func presence(app: String, channel: String, part users: [String]) async -> [String: ParticipantPresence] {
        if let several { return await several.nodes.presence(app: app, channel: channel, users: users) }
        return await withCheckedContinuation { done in
            if !inbox.offer(.presence(app: app, channel: channel, users: users, done: done), limit: .max) { done.resume(returning: [:]) }
        }
    }

    func rosterChanged(app: String, session: String, user: String) async {
        if let several { return await several.nodes.orders.order(.rosterChanged(app: app, session: session, user: user), isAwaited: false) }
        inbox.post(.book(.rosterChanged(app: app, session: session, user: user)))
    }

    func received(_ receipt: AppReceipt) async {
        if let several { return await several.nodes.orders.order(.received(receipt), isAwaited: false) }
        inbox.post(.received(receipt))
    }

    /// No publish is taken from now on; `run` returns when what waits is done.
    func close() {
        inbox.close()
    }

    /// Takes up events that an earlier process left open. Before the first connection comes in.
    func recover(_ events: [RecoveredEvent]) {
        for event in events { inbox.post(.book(.recovered(event))) }
    }

    /// Sends somebody what they missed.
    func replay(_ replay: Replay, frames: [UInt8]) {
        inbox.post(.replay(replay, frames: frames))
    }

    // MARK: The one task

    /// Works the inbox off until `close`. Call once.
    /// - Parameter wasAway: an earlier process had people a moment ago, so everybody counts as on the way back.
    func run(wasAway: Bool) async {
        await DeliveryTask(self).run(wasAway: wasAway)
    }

    /// Puts definitions in force for every caller of this service and for the outbox. For the delivery task.
    func putInForce(_ new: DefinitionSet) async {
        definitions.withLock { $0 = new }
        await outbox.change(to: new)
    }
}
