import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Testing

/// The delivery task as a value, driven by hand: items in, effects out.
@Suite("DeliveryBook")
struct DeliveryBookTests {
    static let yaml = """
        channel: presence-game-{session}
        roles: [hider, seeker]
        suppress_scope: device
        replay: true
        events:
          asked: { to: all, policy: notify, ttl: 5m, notification: { title: Asked, body: now } }
        """
    static let channel = "presence-game-7"

    /// A book with one loop, a clock, and everything that would be read for it.
    final class Stage {
        var book: DeliveryBook
        var now = Moment(monotonic: 1000, wall: ManualClock.start)
        var people: [String: [String]] = ["u": ["phone", "pad"]]
        private var lastPublish: UInt64 = 0
        private var lastTicket: UInt64 = 0

        init(yaml: String = DeliveryBookTests.yaml) throws {
            book = DeliveryBook(.init(loopCount: 1), definitions: try DefinitionSet.load([("game.yaml", yaml)]))
        }

        /// Lets time pass in turns that are short enough for none to count as late.
        func pass(_ milliseconds: Int64) -> [DeliveryBook.Effect] {
            var effects: [DeliveryBook.Effect] = []
            for _ in 0..<milliseconds / 40 {
                now.monotonic += 40
                now.wall += 40
                book.begin(at: now)
                effects += turn()
            }
            return effects
        }

        func take(_ item: DeliveryBook.Item) -> [DeliveryBook.Effect] {
            var answer = DeliveryBook.Answer.nothing
            switch book.need(of: item) {
            case .events(let needs): answer = .events(needs.map(input))
            case .person(_, _, let user, _): answer = .person(session: nil, participant(user))
            case nil: break
            }
            return book.take(item, answer, at: now)
        }

        private func participant(_ user: String) -> Participant {
            Participant(app: "1", session: "7", user: user, number: 1, name: user, email: nil, role: "hider", joinedAt: 0)
        }

        private func input(_ need: DeliveryBook.EventNeed) -> DeliveryBook.EventInput {
            let entries = people.sorted { $0.key < $1.key }.map { user, devices in
                EventAudience.Entry(
                    user: user, participant: participant(user),
                    devices: devices.map {
                        Device(
                            app: "1", user: user, id: $0, platform: .android, provider: .fcm, token: "t-\($0)", environment: .production,
                            registeredAt: ManualClock.start)
                    })
            }
            return DeliveryBook.EventInput(
                audience: EventAudience(app: "1", definition: need.definition, placeholders: need.placeholders, entries: entries),
                content: "{}", data: .object([:]), random: Array(repeating: UInt8(truncatingIfNeeded: lastPublish), count: 10))
        }

        /// Subscribes a device's connection, with its app on the screen.
        func attach(_ device: String, slot: Int, user: String = "u") -> ConnectionID {
            let connection = ConnectionID(loop: 0, slot: slot, generation: 1)
            lastTicket += 1
            _ = take(.signed(connection, socket: "s\(slot)", app: "1", user: user, device: device, channel: channel))
            _ = take(
                .report(
                    loop: 0,
                    .attached(
                        connection, socket: "s\(slot)", app: "1", channel: channel, user: user, isBrowser: false, ticket: lastTicket,
                        silenceMax: .seconds(25))))
            _ = take(.report(loop: 0, .state(connection, .foreground, keepsWorking: false)))
            return connection
        }

        func publish(_ name: String = "asked") -> [DeliveryBook.Effect] {
            lastPublish += 1
            return take(.publish(.init(id: lastPublish, app: "1", requests: [.init(name: name, channels: [channel])])))
        }

        /// Commits, with this outcome.
        func commit(_ failure: DeliveryBook.CommitFailure? = nil) -> [DeliveryBook.Effect] {
            guard case .commit(let batch)? = book.commit(at: now).first else { return [] }
            return book.committed(batch, failure.map { .failure($0) } ?? .success(batch.records.map(\.event)), at: now)
        }

        /// A turn in which the loop has reported everything.
        func turn() -> [DeliveryBook.Effect] {
            var effects = book.end(at: now)
            for case .ask(let round) in effects {
                book.begin(at: now)
                _ = take(.heard(round: round, source: 0, newcomers: 0))
                effects += book.end(at: now)
            }
            return effects
        }

        private var channel: String { DeliveryBookTests.channel }
    }

    private func work(_ effects: [DeliveryBook.Effect]) -> [PushPlan.Work] {
        effects.compactMap { if case .plan(let work) = $0 { work } else { nil } }
    }

    @Test("a publish goes out after its commit and not before, and not at all where the commit fails")
    func commit() throws {
        let stage = try Stage()
        #expect(stage.publish().isEmpty)
        let failed = stage.commit(.store)
        guard failed.count == 1, case .respond(1, .failure(let refusal)) = failed[0] else {
            Issue.record("\(failed)")
            return
        }
        #expect(refusal.status == 503)
        #expect(stage.publish().isEmpty)
        let effects = stage.commit()
        guard effects.count == 3, case .letOut(let release) = effects[0], case .respond(2, .success(let ids)) = effects[1],
            case .push(let due) = effects[2]
        else {
            Issue.record("\(effects)")
            return
        }
        #expect(ids == [[release.eventID]] && release.receipt == nil)
        #expect(due.map(\.device).sorted() == ["pad", "phone"])
    }

    @Test("an end that a recipient's note tells has no row of its own")
    func noted() throws {
        let stage = try Stage()
        stage.people = ["nobody": [], "u": ["phone"], "void": []]
        #expect(stage.publish().isEmpty)
        guard case .commit(let batch)? = stage.book.commit(at: stage.now).first, let record = batch.records.first else {
            Issue.record("nothing was committed")
            return
        }
        #expect(record.recipients?.notes.map(\.choice) == [.noDevice, .pushed, .noDevice])
        #expect(record.deliveries.map(\.user) == ["u"] && record.deliveries.first?.state == .due)
    }

    @Test("a device's late receipt does not settle its person while another device is awaited")
    func answered() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        let pad = stage.attach("pad", slot: 2)
        // Cut off: awaited for ten seconds, and the phone for five.
        _ = stage.take(.report(loop: 0, .disconnected(pad, socket: "s2", mayReturn: true)))
        _ = stage.publish()
        let released = stage.commit()
        let release = try #require(released.compactMap { if case .letOut(let release) = $0 { release } else { nil } }.first)
        let (number, event) = (try #require(release.receipt), try #require(release.eventID))
        _ = stage.take(.report(loop: 0, .pinged(events: [number], cursor: 1)))
        var pushed: [String?] = []
        for case .push(_, let targets, let settled) in work(stage.pass(5_200)) {
            pushed += targets.map(\.device)
            #expect(settled.isEmpty, "the pad is awaited")
        }
        #expect(pushed == ["phone"])
        _ = stage.take(.report(loop: 0, .receipt(phone, cursor: 1)))
        let late = work(stage.pass(40))
        #expect(late.contains { if case .late = $0 { true } else { false } })
        #expect(!late.contains { if case .confirmedLate = $0 { true } else { false } })
        #expect(stage.book.escalation.isWaiting(event: event, user: "u"))
        let rest = work(stage.pass(5_200)).contains { if case .push(_, _, [0]) = $0 { true } else { false } }
        #expect(rest, "the pad is pushed to")
    }

    @Test("publishes after a reload wait until every loop has reported, and are decided then")
    func reload() throws {
        let stage = try Stage()
        _ = stage.publish()
        let reversed = Self.yaml.replacing("[hider, seeker]", with: "[seeker, hider]")
        let changing = stage.take(.definitions(try DefinitionSet.load([("game.yaml", reversed)]), waiter: 9))
        guard changing.count == 2, case .commit(let batch) = changing[0], case .definitions = changing[1] else {
            Issue.record("\(changing)")
            return
        }
        _ = stage.book.committed(batch, .success(batch.records.map(\.event)), at: stage.now)
        #expect(stage.publish().isEmpty)
        #expect(stage.commit().isEmpty)
        let read = stage.take(.report(loop: 0, .definitionsRead))
        guard read.count == 2, case .again(let held) = read[0], case .done([9]) = read[1] else {
            Issue.record("\(read)")
            return
        }
        #expect(held.map(\.id) == [2])
    }
}
