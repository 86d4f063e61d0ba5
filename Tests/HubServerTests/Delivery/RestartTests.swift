import HubAPI
import HubChannels
import HubCore
import HubDefinitions
import HubDelivery
import HubOutbox
import HubTesting
import HubTransport
import Logging
import OutboxTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

/// One process over a store that outlives it: delivery's parts as they are wired, with the test in the place of the loops.
private final class Life {
    static let channel = "presence-game-7"
    private static let everything = PartitionSet(bits: .max)
    static let yaml = """
        channel: presence-game-{session}
        replay: true
        events:
          news: { to: all, policy: notify, ttl: 1h, notification: { title: News, body: "{{word}}" } }
        """

    let test: TestStore
    let outbox: Outbox
    let escalator: Escalator
    let replayer: Replayer
    let delivery: DeliveryService
    let definitions: DefinitionSet
    let app = App(index: 0, id: "1", secrets: ["k": "s"])
    private let replays = ReplayList()
    private let tasks: [Task<Void, Never>]
    private let recovery: Recovery
    private let task: DeliveryTask
    private let loop = Mailbox<LoopMessage> {}
    /// Whether the open events of a takeover may be read.
    private let mayRead = Flag()
    private var cursor: UInt64 = 0
    private var lastTicket: UInt64 = 0
    private var arrived = 0
    /// The number of the newest event, and the tokens of replays: what delivery told the loop.
    private var number: UInt64 = 0
    private var tokens: [ConnectionID: [UInt64]] = [:]

    private final class ReplayList: Sendable {
        private let items = Mutex<[Replay]>([])
        var count: Int { items.withLock { $0.count } }
        func add(_ replay: Replay) { items.withLock { $0.append(replay) } }
        func take() -> [Replay] {
            items.withLock { items in
                defer { items = [] }
                return items
            }
        }
    }

    /// - Parameter isNode: one of several nodes.
    init(_ test: TestStore, _ gateway: ScriptedGateway, isNode: Bool = false) throws {
        self.test = test
        definitions = try DefinitionSet.load([("game.yaml", Self.yaml)])
        let logger = Logger(label: "test")
        outbox = test.outbox(gateway)
        escalator = Escalator(
            reader: AudienceReader(directory: test.store), store: test.store, outbox: outbox, time: test.clock, logger: logger)
        replayer = Replayer(store: test.store, time: test.clock, logger: logger)
        recovery = Recovery(
            reader: AudienceReader(directory: test.store), store: test.store, definitions: definitions, loopCount: 1, tokenAge: .standard,
            time: test.clock)
        let (apps, ports) = (AppDirectory([app]), EnginePorts([loop]))
        var several: DeliveryService.Several?
        if isNode {
            let nodes = NodeDelivery(tag: (7, 0), ports: ports, apps: apps, store: test.store, time: test.clock) { Self.everything }
            let pushes = NodePushQueue(outbox: outbox, store: test.store, nodes: nil, logger: logger)
            several = DeliveryService.Several(nodes: nodes, pushes: pushes, firstNumber: 0) { [recovery, mayRead] _ in
                #expect(await eventually { mayRead.isSet })
                return try await recovery.events()
            }
        }
        delivery = DeliveryService(
            definitions: definitions, directory: test.store, store: test.store, apps: apps, outbox: outbox, escalator: escalator,
            replayer: replayer, ports: ports, process: ProcessTag(random: 7), time: test.clock, several: several, logger: logger)
        task = DeliveryTask(delivery)
        tasks = [
            Task { [escalator] in await escalator.run() },
            Task { [replayer, replays] in await replayer.run { replay, _ in replays.add(replay) } },
        ]
    }

    /// As after a crash: takes up what is open, and counts everybody as on the way back.
    /// - Returns: targets that are waited for again.
    func recover() async throws -> Int {
        let recovered = try await recovery.events()
        task.book.wasAway(at: test.clock.moment)
        for event in recovered { await turn([.book(.recovered(event))]) }
        try await outbox.resume()
        return recovered.map(\.opening.targets.count).reduce(0, +)
    }

    /// Begins to take all channels over; nobody was present. The open events are read by `readOpen`.
    func takeOver() async {
        await turn([.node(.owned(Self.everything))])
        await turn([.node(.attended(node: 0, round: 1))])
    }

    /// Has so many replays wait for the takeover.
    /// - Returns: how many do.
    func hold(_ count: Int) async -> Int? {
        for index in 0..<count {
            let isHeld = await task.hold(Arrival(connection: Self.connection(index), app: "1", channel: Self.channel, user: "u"))
            #expect(isHeld)
        }
        return task.takeovers.first?.arrivals.count
    }

    /// Ends the takeover.
    func readOpen() async throws {
        mayRead.set()
        var isTaken = false
        while !isTaken {
            let items = try #require(await delivery.inbox.next())
            isTaken = items.contains { if case .node(.taken) = $0 { true } else { false } }
            await turn(items)
        }
    }

    /// Subscribed, and the app says where it is.
    func attach(_ index: Int, says state: DeclaredAppState = .foreground) async throws {
        let connection = Self.connection(index)
        let channel = try #require(ChannelName(Self.channel))
        lastTicket += 1
        arrived += 1
        let report = LoopReport.attached(
            connection, SocketID(first: UInt64(index), second: 1), app: 0, channel: channel, user: Self.user(index), isBrowser: false,
            ticket: lastTicket)
        await turn([.reports(loop: 0, [report, .state(connection, state)])])
    }

    /// Commits the event, and puts a PING behind it.
    func publish(_ word: String) async throws -> String {
        let pending = try PendingPublish("news", to: Self.channel, data: "{\"word\":\"\(word)\"}")
        await turn([.publish(PublishCommand(app: app, requests: [pending.request]) { pending.answer($0) })])
        cursor += 1
        await turn([.reports(loop: 0, [.pinged(events: [number], cursor: cursor)])])
        return try #require(try pending.result?.get().first?.events.first?.id)
    }

    /// The app has read all that was written to it.
    func confirm(_ index: Int) async {
        await turn([.reports(loop: 0, [.receipt(Self.connection(index), cursor: cursor, byApplication: false)])])
    }

    /// Replays that have come, or are about to, and are not read.
    var replaysBegun: Int { replayer.waitingCount + replays.count }

    /// Whoever came since the last call is sent what they missed, and reads it.
    /// - Returns: how many were sent something.
    func replay() async -> Int {
        let expected = arrived
        arrived = 0
        #expect(await eventually { replays.count == expected })
        let missed = replays.take()
        for replay in missed {
            let connection = replay.arrival.connection
            await turn([.replay(replay, frames: [])])
            cursor += 1
            await turn([
                .reports(
                    loop: 0,
                    [
                        .replayed(connection, events: tokens.removeValue(forKey: connection) ?? [], cursor: cursor),
                        .receipt(connection, cursor: cursor, byApplication: false),
                    ])
            ])
        }
        return missed.count
    }

    /// Lets a second pass, in turns that are short enough for none to count as late.
    /// - Returns: how many people fell due for a push.
    func second() async -> Int {
        let before = due
        for _ in 0..<25 {
            test.clock.advance(milliseconds: 40)
            await turn([.book(.tick)])
        }
        return due - before
    }

    private var due: Int { delivery.counters.withLock { Int($0.escalations.values.reduce(0, +)) } }

    /// One turn, and the turns that the loop's answers cause.
    private func turn(_ items: [DeliveryService.Item]) async {
        await task.turn(items)
        var messages: [LoopMessage] = []
        while true {
            loop.drain(into: &messages)
            if messages.isEmpty { return }
            for message in messages {
                switch message {
                case .report(let answer): answer(0)
                case .engine(.publish(let publication)): number = publication.receipt ?? number
                case .engine(.replay(let connection, _, _, let events)): tokens[connection] = events
                default: break
                }
            }
            messages = []
            if delivery.inbox.count > 0, let items = await delivery.inbox.next() { await task.turn(items) }
        }
    }

    /// Ends the parts: unwritten work is lost.
    func end() async {
        escalator.close()
        replayer.close()
        for task in tasks { await task.value }
        await outbox.close()
    }

    static func user(_ index: Int) -> String { "u\(index)" }
    private static func connection(_ index: Int) -> ConnectionID { ConnectionID(loop: 0, slot: index, generation: 1) }
}

@Suite("Restart")
struct RestartTests {
    /// Everybody has one device.
    private func session(of count: Int, in test: TestStore) async throws {
        _ = try await test.store.putSession(app: "1", id: "7", definition: "game", joinCode: nil, attributes: [:])
        let (store, now) = (test.store, test.clock.wallMilliseconds)
        // Side by side, so that many share a transaction.
        try await withThrowingTaskGroup { group in
            for part in 0..<64 {
                group.addTask {
                    for index in stride(from: part, to: count, by: 64) {
                        let user = Life.user(index)
                        _ = try await store.putParticipant(app: "1", session: "7", user: user, name: user, email: nil, role: nil)
                        _ = try await store.putDevice(
                            Device(
                                app: "1", user: user, id: "phone", platform: .android, provider: .fcm, token: "token-\(user)",
                                environment: .production, registeredAt: now))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("who comes back during a takeover is replayed what they missed, and pushed to if they read it unseen", arguments: [false, true])
    func unseenDuringTakeover(isOnScreen: Bool) async throws {
        let test = try TestStore()
        try await session(of: 1, in: test)
        let former = try Life(test, ScriptedGateway())
        try await former.attach(0)
        _ = try await former.publish("missed")
        await former.end()

        test.clock.advance(seconds: 1)
        let gateway = ScriptedGateway()
        let owner = try Life(test, gateway, isNode: true)
        await owner.takeOver()
        try await owner.attach(0, says: isOnScreen ? .foreground : .background)
        #expect(owner.replaysBegun == 0, "the event is not awaited yet")
        try await owner.readOpen()
        #expect(await owner.replay() == 1)
        var due = 0
        for _ in 0..<DeviceState.bootGraceSeconds + 6 { due += await owner.second() }
        #expect(due == (isOnScreen ? 0 : 1))
        await owner.end()
        #expect(try await test.store.openFanouts(limit: 9).isEmpty)
    }

    @Test("a takeover holds a bounded number of replays back")
    func heldMax() async throws {
        let owner = try Life(try TestStore(), ScriptedGateway(), isNode: true)
        await owner.takeOver()
        #expect(await owner.hold(Replayer.waitingMax + 1) == Replayer.waitingMax)
        try await owner.readOpen()
        await owner.end()
    }

    @Test("after a restart with 10,000 attached devices only those who stay away beyond the grace are pushed to")
    func grace() async throws {
        // People who come back in a second.
        let step = Extent.isShort ? 80 : 400
        let away = 25 * step..<25 * step + 40
        let (count, confirmed) = (away.upperBound, away.lowerBound / 2)
        let test = try TestStore()
        try await session(of: count, in: test)

        let firstGateway = ScriptedGateway()
        let first = try Life(test, firstGateway)
        for index in 0..<count { try await first.attach(index) }
        let before = try await first.publish("before")
        for index in 0..<confirmed { await first.confirm(index) }
        #expect(await first.second() == 0)
        await first.end()
        #expect(firstGateway.sent.isEmpty)
        #expect(
            try await test.store.openFanouts(limit: 9).map(\.unsettled.count) == [count - confirmed],
            "written down before the process ended")

        test.clock.advance(seconds: 3)
        let gateway = ScriptedGateway()
        let second = try Life(test, gateway)
        #expect(try await second.recover() == count - confirmed)
        // Nobody is back yet.
        let after = try await second.publish("after")
        for seconds in 1..<DeviceState.bootGraceSeconds {
            #expect(await second.second() == 0, "\(seconds) s after the start")
            let back = (seconds - 1) * step..<seconds * step
            if back.upperBound <= away.lowerBound {
                for index in back { try await second.attach(index) }
                #expect(await second.replay() == back.count)
            }
        }
        #expect(gateway.sent.isEmpty)
        #expect(await second.second() == 2 * away.count)
        #expect(await eventually { gateway.sent.count >= 2 * away.count })
        let later = try await second.publish("later")
        #expect(await eventually { gateway.sent.count >= 3 * away.count })
        await second.end()
        let pushed = Dictionary(grouping: gateway.sent, by: \.message.event).mapValues { Set($0.map(\.target.token)) }
        let tokens = Set(away.map { "token-\(Life.user($0))" })
        #expect(pushed == [before: tokens, after: tokens, later: tokens])
        #expect(gateway.sent.count == 3 * away.count, "each once, and none of those who came back")
    }
}
