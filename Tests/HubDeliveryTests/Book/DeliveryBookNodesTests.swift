import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Testing

/// The book beside other nodes: loops come and go, and channels change their owner.
@Suite("DeliveryBook and other nodes")
struct DeliveryBookNodesTests {
    private static let yaml = """
        channel: private-room-{user}
        events:
          asked: { to: "{user}", policy: critical, ttl: 5m, notification: { title: Asked, body: now } }
          told: { to: "{user}", policy: notify, ttl: 5m, notification: { title: Told, body: now } }
          brief: { to: "{user}", policy: notify, ttl: 8s, notification: { title: Brief, body: now } }
        """
    private static let replaying = "replay: true\n" + yaml.replacing("private-room", with: "private-desk")
    private static let channel = "private-room-u"

    /// A book with one loop of its own and a clock.
    private final class Stage {
        var book: DeliveryBook
        var now = Moment(monotonic: 1000, wall: ManualClock.start)
        private var lastPublish: UInt64 = 0

        init() throws {
            var settings = DeliveryBook.Settings(loopCount: 1)
            settings.firstNumber = 7 << 40
            book = DeliveryBook(settings, definitions: try DeliveryBookNodesTests.definitions())
        }

        func take(_ item: DeliveryBook.Item) -> [DeliveryBook.Effect] { book.take(item, .nothing, at: now) }

        /// - Parameter state: what the app says; nil for nothing.
        func attach(
            _ connection: ConnectionID, ticket: UInt64, on channel: String = DeliveryBookNodesTests.channel,
            says state: AppState? = .foreground
        ) {
            _ = take(
                .report(
                    loop: connection.loop,
                    .attached(
                        connection, socket: "\(connection)", app: "1", channel: channel, user: nil, isBrowser: false, ticket: ticket,
                        silenceMax: .seconds(25))))
            if let state { _ = take(.report(loop: connection.loop, .state(connection, state, keepsWorking: false))) }
        }

        /// Publishes and commits; the event's release.
        func publish(_ name: String = "asked") throws -> DeliveryBook.Release {
            lastPublish += 1
            let item = DeliveryBook.Item.publish(.init(id: lastPublish, app: "1", requests: [.init(name: name, channels: [channel])]))
            guard case .events(let needs)? = book.need(of: item) else { throw PublishRefusal(status: 500, sentence: "nothing is needed") }
            let device = Device(
                app: "1", user: "u", id: "d", platform: .android, provider: .fcm, token: "t", environment: .production,
                registeredAt: ManualClock.start)
            let inputs = needs.map { need in
                DeliveryBook.EventInput(
                    audience: EventAudience(
                        app: "1", definition: need.definition, placeholders: need.placeholders,
                        entries: [.init(user: "u", participant: nil, devices: [device])]),
                    content: "{}", data: .object([:]), random: Array(repeating: UInt8(lastPublish), count: 10), idTime: 5)
            }
            _ = book.take(item, .events(inputs), at: now)
            guard case .commit(let batch)? = book.commit(at: now).first else { throw DeliveryBook.notStored }
            for case .letOut(let release) in book.committed(batch, .success(batch.records.map(\.event)), at: now) { return release }
            throw DeliveryBook.notStored
        }

        /// Lets time pass; everything that falls due, while all sources answer but these.
        func pass(_ milliseconds: Int64, silent: Set<Int> = [], sources: [Int]) -> [PushPlan.Work] {
            var work: [PushPlan.Work] = []
            for _ in 0..<milliseconds / 40 {
                now.monotonic += 40
                now.wall += 40
                book.begin(at: now)
                var effects = book.end(at: now)
                for case .ask(let round) in effects {
                    book.begin(at: now)
                    for source in sources where !silent.contains(source) {
                        _ = take(.heard(round: round, source: source, newcomers: 0))
                    }
                    effects += book.end(at: now)
                }
                for case .plan(let planned) in effects { work.append(planned) }
            }
            return work
        }

        private var channel: String { DeliveryBookNodesTests.channel }
    }

    private static func definitions() throws -> DefinitionSet { try DefinitionSet.load([("room.yaml", yaml), ("desk.yaml", replaying)]) }

    private func pushes(_ work: [PushPlan.Work]) -> Int { work.count { if case .push = $0 { true } else { false } } }

    @Test("who is attached on another node is written the event, and the receipt from there counts")
    func remote() throws {
        let stage = try Stage()
        let added = stage.book.addLoops(3)
        let loops = try #require(added)
        #expect(loops == 1..<4)
        let connection = ConnectionID(loop: 2, slot: 5, generation: 1)
        stage.attach(connection, ticket: 9)
        let release = try stage.publish()
        #expect(release.attendedUpTo == [0, 0, 9, 0])
        let number = try #require(release.receipt)
        #expect(number > 7 << 40, "numbers of several books differ")
        _ = stage.take(.report(loop: 2, .pinged(events: [number], cursor: 4)))
        _ = stage.take(.report(loop: 2, .receipt(connection, cursor: 4)))
        let work = stage.pass(4000, sources: [0, 1])
        #expect(pushes(work) == 0 && stage.book.escalation.eventCount == 0)
    }

    @Test("who is told present once more has the state that is told, but for one that came over HTTP meanwhile")
    func presentAgain() throws {
        let stage = try Stage()
        _ = stage.book.addLoops(1)
        let connection = ConnectionID(loop: 1, slot: 5, generation: 1)
        stage.attach(connection, ticket: 1)
        func present(_ state: AppState) {
            _ = stage.take(
                .report(
                    loop: 1,
                    .present(
                        connection, socket: "s", app: "1", channel: Self.channel, user: nil, isBrowser: false, ticket: 1,
                        silenceMax: .seconds(25), state: state, keepsWorking: false)))
        }
        func state() -> AppState? {
            stage.book.presence(app: "1", channel: Self.channel, users: ["u"], at: stage.now)["u"]?.sockets.first?.state
        }
        // The word of its return to the screen was lost with Redis' memory.
        _ = stage.take(.report(loop: 1, .state(connection, .background, keepsWorking: false)))
        present(.foreground)
        #expect(state() == .foreground)
        _ = stage.take(.deviceState(app: "1", user: "u", device: "d", .background, keepsWorking: false))
        present(.foreground)
        #expect(state() == .background, "a page tells over HTTP that it goes, and its socket says no more")
        _ = stage.take(.report(loop: 1, .state(connection, .foreground, keepsWorking: false)))
        present(.background)
        #expect(state() == .background)
    }

    @Test("events have the ids that their publish names")
    func ids() throws {
        let stage = try Stage()
        let id = try stage.publish().eventID
        #expect(id == EventID.make(wallMilliseconds: 5, random: Array(repeating: 1, count: 10)))
    }

    @Test("the next node with the same indexes proves nothing about events of before")
    func reused() throws {
        let stage = try Stage()
        let first = stage.book.addLoops(2)
        let loops = try #require(first)
        stage.attach(ConnectionID(loop: 1, slot: 5, generation: 1), ticket: 9)
        let number = try stage.publish().receipt
        _ = stage.take(.report(loop: 1, .pinged(events: [try #require(number)], cursor: 4)))
        stage.book.removeLoops(loops, at: stage.now)
        #expect(stage.book.addLoops(2) == loops)
        // Low tickets and high cursors: what a young node with many events would say.
        let other = ConnectionID(loop: 1, slot: 5, generation: 1)
        stage.attach(other, ticket: 1)
        _ = stage.take(.report(loop: 1, .receipt(other, cursor: 900)))
        #expect(pushes(stage.pass(8000, sources: [0, 1])) == 1, "the recipient has not read the event")
    }

    @Test("a node that is gone holds up nobody, and who was on it counts as on the way back")
    func gone() throws {
        let stage = try Stage()
        let added = stage.book.addLoops(1)
        stage.attach(ConnectionID(loop: 1, slot: 5, generation: 1), ticket: 1)
        stage.book.removeLoops(try #require(added), at: stage.now)
        #expect(stage.book.presence(app: "1", channel: Self.channel, users: ["u", "v"], at: stage.now).isEmpty)
        let changes = stage.book.presence(app: "1", channel: Self.channel, users: ["u"], at: stage.now)["u"]?.changes.map(\.kind)
        #expect(changes == [.opened, .foreground, .lost])
        let release = try stage.publish()
        #expect(release.receipt != nil, "a return is awaited")
    }

    @Test("a silent node delays a push by one round")
    func silent() throws {
        let stage = try Stage()
        _ = stage.book.addLoops(1)
        stage.attach(ConnectionID(loop: 1, slot: 5, generation: 1), ticket: 1)
        _ = try stage.publish()
        let work = stage.pass(2000 + 4400, silent: [1], sources: [0, 1])
        #expect(pushes(work) == 1)
    }

    @Test("a silent node does not delay the push of an event that would expire meanwhile")
    func lastCall() throws {
        let stage = try Stage()
        _ = stage.book.addLoops(1)
        stage.attach(ConnectionID(loop: 1, slot: 5, generation: 1), ticket: 1)
        _ = try stage.publish("brief")
        #expect(pushes(stage.pass(3800, sources: [0, 1])) == 0)
        #expect(pushes(stage.pass(600, silent: [1], sources: [0, 1])) == 0, "a hearing may take a moment")
        #expect(pushes(stage.pass(400, silent: [1], sources: [0, 1])) == 1)
    }

    @Test("channels that go to another owner are given up without a settlement")
    func keeps() throws {
        let stage = try Stage()
        stage.attach(ConnectionID(loop: 0, slot: 5, generation: 1), ticket: 1)
        _ = try stage.publish()
        let effects = stage.book.keep { _, _ in false }
        guard effects.count == 1, case .plan(.abandoned) = effects[0] else {
            Issue.record("\(effects)")
            return
        }
        #expect(stage.book.escalation.eventCount == 0 && stage.book.attendance.connectionCount == 0)
        #expect(stage.pass(8000, sources: [0]).isEmpty)
    }

    @Test("an owner that takes a channel over hears who is present, and hands its open events out again")
    func takesOver() throws {
        let former = try Stage()
        let connection = ConnectionID(loop: 0, slot: 5, generation: 1)
        former.attach(connection, ticket: 3)
        let stage = try Stage()
        _ = stage.take(
            .report(
                loop: 0,
                .present(
                    connection, socket: "s", app: "1", channel: Self.channel, user: nil, isBrowser: false, ticket: 3,
                    silenceMax: .seconds(25), state: .foreground, keepsWorking: false)))
        _ = stage.take(.report(loop: 0, .presentUpTo(ticket: 8)))
        #expect(stage.book.presence(app: "1", channel: Self.channel, users: ["u"], at: stage.now)["u"]?.state == .foreground)
        let effects = stage.take(.takenOver(try recovered()))
        guard effects.count == 2, case .letOutAgain(let record, let release) = effects[1] else {
            Issue.record("\(effects)")
            return
        }
        #expect(record.id == "e" && release.eventID == "e" && release.attendedUpTo == [8])
        // The loop had let it out when its last ticket was 2: this subscription came later, and its answer proves nothing.
        let number = try #require(release.receipt)
        stage.book.wasLetOut(number, upTo: [(loop: 0, ticket: 2)], at: stage.now)
        _ = stage.take(.report(loop: 0, .pinged(events: [number], cursor: 1)))
        _ = stage.take(.report(loop: 0, .receipt(connection, cursor: 1)))
        #expect(stage.book.escalation.eventCount == 1)
        stage.book.wasLetOut(number, upTo: [(loop: 0, ticket: 3)], at: stage.now)
        _ = stage.take(.report(loop: 0, .receipt(connection, cursor: 1)))
        _ = stage.pass(200, sources: [0])
        #expect(stage.book.escalation.eventCount == 0)
    }

    @Test(
        "who came after the event, and is waited for as the channel changes its owner, is sent it as a replay where the channel replays",
        arguments: [(channel, 3, []), ("private-desk-u", 3, [["e"]]), ("private-desk-u", 2, [])] as [(String, UInt64, [[String]])])
    func replaysToNewcomers(channel: String, ticket: UInt64, replayed: [[String]]) throws {
        let stage = try Stage()
        let connection = ConnectionID(loop: 0, slot: 5, generation: 1)
        _ = stage.take(
            .report(
                loop: 0,
                .present(
                    connection, socket: "s", app: "1", channel: channel, user: nil, isBrowser: false, ticket: ticket,
                    silenceMax: .seconds(25), state: .foreground, keepsWorking: false)))
        guard case .letOutAgain(_, let release)? = stage.take(.takenOver(try recovered(on: channel))).last else {
            Issue.record("it is not let out again")
            return
        }
        stage.book.wasLetOut(try #require(release.receipt), upTo: [(loop: 0, ticket: 2)], at: stage.now)
        stage.book.begin(at: stage.now)
        var events: [[String]] = []
        for case .read(let arrival) in stage.book.end(at: stage.now) { events.append(arrival.events?.sorted() ?? ["all"]) }
        #expect(events == replayed)
    }

    @Test("an event of long ago that is taken over has room for the receipts of other nodes")
    func recoversBesideOthers() throws {
        let stage = try Stage()
        _ = stage.book.addLoops(1)
        let connection = ConnectionID(loop: 1, slot: 5, generation: 1)
        stage.attach(connection, ticket: 3)
        // Read with the loops of this process alone.
        _ = stage.take(.recovered(try recovered()))
        _ = stage.take(.report(loop: 1, .receipt(connection, cursor: 1)))
        #expect(stage.book.escalation.eventCount == 1, "nobody who is connected now was sent it")
    }

    @Test("an app that says that it is in the background is not waited for as one that may return: it reads unseen")
    func background() throws {
        let connection = ConnectionID(loop: 0, slot: 5, generation: 1)
        func word(_ state: AppState) -> DeliveryBook.Item { .report(loop: 0, .state(connection, state, keepsWorking: false)) }
        // An app that is known to be away as the event is taken over.
        for event in [DeliveryBook.Item.takenOver(try recovered("told")), .recovered(try recovered("told"))] {
            let stage = try Stage()
            stage.attach(connection, ticket: 3)
            _ = stage.take(word(.background))
            _ = stage.take(event)
            #expect(pushes(stage.pass(4900, sources: [0])) == 0, "receipts may be under way")
            #expect(pushes(stage.pass(300, sources: [0])) == 1)
        }
        // An app that says so only later; at first somebody looks from elsewhere.
        let late = try Stage()
        let other = ConnectionID(loop: 0, slot: 6, generation: 1)
        for id in [connection, other] { late.attach(id, ticket: UInt64(id.slot)) }
        _ = late.take(.takenOver(try recovered("told")))
        _ = late.take(word(.background))
        #expect(pushes(late.pass(8000, sources: [0])) == 0)
        _ = late.take(.report(loop: 0, .state(other, .background, keepsWorking: true)))
        #expect(pushes(late.pass(8000, sources: [0])) == 0)
        _ = late.take(.report(loop: 0, .state(other, .background, keepsWorking: false)))
        #expect(pushes(late.pass(5200, sources: [0])) == 1)
        // An app on the screen is waited for.
        let staying = try Stage()
        staying.attach(connection, ticket: 3)
        _ = staying.take(.takenOver(try recovered("told")))
        #expect(pushes(staying.pass(20_000, sources: [0])) == 0)
    }

    @Test("an event that was read before the app's first word, that it is in the background, was read unseen")
    func readUnseen() throws {
        let stage = try Stage()
        let connection = ConnectionID(loop: 0, slot: 5, generation: 1)
        stage.attach(connection, ticket: 3, says: nil)
        let number = try stage.publish("told").receipt
        _ = stage.take(.report(loop: 0, .pinged(events: [try #require(number)], cursor: 1)))
        _ = stage.take(.report(loop: 0, .receipt(connection, cursor: 1)))
        #expect(pushes(stage.pass(8000, sources: [0])) == 0, "it has answered")
        _ = stage.take(.report(loop: 0, .state(connection, .background, keepsWorking: false)))
        #expect(pushes(stage.pass(4900, sources: [0])) == 0, "its user may be opening it")
        #expect(pushes(stage.pass(300, sources: [0])) == 1)
    }

    private func recovered(_ name: String = "asked", on channel: String = channel) throws -> RecoveredEvent {
        let (definition, placeholders) = try #require(try Self.definitions().match(channel: channel))
        let event = try #require(definition.events[name])
        let record = EventRecord(
            id: "e", app: "1", channel: channel, name: name, data: "{}", policy: .critical, committedAt: ManualClock.start - 1000,
            expiresAt: ManualClock.start + 300_000)
        let open = OpenRecipients(
            position: 1, event: record, users: ["u"], notes: [RecipientNote(state: .live, choice: .awaited)],
            confirmed: PlaceSet(count: 1), pushed: PlaceSet(count: 1))
        let audience = EventAudience(
            app: "1", definition: definition, placeholders: placeholders, entries: [.init(user: "u", participant: nil, devices: [])])
        return try #require(
            RecoveredEvent(
                open, event: event, audience: audience, data: .object([:]), rows: [], loopCount: 1, tokenAge: .standard,
                at: Moment(monotonic: 1000, wall: ManualClock.start)))
    }
}
