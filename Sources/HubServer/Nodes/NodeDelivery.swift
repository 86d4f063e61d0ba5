internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol
internal import Synchronization

/// This node's delivery among those of the other nodes: sends its words, and carries out what it reads. Any thread.
///
/// Words for the owner of a channel go to the delivery task, in the order in which they were read. Words about this node's own connections
/// go to the loops at once.
final class NodeDelivery: NodeDeliveryPort {
    /// Words for the delivery task.
    typealias Word = DeliveryService.NodeWord

    private struct Attending {
        let asker: UInt64
        let round: UInt64
        let partitions: PartitionSet
        var loopsLeft: Int
    }

    private struct State {
        var attending: [UInt64: Attending] = [:]
        var questions: [UInt64: @Sendable ([String: ParticipantPresence]?) -> Void] = [:]
        /// Events that were handed to the loops, with the tickets up to which their subscribers were written them.
        var letOut = RecentTable<String, [UInt64]>(countMax: 100_000, ageMax: NodeDelivery.rememberedMilliseconds)
        /// Own events that went to this node's loops alone, because their message may not have left.
        var alone = RecentTable<UInt64, Bool>(countMax: 10_000, ageMax: NodeDelivery.rememberedMilliseconds)
        var lastTicket: UInt64 = 0
        /// Run of the node that the others know.
        var greetedAs: UInt64?
        /// Nodes that have greeted lately.
        var greeted: Set<UInt64> = []
        /// Counts how often nodes were looked for that are gone. A later time ends the one before.
        var giveUps: UInt64 = 0
        /// Partitions that this node gives up, whose next owners have not been told who is present here.
        var untold = PartitionSet()
    }

    /// Milliseconds for which events that went out are remembered: longer than a successor takes to hand them out again.
    static let rememberedMilliseconds: Int64 = 60_000
    /// Reports of one message, which stay far below its bound.
    private static let reportsMax = 2_000
    /// Time for the next owners of this node's partitions to ask who is present.
    private static let askedWithin: Duration = .seconds(1)
    private static let questionMax: Duration = .seconds(3)
    /// Time for the other nodes to come to a new memory of Redis, or to greet a node that joins anew.
    private static let remainedWithin: Duration = .seconds(5)
    private static let tickEvery: Duration = .milliseconds(250)

    private let tag: (UInt64, UInt64)
    private let process: ProcessTag
    private let ports: EnginePorts
    private let apps: AppDirectory
    private let time: any TimeSource
    private let owned: @Sendable () -> PartitionSet
    private let exchange = Guarded<NodeExchange?>(nil)
    private let service = Guarded<DeliveryService?>(nil)
    let publishes: ForwardedPublishes
    let forecasts = NodeForecasts()
    let orders = NodeOrders()
    private let state = Mutex(State())
    private let isClosed = Flag()
    private let isLeaving = Flag()
    /// The delivery task decides about nothing any more.
    private let hasLeft = Flag()

    /// - Parameters:
    ///   - tag: the random bits of `process`.
    ///   - owned: the partitions that this node owns.
    init(
        tag: (UInt64, UInt64), ports: EnginePorts, apps: AppDirectory, store: any DeliveryStore, time: any TimeSource,
        owned: @escaping @Sendable () -> PartitionSet
    ) {
        self.tag = tag
        process = ProcessTag(random: tag.0, tag.1)
        self.ports = ports
        self.apps = apps
        self.time = time
        self.owned = owned
        publishes = ForwardedPublishes(store: store, time: time)
    }

    /// Names the parts that need this one. Call once, before the loops start.
    func connect(_ exchange: NodeExchange, _ service: DeliveryService) {
        self.exchange.withLock { $0 = exchange }
        self.service.withLock { $0 = service }
        publishes.connect { [weak self] publish, done in self?.send(.publish(publish), done) }
        forecasts.connect { [weak self] forecast, done in self?.send(.forecast(forecast), done) }
        orders.connect(
            NodeOrders.Ways(
                send: { [weak self] in self?.send(.order($0, ticket: $1), isKept: $0.isKept, $2) },
                carryOut: { [weak self] in self?.post(.order($0, done: $1)) }, living: { [weak self] in self?.living ?? [] }))
    }

    /// This run of the node; 0 before the start.
    var me: UInt64 { exchange.withLock { $0 }?.backplane?.node ?? 0 }
    /// The nodes that live, this one included.
    var living: Set<UInt64> { exchange.withLock { $0 }?.backplane?.living ?? [] }
    /// Partitions that this node owns now.
    var ownedNow: PartitionSet { isLeaving.isSet ? PartitionSet() : owned() }

    /// Greets the others, follows the partitions, and gives up what takes too long, until `close`. Call once, after the way's start.
    func run() async {
        var last: PartitionSet?
        while !isClosed.isSet {
            let (node, isNew) = state.withLock { [me] state in
                defer { state.greetedAs = me }
                return (state.greetedAs, state.greetedAs != me)
            }
            if isNew {
                if node != nil { giveUpLost() }
                greet(isQuestion: true)
                if node != nil { post(.restarted) }
            }
            let owned = ownedNow
            if owned != last {
                last = owned
                post(.owned(owned) { [hasLeft] in if owned.isEmpty { hasLeft.set() } })
            }
            publishes.tick()
            orders.tick()
            do { try await Tick.wait(Self.tickEvery) } catch { return }
        }
    }

    /// Tells the others of this run, and of clients that came before they knew it. A node that has stood still lets in who waited for it,
    /// before it hears that it is dead.
    private func greet(isQuestion: Bool) {
        send(.hello(hello(isQuestion: isQuestion)))
        attend(0, PartitionSet(bits: .max), asker: me)
    }

    /// The others may have declared this run dead in the lost memory. Nodes that are gone with it are declared dead by nobody.
    func startsEpoch() {
        giveUpLost()
        greet(isQuestion: false)
    }

    /// Others may be gone without a word that this node has read.
    private func giveUpLost() {
        let round = state.withLock { state in
            state.greeted = []
            state.giveUps += 1
            return state.giveUps
        }
        Task { [weak self] in
            // A node that has just greeted may not have beaten yet, or may be gone before its first beat.
            for _ in 0..<2 {
                try? await Task.sleep(for: Self.remainedWithin)
                self?.countRemaining(round)
            }
        }
    }

    private func countRemaining(_ round: UInt64) {
        let greeted = state.withLock { state -> Set<UInt64>? in
            guard state.giveUps == round else { return nil }
            defer { state.greeted = [] }
            return state.greeted
        }
        if let greeted { post(.remained(greeted.union(living))) }
    }

    func close() { isClosed.set() }

    /// Decides about nothing from now on: what is decided is stored, and publishes are for the next owners. Returns when this is done, or
    /// after a second.
    func leave() async {
        hasLeft.set(false)
        state.withLock { $0.untold = owned() }
        isLeaving.set()
        if !owned().isEmpty { await waitUntil(within: .seconds(1)) { [hasLeft] in hasLeft.isSet } }
    }

    /// Returns when the next owners of this node's partitions have been told who is present here, or after a second. A takeover waits two
    /// seconds for a node that is gone.
    func tellNextOwners() async {
        await waitUntil(within: Self.askedWithin) { [self] in state.withLock { $0.untold.isEmpty } }
    }

    // MARK: Sending

    /// - Parameter done: called once. False: the others may not read it. Nil: the message is kept until they can.
    func send(_ message: DeliveryMessage, _ done: (@Sendable (Bool) -> Void)? = nil) {
        send(message, isKept: done == nil, done ?? { _ in })
    }

    /// - Parameter isKept: the others read it as soon as they can, however long that takes.
    private func send(_ message: DeliveryMessage, isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void) {
        guard let exchange = exchange.withLock({ $0 }) else { return done(false) }
        exchange.send(delivery: message.bytes, isKept: isKept, done)
    }

    private func hello(isQuestion: Bool) -> DeliveryMessage.Hello {
        DeliveryMessage.Hello(tag: tag.0, moreTag: tag.1, loopCount: ports.count, isQuestion: isQuestion)
    }

    private func post(_ word: Word) { service.withLock { $0 }?.post(word) }

    /// Tells the other nodes what a loop reports.
    func report(_ reports: [LoopReport], loop: Int) {
        let table = apps.table
        var words: [NodeLoopReport] = []
        for report in reports {
            guard case .presentRead(let mark, let ticket) = report else {
                if let word = NodeLoopReport.named(report, table), isWanted(word) { words.append(word) }
                continue
            }
            words.append(.presentUpTo(ticket: ticket))
            tell(&words, loop: loop)
            read(mark)
        }
        tell(&words, loop: loop)
    }

    private func tell(_ words: inout [NodeLoopReport], loop: Int) {
        defer { words = [] }
        for start in stride(from: 0, to: words.count, by: Self.reportsMax) {
            send(.reports(loop: loop, Array(words[start..<min(start + Self.reportsMax, words.count)])))
        }
    }

    /// Presence is told for the partitions alone that somebody asks about.
    private func isWanted(_ word: NodeLoopReport) -> Bool {
        guard case .present(_, let app, let channel, _, _, _, _, _) = word else { return true }
        return state.withLock { state in state.attending.values.contains { $0.partitions.contains(app: app, channel: channel) } }
    }

    /// A loop has reported everybody who is present.
    private func read(_ mark: UInt64) {
        let complete = state.withLock { state -> Attending? in
            state.attending[mark]?.loopsLeft -= 1
            return state.attending[mark]?.loopsLeft == 0 ? state.attending.removeValue(forKey: mark) : nil
        }
        guard let complete else { return }
        if complete.asker == me { return post(.attended(node: me, round: complete.round)) }
        if !isLeaving.isSet { return send(.attended(asker: complete.asker, round: complete.round)) }
        send(.attended(asker: complete.asker, round: complete.round)) { [weak self] isOnItsWay in
            if isOnItsWay { self?.state.withLock { $0.untold = $0.untold.subtracting(complete.partitions) } }
        }
    }

    /// Asks every node who is present in channels of these partitions. This one answers at once. For the others the question is kept until
    /// they can read it. Without it, people on them would count as gone for as long as they stay.
    func attend(_ round: UInt64, _ partitions: PartitionSet) {
        attend(round, partitions, asker: me)
        send(.attend(round: round, partitions: partitions))
    }

    /// Answers a publish of a node.
    func answer(_ node: UInt64, _ ticket: UInt64, _ part: PublishedPart) {
        if node == me { return publishes.answered(ticket, part) }
        send(.published(asker: node, ticket: ticket, part))
    }

    /// The people in a channel, as its owner knows them.
    func presence(app: String, channel: String, users: [String]) async -> [String: ParticipantPresence] {
        await withCheckedContinuation { (answer: CheckedContinuation<[String: ParticipantPresence], Never>) in
            let ticket = state.withLock { state in
                state.lastTicket += 1
                state.questions[state.lastTicket] = { answer.resume(returning: $0 ?? [:]) }
                return state.lastTicket
            }
            let end: @Sendable () -> Void = { [weak self] in self?.state.withLock { $0.questions.removeValue(forKey: ticket) }?(nil) }
            send(.presence(ticket: ticket, app: app, channel: channel, users: users)) { if !$0 { end() } }
            Task {
                try? await Task.sleep(for: Self.questionMax)
                end()
            }
        }
    }

    // MARK: Reading

    func take(_ bytes: ArraySlice<UInt8>, of origin: UInt64) -> Bool {
        guard let message = DeliveryMessage(bytes) else { return false }
        let isOwn = origin == me
        switch message {
        case .hello(let hello):
            if isOwn { break }
            state.withLock { _ = $0.greeted.insert(origin) }
            post(.joined(node: origin, hello))
            if hello.isQuestion { send(.hello(self.hello(isQuestion: false))) }
        case .reports(let loop, let reports): if !isOwn { post(.reports(node: origin, loop: loop, reports)) }
        case .publish(let publish): post(.publish(publish, of: origin))
        case .published(let asker, let ticket, let part): if asker == me { publishes.answered(ticket, part) }
        case .event(let event): if !isOwn || !wasAlone(event) { letOut(event, of: origin) }
        case .wasLetOut(let number, let tickets): post(.wasLetOut(node: origin, number: number, tickets: tickets))
        case .connections(let node, let work): if node == me { carryOut(work) }
        case .ask(let round): if !isOwn { ask(round, asker: origin) }
        case .heard(let asker, let round, let newcomers):
            if asker == me { post(.heard(node: origin, round: round, newcomers: newcomers)) }
        case .attend(let round, let partitions):
            publishes.sendAgain(partitions)
            if !isOwn { attend(round, partitions, asker: origin) }
        case .attended(let asker, let round): if asker == me { post(.attended(node: origin, round: round)) }
        case .order(let order, let ticket):
            post(
                .order(order) { [weak self] in
                    guard let self, let ticket else { return }
                    if isOwn { orders.done(ticket, node: origin) } else { send(.done(asker: origin, ticket: ticket)) }
                })
        case .done(let asker, let ticket): if asker == me { orders.done(ticket, node: origin) }
        case .presence(let ticket, let app, let channel, let users):
            post(
                .presence(app: app, channel: channel, users: users) { [weak self] present in
                    self?.send(.present(asker: origin, ticket: ticket, present))
                })
        case .present(let asker, let ticket, let present):
            if asker == me { state.withLock { $0.questions.removeValue(forKey: ticket) }?(present) }
        case .forecast(let forecast):
            post(
                .forecast(forecast) { [weak self] answer in
                    self?.send(.forecasted(asker: origin, ticket: forecast.ticket, answer.fitting))
                })
        case .forecasted(let asker, let ticket, let answer): if asker == me { forecasts.answered(ticket, answer) }
        case .pushes(let events): if !isOwn { post(.pushes(events: events)) }
        }
        return true
    }

    func gap(_ node: UInt64) { post(.gap(node: node)) }

    /// Has nodes declared dead that have not come to the present memory.
    func giveUp(_ nodes: Set<UInt64>) { exchange.withLock { $0 }?.backplane?.giveUp(nodes) }

    func died(_ node: UInt64) {
        post(.left(node: node))
        orders.done(nil, node: node)
    }

    private func ask(_ round: UInt64, asker: UInt64) {
        let left = Guarded((loops: ports.count, newcomers: 0))
        for loop in 0..<ports.count {
            let answer: @Sendable (Int) -> Void = { [weak self] newcomers in
                let (loops, sum) = left.withLock { left in
                    left.loops -= 1
                    left.newcomers += newcomers
                    return left
                }
                if loops == 0 { self?.send(.heard(asker: asker, round: round, newcomers: sum)) }
            }
            ports.post(.report(answer), to: loop)
        }
    }

    private func attend(_ round: UInt64, _ partitions: PartitionSet, asker: UInt64) {
        let mark = state.withLock { [ports] state in
            state.lastTicket += 1
            state.attending[state.lastTicket] = Attending(
                asker: asker, round: round, partitions: partitions, loopsLeft: ports.count)
            return state.lastTicket
        }
        for loop in 0..<ports.count { ports.post(.reportPresent(mark: mark), to: loop) }
    }

    private func carryOut(_ work: DeliveryMessage.ConnectionWork) {
        switch work {
        case .roles(let connection, let channel, let roles):
            guard let name = ChannelName(channel), connection.loop < ports.count else { return }
            let audience = self.roles(roles, of: channel)
            ports.post(.audience(connection, channel: name, audience), to: connection.loop)
        case .replay(let connection, let channel, let token, let frames):
            guard let name = ChannelName(channel), connection.loop < ports.count else { return }
            ports.post(.replay(connection, channel: name, frames: frames, events: [token]), to: connection.loop)
        case .prove(let event, let connections):
            for (loop, connections) in Dictionary(grouping: connections, by: \.loop) where loop < ports.count {
                ports.post(.prove(event: event, connections), to: loop)
            }
        }
    }

    /// - Parameter names: nil: a person without a role.
    private func roles(_ names: [String?]?, of channel: String) -> RoleSet {
        guard let names, let definition = service.withLock({ $0 })?.currentDefinitions.match(channel: channel)?.definition else {
            return .unmatched
        }
        return names.reduce(into: []) { $0.formUnion(RoleSet(role: $1, in: definition)) }
    }

    // MARK: Events

    private func wasAlone(_ event: ReleasedEvent) -> Bool { state.withLock { $0.alone[event.serial] } == true }

    /// Hands an own event to this node's loops, because the way is interrupted. Others may read it later all the same.
    func letOutAlone(_ event: ReleasedEvent) {
        state.withLock { $0.alone.set(true, for: event.serial, now: time.moment.monotonic) }
        letOut(event, of: me)
    }

    /// - Parameter owner: the node that sent the event.
    private func letOut(_ event: ReleasedEvent, of owner: UInt64) {
        guard let app = apps.app(id: event.app), let channel = ChannelName(event.channel) else { return }
        let node = me
        var tickets = event.attendedUpTo.map { $0[node] ?? Array(repeating: 0, count: ports.count) }
        if let known = tickets, known.count != ports.count { tickets = Array(repeating: 0, count: ports.count) }
        var isWritten = false
        if let id = event.eventID {
            let now = time.moment.monotonic
            let known = state.withLock { state -> [UInt64]? in
                if event.isAgain, let known = state.letOut[id] { return known }
                state.letOut.set(tickets ?? [], for: id, now: now)
                return nil
            }
            if let known, !known.isEmpty {
                (isWritten, tickets) = (true, known)
                if let number = event.receipt {
                    // The own task has to hear it before a receipt, which takes no way through Redis.
                    if owner == node {
                        post(.wasLetOut(node: node, number: number, tickets: known))
                    } else {
                        send(.wasLetOut(number: number, tickets: known))
                    }
                }
            }
        }
        let roles = event.roles.map { self.roles($0, of: event.channel) } ?? .everybody
        let frame =
            isWritten ? [] : Frame.text(ServerEvent.event(name: event.name, channel: channel, data: event.data, eventID: event.eventID))
        // An event for some roles must not meet the next subscriber.
        let isCached = !isWritten && channel.kind.isCache && event.roles == nil
        let publication = Publication(
            app: app.index, frames: OneOrMany(one: ChannelFrame(channel, frame)), excluded: event.excluded.flatMap(process.connection(of:)),
            audience: roles, attendedUpTo: tickets, receipt: event.receipt, cacheOrder: isCached ? apps.nextOrder() : nil, way: .stored)
        for loop in 0..<ports.count { ports.post(.publish(publication), to: loop) }
    }
}

extension AppState {
    /// Nil: the app has said nothing.
    init(_ declared: DeclaredAppState?) {
        switch declared {
        case .foreground: self = .foreground
        case .background: self = .background
        case nil: self = .unknown
        }
    }
}

extension Departure {
    /// Whether the device counts as on its way back.
    var mayReturn: Bool { self == .abnormal || self == .server }
}
