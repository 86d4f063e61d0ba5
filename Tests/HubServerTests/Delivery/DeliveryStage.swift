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

/// Delivery over a real store and scripted gateways, without a loop: who is connected, and what they read, is what the test reports.
final class DeliveryStage {
    let test: TestStore
    let gateway: ScriptedGateway
    let delivery: DeliveryService
    let app = App(index: 0, id: "1", secrets: ["k": "s"])
    let outbox: Outbox
    let live: LiveStream
    private let escalator: Escalator
    private let replayer: Replayer
    /// Messages to loop 0, if there is one.
    let loop = Mailbox<LoopMessage> {}
    private var tasks: [Task<Void, Never>] = []

    static let yaml = """
        channel: presence-game-{session}
        events:
          asked: { to: all, policy: critical, ttl: 5m, notification: { title: Asked, body: "{{word}}" } }
        """

    /// - Parameter several: makes it one of several nodes.
    init(
        _ gateway: ScriptedGateway = ScriptedGateway(), yaml: String = DeliveryStage.yaml, loops: Int = 0,
        several: (TestStore, Outbox) -> DeliveryService.Several? = { _, _ in nil }
    ) throws {
        test = try TestStore()
        self.gateway = gateway
        let logger = Logger(label: "test")
        live = LiveStream(time: test.clock)
        outbox = test.outbox(gateway, live: live)
        escalator = Escalator(
            reader: AudienceReader(directory: test.store), store: test.store, outbox: outbox, time: test.clock, logger: logger)
        replayer = Replayer(store: test.store, time: test.clock, logger: logger)
        delivery = DeliveryService(
            definitions: try DefinitionSet.load([("game.yaml", yaml)]), directory: test.store, store: test.store, apps: AppDirectory([app]),
            outbox: outbox, escalator: escalator, replayer: replayer, ports: EnginePorts(Array(repeating: loop, count: loops)),
            process: ProcessTag(random: 7), time: test.clock, several: several(test, outbox), live: live, logger: logger)
    }

    /// A session with one participant, and these devices of theirs.
    func session(_ id: String = "7", user: String = "u", devices: [String] = ["phone"]) async throws {
        _ = try await test.store.putSession(app: "1", id: id, definition: "game", joinCode: nil, attributes: [:])
        _ = try await test.store.putParticipant(app: "1", session: id, user: user, name: user, email: nil, role: nil)
        for device in devices {
            _ = try await test.store.putDevice(
                Device(
                    app: "1", user: user, id: device, platform: .android, provider: .fcm, token: "token-\(user)-\(device)",
                    environment: .production, notifications: true, registeredAt: test.clock.wallMilliseconds))
        }
    }

    /// - Parameter wasAway: whether whoever is not there counts as on the way back for a while.
    func start(wasAway: Bool = false) {
        let (delivery, escalator, replayer) = (delivery, escalator, replayer)
        tasks = [
            Task { await escalator.run() }, Task { await replayer.run { delivery.replay($0, frames: $1) } },
            Task { await delivery.run(wasAway: wasAway) },
        ]
    }

    /// Ends in order, and waits for it.
    func stop() async {
        replayer.close()
        delivery.close()
        await tasks.last?.value
        escalator.close()
        await tasks.first?.value
        await outbox.close()
    }

    func submit(_ publish: PendingPublish, purpose: PublishPurpose = .publish) {
        let isTaken = delivery.submit(PublishCommand(app: app, requests: [publish.request], purpose: purpose) { publish.answer($0) })
        #expect(isTaken)
    }

    func publish(_ publish: PendingPublish, purpose: PublishPurpose = .publish) async throws -> [PublishOutcome] {
        submit(publish, purpose: purpose)
        #expect(await eventually { publish.result != nil })
        return try #require(publish.result).get()
    }

    /// Subscribes a connection of the user `u` to the channel, as the device's.
    func connect(device: String) async throws -> ConnectionID {
        let socketID = ProcessTag(random: 7).socketID(of: ConnectionID(loop: 0, slot: 1, generation: 1))
        await delivery.bind(socketID, app: "1", user: "u", device: device, channel: ChannelName("presence-game-7"))
        return try report()
    }

    /// Subscribes a connection of the user `u` to the channel.
    func report() throws -> ConnectionID {
        let connection = ConnectionID(loop: 0, slot: 1, generation: 1)
        let socketID = ProcessTag(random: 7).socketID(of: connection)
        let channel = try #require(ChannelName("presence-game-7"))
        delivery.report([.attached(connection, socketID, app: 0, channel: channel, user: "u", isBrowser: false, ticket: 1)], loop: 0)
        return connection
    }

    /// One recipient of the event once it is as wanted; whatever it is after the time limit.
    func recipient(
        _ user: String = "u", of event: String, until isDone: (EventTrail.Recipient) -> Bool
    ) async throws -> EventTrail.Recipient? {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let found = try await test.store.trail(event: event, user: user)?.recipients.first
            if let found, isDone(found) || ContinuousClock.now > end { return found }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// A publish and what becomes of it.
final class PendingPublish: Sendable {
    let request: PublishRequest
    private let state = Mutex<Result<[PublishOutcome], PublishRefusal>?>(nil)
    var result: Result<[PublishOutcome], PublishRefusal>? { state.withLock { $0 } }
    var refusal: PublishRefusal? {
        if case .failure(let refusal) = result { refusal } else { nil }
    }

    init(_ name: String = "asked", to channel: String = "presence-game-7", data: String = #"{"word":"now"}"#) throws {
        request = PublishRequest(name: name, channels: [try #require(ChannelName(channel))], data: DataLiteral(content: data))
    }

    func answer(_ result: Result<[PublishOutcome], PublishRefusal>) {
        state.withLock { state in
            if state != nil { Issue.record("answered twice") }
            state = result
        }
    }
}
