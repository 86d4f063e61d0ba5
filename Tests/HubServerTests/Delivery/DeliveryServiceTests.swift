import HubAPI
import HubChannels
import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

@Suite("DeliveryService")
struct DeliveryServiceTests {
    private func run(_ stage: DeliveryStage, wasAway: Bool = false, _ body: () async throws -> Void) async throws {
        stage.start(wasAway: wasAway)
        do {
            try await body()
        } catch {
            await stage.stop()
            throw error
        }
        await stage.stop()
    }

    @Test("whoever asks after the end is answered, and so is who asks meanwhile")
    func asksAtTheEnd() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        let session = try #require(try await stage.test.store.session(app: "1", id: "7"))
        let answered = Atomic(0)
        let ask: @Sendable (DeliveryService) async -> Void = { delivery in
            await delivery.bind(SocketID(first: 1, second: 1), app: "1", user: "u", device: "phone", channel: nil)
            _ = await delivery.presence(app: "1", session: session, users: ["u"])
            await delivery.change(to: delivery.currentDefinitions)
            answered.add(1, ordering: .relaxed)
        }
        let delivery = stage.delivery
        stage.start()
        let meanwhile = (0..<20).map { _ in Task { await ask(delivery) } }
        await stage.stop()
        let afterwards = Task { await ask(delivery) }
        #expect(await eventually { answered.load(ordering: .relaxed) == 21 }, "\(answered.load(ordering: .relaxed)) of 21 were answered")
        #expect(!delivery.submit(PublishCommand(app: stage.app, requests: []) { _ in Issue.record("not taken, and answered") }))
        for task in meanwhile + [afterwards] { task.cancel() }
    }

    // MARK: Scheduled publishes

    @Test("a trial tells what would be refused, and leaves nothing behind")
    func trial() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        try await run(stage) { () async throws in
            _ = try await stage.publish(try PendingPublish(), purpose: .trial)
            _ = try await stage.publish(try PendingPublish("plain", to: "room"), purpose: .trial)
            let lacking = try PendingPublish(data: "{}")
            stage.submit(lacking, purpose: .trial)
            let elsewhere = try PendingPublish(to: "presence-game-8")
            stage.submit(elsewhere, purpose: .trial)
            #expect(await eventually { lacking.result != nil && elsewhere.result != nil })
            #expect(lacking.refusal?.status == 400 && lacking.refusal?.sentence.contains("word") == true)
            #expect(elsewhere.refusal?.status == 404)
        }
        #expect(try await stage.test.store.history(app: "1", channel: "presence-game-7", after: 0, limit: 9) == [])
        #expect(stage.gateway.sent.isEmpty)
    }

    @Test("whoever looks is told of joins, events, decisions, receipts, pushes and leaves, as they happen")
    func live() async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session()
        try await stage.session(user: "v", devices: ["v-phone"])
        try await run(stage) { () async throws in
            let filter = LiveFilter(app: "1", channel: "presence-game-7")
            let begin = try #require(stage.live.page(filter, after: nil))
            let connection = try stage.report()
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            await stage.delivery.received(
                AppReceipt(event: event, app: "1", channel: "presence-game-7", user: "u", device: "phone", recipient: 0))
            _ = try await stage.recipient("v", of: event) { $0.state(isOpen: false) == .pushed }
            stage.delivery.report([.disconnected(connection, .clean)], loop: 0)
            var facts: [LiveFact] = []
            #expect(
                await eventually {
                    facts = stage.live.page(filter, after: begin.cursor)?.facts ?? []
                    return Set(facts.map(\.detail.kind)) == Set(LiveFact.Kind.allCases)
                }, "\(facts)")
            func users(_ kind: LiveFact.Kind) -> [String?] { facts.filter { $0.detail.kind == kind }.map(\.user) }
            #expect(users(.join) == ["u"] && users(.leave) == ["u"] && users(.event) == [nil])
            #expect(users(.decision) == ["u", "v"] && users(.receipt) == ["u"] && users(.push).contains("v"))
            let published = facts.first { $0.detail.kind == .event }
            #expect(published?.detail == .event(name: "asked", id: event, policy: .critical, recipients: 2, sequence: 1))
        }
    }

    @Test("a forecast says what the publish then does, and leaves nothing behind")
    func forecast() async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session(devices: ["phone", "tablet"])
        try await stage.session(user: "v", devices: ["v-phone"])
        try await stage.session(user: "w", devices: [])
        try await run(stage) { () async throws in
            _ = try await stage.connect(device: "phone")
            let asked = try await stage.publish(try PendingPublish(), purpose: .forecast)
            let forecast = try #require(asked.first?.forecasts.first)
            #expect(asked.first?.events.isEmpty == true && forecast.channel == "presence-game-7" && forecast.definition == "game")
            #expect(forecast.policy == .critical && forecast.lifetimeMilliseconds == 300_000 && forecast.recipientCount == 3)
            let plain = try await stage.publish(try PendingPublish("plain", to: "room"), purpose: .forecast).first?.forecasts
            #expect(plain == [EventForecast(channel: "room", definition: nil)])
            let undefined = try await stage.publish(try PendingPublish("plain"), purpose: .forecast).first?.forecasts
            #expect(undefined == [EventForecast(channel: "presence-game-7", definition: "game")])
            let lacking = try PendingPublish(data: "{}")
            stage.submit(lacking, purpose: .forecast)
            #expect(await eventually { lacking.result != nil })
            #expect(lacking.refusal?.status == 400)
            #expect(try await stage.test.store.history(app: "1", channel: "presence-game-7", after: 0, limit: 9) == [])
            #expect(stage.gateway.sent.isEmpty && stage.delivery.counters.withLock { $0.published } == 0)

            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            let trail = try #require(try await stage.test.store.trail(event: event))
            #expect(trail.event.sequence == 1)
            #expect(forecast.recipients.map(\.user) == trail.recipients.map(\.user))
            #expect(forecast.recipients.map { $0.note } == trail.recipients.compactMap(\.note))
            #expect(forecast.recipients.map { Set($0.devices) } == [["phone", "tablet"], ["v-phone"], []])
            #expect(forecast.recipients.map { $0.waitMilliseconds == nil } == [false, true, true])
            #expect(forecast.choices == [.awaited: 1, .pushed: 1, .noDevice: 1])
        }
    }

    @Test(
        "a scheduled publish takes its row with it; one that was cancelled is not published, and keeps nobody from it who is committed with it"
    )
    func scheduled() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        let now = stage.test.clock.wallMilliseconds
        try await stage.test.store.schedule(
            ["waiting", "cancelled", "plain"].map {
                ScheduledPublish(id: $0, app: "1", deliverAt: now, request: [], createdAt: now)
            }, answers: [])
        #expect(try await stage.test.store.cancelScheduled(app: "1", id: "cancelled", now: now) == .waiting)
        let waiting = try PendingPublish(data: #"{"word":"one"}"#)
        let cancelled = try PendingPublish(data: #"{"word":"two"}"#)
        let plain = try PendingPublish("plain", to: "room")
        let usual = try PendingPublish(data: #"{"word":"three"}"#)
        // All of them before it starts: committed together.
        stage.submit(waiting, purpose: .scheduled(id: "waiting"))
        stage.submit(cancelled, purpose: .scheduled(id: "cancelled"))
        stage.submit(plain, purpose: .scheduled(id: "plain"))
        stage.submit(usual)
        try await run(stage) { () async throws in
            #expect(await eventually { [waiting, cancelled, plain, usual].allSatisfy { $0.result != nil } })
            // The answers come with the commit, the pushes after it, and stopping leaves to the next start what was not sent.
            #expect(await eventually { stage.gateway.sent.count >= 2 })
        }
        #expect(cancelled.refusal == .notWaiting)
        let history = try await stage.test.store.history(app: "1", channel: "presence-game-7", after: 0, limit: 9)
        #expect(history.map(\.data) == [#"{"word":"one"}"#, #"{"word":"three"}"#])
        let taken = try #require(try await stage.test.store.scheduled(app: "1", id: "waiting"))
        #expect(taken.state == .published && taken.outcome == history.first?.id)
        #expect(try await stage.test.store.scheduled(app: "1", id: "plain")?.state == .published)
        #expect(stage.gateway.sent.count == 2)
    }

    // MARK: Receipts that apps send

    @Test("a receipt settles who is waited for: nobody is pushed to")
    func confirmsAwaited() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        try await run(stage, wasAway: true) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            #expect(try await stage.test.store.trail(event: event)?.isOpen == true)
            stage.test.clock.advance(milliseconds: 700)
            await stage.delivery.received(stage.receipt(event))
            let confirmed = try await stage.recipient(of: event) { $0.isConfirmed }
            #expect(confirmed?.confirmedAt == ManualClock.start + 700 && confirmed?.isPushed == false)
            #expect(await eventuallyClosed(stage, event))
            // Another one changes nothing.
            stage.test.clock.advance(seconds: 40)
            await stage.delivery.received(stage.receipt(event))
            _ = try await stage.publish(try PendingPublish("plain", to: "room"))
        }
        #expect(stage.gateway.sent.isEmpty)
    }

    private func eventuallyClosed(_ stage: DeliveryStage, _ event: String) async -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            if (try? await stage.test.store.trail(event: event))??.isOpen == false { return true }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return false
    }

    @Test("a receipt of one device ends what waits to be sent to the others, unless each stands for itself", arguments: [true, false])
    func siblings(isShared: Bool) async throws {
        let yaml = DeliveryStage.yaml + (isShared ? "" : "\nsuppress_scope: device")
        let stage = try DeliveryStage(
            ScriptedGateway([.retry(after: .seconds(60), reason: "http 503"), .accepted(providerID: "p")]), yaml: yaml)
        try await stage.session(devices: ["phone", "tablet"])
        try await run(stage) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            let pushed = try await stage.recipient(of: event) { recipient in
                recipient.deliveries.allSatisfy { !$0.attempts.isEmpty }
            }
            #expect(pushed?.deliveries.map(\.record.state) == [.retry, .accepted])
            #expect(pushed?.deliveries.map(\.attempts.last?.answer) == ["http 503", "accepted"])
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            let settled = try await stage.recipient(of: event) {
                $0.isConfirmed && (!isShared || $0.deliveries.first?.record.state == .cancelled)
            }
            #expect(settled?.isConfirmed == true)
            #expect(settled?.deliveries.map(\.record.state) == [isShared ? .cancelled : .retry, .accepted])
        }
    }

    /// Three devices, whose pushes all wait for their second attempt.
    private func threeWaiting(_ yaml: String, _ body: (DeliveryStage, _ event: String) async throws -> Void) async throws {
        let later = PushOutcome.retry(after: .seconds(60), reason: "http 503")
        let stage = try DeliveryStage(ScriptedGateway([later, later, later]), yaml: yaml)
        try await stage.session(devices: ["phone", "tablet", "watch"])
        try await run(stage) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            _ = try await stage.recipient(of: event) { $0.deliveries.allSatisfy { $0.record.state == .retry } }
            try await body(stage, event)
        }
    }

    private func states(_ stage: DeliveryStage, _ event: String, cancelled: Int) async throws -> [PushState]? {
        try await stage.recipient(of: event) { $0.isConfirmed && $0.deliveries.count { $0.record.state == .cancelled } >= cancelled }?
            .deliveries.map(\.record.state)
    }

    @Test("where each device stands for itself, a receipt of one ends its own push that waits, and no other")
    func ownPush() async throws {
        try await threeWaiting(DeliveryStage.yaml + "\nsuppress_scope: device") { (stage, event) async throws in
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            #expect(try await states(stage, event, cancelled: 1) == [.retry, .cancelled, .retry])
        }
    }

    @Test("where each device stands for itself, a receipt of one ends its push also while another one is waited for")
    func ownPushBesideAwaited() async throws {
        let later = PushOutcome.retry(after: .seconds(60), reason: "http 503")
        let yaml = DeliveryStage.yaml + "\nsuppress_scope: device"
        let stage = try DeliveryStage(ScriptedGateway([later, later]), yaml: yaml, loops: 1)
        try await stage.session(devices: ["phone", "tablet"])
        try await run(stage) { () async throws in
            let connection = try await stage.connect(device: "phone")
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            _ = try await stage.recipient(of: event) { $0.deliveries.map(\.record.state) == [.retry] }
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            let ended = try await stage.recipient(of: event) { $0.deliveries.map(\.record.state) == [.cancelled] }
            #expect(ended?.deliveries.map(\.record.device) == ["tablet"] && ended?.deliveries.map(\.record.state) == [.cancelled])
            #expect(ended?.isConfirmed == false, "the phone has not said anything")
            stage.delivery.report([.disconnected(connection, .clean)], loop: 0)
        }
    }

    @Test(
        "a push that goes out in any case is ended by a receipt of the notification, and not by one of the event",
        arguments: ["both", "push_only"])
    func pushedAnyway(policy: String) async throws {
        try await threeWaiting(DeliveryStage.yaml.replacing("critical", with: policy)) { (stage, event) async throws in
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            #expect(try await states(stage, event, cancelled: 0) == [.retry, .retry, .retry])
            await stage.delivery.received(stage.receipt(event, device: "tablet", isOfNotification: true))
            #expect(try await states(stage, event, cancelled: 3) == [.cancelled, .cancelled, .cancelled])
        }
    }

    // MARK: Replays

    @Test(
        "reading a replay ends the push that waits, unless the event is told on both surfaces", arguments: ["notify", "critical", "both"],
        [true, false])
    func replayRead(policy: String, saysItFirst: Bool) async throws {
        let yaml = DeliveryStage.yaml.replacing("critical", with: policy) + "\nreplay: true"
        let stage = try DeliveryStage(ScriptedGateway([.retry(after: .seconds(60), reason: "http 503")]), yaml: yaml, loops: 1)
        try await stage.session()
        try await run(stage) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            _ = try await stage.recipient(of: event) { $0.deliveries.map(\.record.state) == [.retry] }
            let connection = try await stage.connect(device: "phone")
            let tokens = try #require(await stage.replayed()?.tokens)
            stage.delivery.report([.replayed(connection, events: tokens, cursor: 7)], loop: 0)
            // An app's first word may come behind its answer to the replay.
            let state = LoopReport.state(connection, .foreground)
            let receipt = LoopReport.receipt(connection, cursor: 7, byApplication: false)
            stage.delivery.report(saysItFirst ? [state, receipt] : [receipt, state], loop: 0)
            let expected: PushState = policy == "both" ? .retry : .cancelled
            let read = try await stage.recipient(of: event) { $0.isConfirmed && $0.deliveries.map(\.record.state) == [expected] }
            #expect(read?.isConfirmed == true && read?.deliveries.map(\.record.state) == [expected])
        }
    }

    @Test("of what is taken up together, and within one millisecond, only what was decided before somebody came is replayed to them")
    func replayOnlyBeforeTogether() async throws {
        let stage = try DeliveryStage(yaml: DeliveryStage.yaml + "\nreplay: true", loops: 1)
        try await stage.session()
        let (before, after, later) = (try PendingPublish(), try PendingPublish(), try PendingPublish())
        stage.submit(before)
        _ = try stage.report()
        stage.submit(after)
        try await run(stage) { () async throws in
            let frames = try #require(await stage.replayed()?.frames)
            stage.submit(later)
            #expect(await eventually { [before, after, later].allSatisfy { $0.result != nil } })
            let text = String(decoding: frames, as: UTF8.self)
            let ids = try [before, after].map { try #require(try $0.result?.get().first?.events.first?.id) }
            #expect(ids.map(text.contains) == [true, false])
        }
    }

    @Test("what is decided after somebody came is not replayed to them: it reaches them live")
    func replayOnlyBefore() async throws {
        let test = try TestStore()
        let replayer = Replayer(store: test.store, time: test.clock, logger: Logger(label: "test"))
        for (id, policy) in [("before", Policy.notify), ("pushed only", .pushOnly), ("after", .critical)] {
            let now = test.clock.wallMilliseconds
            let record = EventRecord(
                id: id, app: "1", channel: "presence-game-7", name: "asked", data: "{}", policy: policy, committedAt: now,
                expiresAt: now + 60_000)
            let recipients = RecipientOpening(
                snapshot: RecipientSnapshot(users: ["u"]), note: RecipientNote(state: .absent, choice: .pushed))
            _ = try await test.store.commit([EventCommit(record, recipients: recipients)])
            test.clock.advance(milliseconds: 1)
        }
        let channel = "presence-game-7"
        let connection = ConnectionID(loop: 0, slot: 1, generation: 1)
        // The replayer comes to it when the third one was committed and is on its way to the connection.
        let cameAt = test.clock.wallMilliseconds - 2
        replayer.post(Arrival(connection: connection, app: "1", channel: channel, user: "u", at: cameAt))
        replayer.post(Arrival(connection: connection, app: "1", channel: channel, user: "u", at: cameAt + 2))
        replayer.close()
        let sent = Mutex<[[String]]>([])
        await replayer.run { replay, _ in sent.withLock { $0.append(replay.items.map(\.event)) } }
        #expect(sent.withLock { $0 } == [["before"], ["before", "after"]])
    }

    @Test("whoever comes beyond the bound is not sent what they missed")
    func replaysMax() throws {
        let test = try TestStore()
        let replayer = Replayer(store: test.store, time: test.clock, logger: Logger(label: "test"))
        let arrival = Arrival(connection: ConnectionID(loop: 0, slot: 1, generation: 1), app: "1", channel: "private-a", user: "u")
        let taken = (0...Replayer.waitingMax).count { _ in replayer.post(arrival) }
        #expect(taken == Replayer.waitingMax)
    }
}

extension DeliveryStage {
    func receipt(_ event: String, device: String = "phone", isOfNotification: Bool = false) -> AppReceipt {
        AppReceipt(
            event: event, app: "1", channel: "presence-game-7", user: "u", device: device, recipient: 0, isOfNotification: isOfNotification)
    }

    /// The replay that the loop was told to write.
    func replayed() async -> (tokens: [UInt64], frames: [UInt8])? {
        var found: (tokens: [UInt64], frames: [UInt8])?
        _ = await eventually {
            var messages: [LoopMessage] = []
            self.loop.drain(into: &messages)
            for case .engine(.replay(_, _, let frames, let events)) in messages { found = (events, frames) }
            return found != nil
        }
        return found
    }
}
