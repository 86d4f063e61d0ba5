import HubAPI
import HubChannels
import HubCore
import HubDelivery
import HubTesting
import HubTransport
import Logging
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

/// One process over a store that outlives it: delivery's parts as they are wired, with the test in the place of the loops.
private struct Life {
    static let channel = "presence-game-7"
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
    var desk = DecisionDesk(loopCount: 1)
    private var change: DefinitionChange?
    private var cursor: UInt64 = 0

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

    init(_ test: TestStore, _ gateway: ScriptedGateway) throws {
        self.test = test
        definitions = try DefinitionSet.load([("game.yaml", Self.yaml)])
        let logger = Logger(label: "test")
        outbox = test.outbox(gateway)
        escalator = Escalator(
            reader: AudienceReader(directory: test.store), store: test.store, outbox: outbox, time: test.clock, logger: logger)
        replayer = Replayer(store: test.store, time: test.clock, logger: logger)
        delivery = DeliveryService(
            definitions: definitions, directory: test.store, store: test.store, apps: AppDirectory([app]), outbox: outbox,
            escalator: escalator, replayer: replayer, ports: EnginePorts([Mailbox {}]), process: ProcessTag(random: 7), time: test.clock,
            logger: logger)
        tasks = [
            Task { [escalator] in await escalator.run() },
            Task { [replayer, replays] in await replayer.run { replay, _ in replays.add(replay) } },
        ]
    }

    /// As after a crash: takes up what is open, and counts everybody as on the way back.
    /// - Returns: targets that are waited for again.
    mutating func recover() async throws -> Int {
        let recovered = try await Recovery(
            reader: AudienceReader(directory: test.store), store: test.store, definitions: definitions, loopCount: 1, tokenAge: .standard,
            time: test.clock
        ).events()
        desk.attendance.booted(now: delivery.now)
        await delivery.handle(.recovered(recovered), &desk)
        try await outbox.resume()
        return recovered.map(\.opening.targets.count).reduce(0, +)
    }

    /// Subscribed, and the app says that it is on the screen.
    mutating func attach(_ index: Int) async throws {
        let connection = Self.connection(index)
        let channel = try #require(ChannelName(Self.channel))
        let report = LoopReport.attached(
            connection, SocketID(first: UInt64(index), second: 1), app: 0, channel: channel, user: Self.user(index), isBrowser: false,
            ticket: desk.attendedUpTo[0] + 1)
        for report in [report, .state(connection, .foreground)] { await handle(report) }
    }

    /// Commits the event, and puts a PING behind it.
    mutating func publish(_ word: String) async throws -> String {
        let pending = try PendingPublish("news", to: Self.channel, data: "{\"word\":\"\(word)\"}")
        var prepared = [
            try await delivery.prepare(PublishCommand(app: app, requests: [pending.request]) { pending.answer($0) }, &desk)
        ]
        await delivery.commit(&prepared, &desk)
        cursor += 1
        await handle(.probed(events: [desk.lastNumber], cursor: cursor))
        return try #require(try pending.result?.get().first?.events.first?.id)
    }

    /// The app has read all that was written to it.
    mutating func confirm(_ index: Int) async {
        await handle(.receipt(Self.connection(index), cursor: cursor, byApplication: false))
    }

    /// Whoever came since the last call is sent what they missed, and reads it.
    /// - Returns: how many were sent something.
    mutating func replay() async -> Int {
        let arrivals = desk.takeArrivals()
        for var arrival in arrivals {
            arrival.at = test.clock.wallMilliseconds
            replayer.post(arrival)
        }
        #expect(await eventually { replays.count == arrivals.count })
        let missed = replays.take()
        for replay in missed {
            let connection = replay.arrival.connection
            cursor += 1
            await handle(.replayed(connection, events: [desk.replays.announce(replay)].compactMap { $0 }, cursor: cursor))
            await handle(.receipt(connection, cursor: cursor, byApplication: false))
        }
        return missed.count
    }

    /// Carries out what is due now.
    /// - Returns: how many people fell due for a push.
    mutating func tick() -> Int {
        let effects = desk.escalation.advance(now: delivery.now)
        delivery.carryOut(effects, desk)
        return effects.reduce(0) { if case .push(_, let targets, _) = $1 { $0 + targets.count } else { $0 } }
    }

    /// What it has not written down is lost with it.
    func end() async {
        escalator.close()
        replayer.close()
        for task in tasks { await task.value }
        await outbox.close()
    }

    private mutating func handle(_ report: LoopReport) async {
        _ = await delivery.handle(report, loop: 0, &desk, &change)
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

    @Test("after a restart with 10,000 attached devices only those who stay away beyond the grace are pushed to")
    func grace() async throws {
        // Who comes back in a second.
        let step = Extent.isShort ? 80 : 400
        let away = 25 * step..<25 * step + 40
        let (count, confirmed) = (away.upperBound, away.lowerBound / 2)
        let test = try TestStore()
        try await session(of: count, in: test)

        let firstGateway = ScriptedGateway()
        var first = try Life(test, firstGateway)
        for index in 0..<count { try await first.attach(index) }
        let before = try await first.publish("before")
        for index in 0..<confirmed { await first.confirm(index) }
        #expect(first.tick() == 0)
        await first.end()
        #expect(firstGateway.sent.isEmpty)
        #expect(
            try await test.store.openFanouts(limit: 9).map(\.unsettled.count) == [count - confirmed],
            "written down before the process ended")

        test.clock.advance(seconds: 3)
        let gateway = ScriptedGateway()
        var second = try Life(test, gateway)
        #expect(try await second.recover() == count - confirmed)
        // Nobody is back yet.
        let after = try await second.publish("after")
        for seconds in 1..<DeviceState.bootGraceSeconds {
            test.clock.advance(seconds: 1)
            let back = (seconds - 1) * step..<seconds * step
            if back.upperBound <= away.lowerBound {
                for index in back { try await second.attach(index) }
                #expect(await second.replay() == back.count)
            }
            #expect(second.tick() == 0, "\(seconds) s after the start")
        }
        #expect(gateway.sent.isEmpty)
        test.clock.advance(seconds: 1)
        #expect(second.tick() == 2 * away.count)
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
