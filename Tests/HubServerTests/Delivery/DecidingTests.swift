import HubCore
import HubDefinitions
import HubPush
import HubTesting
import PusherProtocol
import Testing

@testable import HubDelivery

/// Deciding over a definition with roles, with the gateways' own limits.
@Suite("Deciding")
struct DecidingTests {
    private static let yaml = """
        channel: presence-game-{session}
        roles: [hider, seeker]
        events:
          asked:
            to: hider
            policy: critical
            ttl: 5m
            notification: { title: Asked, body: "A {{radius}} km question" }
          greeted:
            to: all
            policy: notify
            notification: { title: Hello, body: "{{participant.name}}, {{word}}" }
          offer:
            to: all
            policy: push_only
            notification: { title: Offer, body: now }
          tick: { to: all, policy: realtime_only }
          paid:
            to: all
            policy: notify
            fields: { amount: decimal }
            notification: { title: Paid, body: "{{amount}} received" }
            locales: { de: { body: "{{amount}} erhalten" } }
            data: { memo: "{{#memo}}{{memo}}{{/memo}}" }
        """
    private let channel = "presence-game-7"
    private let clock = ManualClock()

    private func publish(
        _ event: String, data: String, present: [(user: String, slot: Int)] = [], excluded: ConnectionID? = nil,
        people: [(user: String, role: String)] = [("h", "hider"), ("s", "seeker")], fraction: Double = 0
    ) throws -> DeliveryBook.Decided {
        let set = try DefinitionSet.load([("game.yaml", Self.yaml)])
        let (definition, placeholders) = try #require(set.match(channel: channel))
        var book = DeliveryBook(.init(loopCount: 1, payloadCheck: PayloadSizes(), fraction: { fraction }), definitions: set)
        for (user, slot) in present {
            book.attendance.attach(ConnectionID(loop: 0, slot: slot, generation: 1), app: "1", channel: channel, user: user, device: nil)
        }
        let entries = people.map { user, role in
            let participant = Participant(app: "1", session: "7", user: user, number: 1, name: user, email: nil, role: role, joinedAt: 0)
            let device = Device(
                app: "1", user: user, id: "d", platform: .android, provider: .fcm, token: "t-\(user)", environment: .production,
                locale: user == "h" ? "de-CH" : nil, registeredAt: clock.wallMilliseconds)
            return EventAudience.Entry(user: user, participant: participant, devices: [device])
        }
        let session = Session(app: "1", id: "7", number: 7, definition: "game", joinCode: nil, attributes: [:], createdAt: 0)
        let audience = EventAudience(app: "1", definition: definition, placeholders: placeholders, session: session, entries: entries)
        let input = DeliveryBook.EventInput(
            audience: audience, content: data, data: DataLiteral(content: data).contentValue ?? .null,
            random: Array(repeating: 7, count: 10))
        return try book.decide(
            try #require(definition.events[event]), input, channel: channel, excluded: excluded,
            at: Moment(monotonic: 0, wall: clock.wallMilliseconds))
    }

    @Test("an event for one role goes to that role only, on both surfaces")
    func role() throws {
        let decided = try publish("asked", data: #"{"radius":3}"#)
        #expect(decided.deliveries.map(\.user) == ["h"])
        #expect(decided.deliveries.first?.message?.body == "A 3 km question")
        #expect(decided.roles == RoleSet.role(0).union(decided.roles) && decided.roles.isDisjoint(with: [.role(1), .unmatched]))
    }

    @Test("who is there gets the socket, and time to confirm it; who is not gets a push at once")
    func surfaces() throws {
        let decided = try publish("greeted", data: #"{"word":"hi"}"#, present: [("h", 1)])
        #expect(decided.deliveries.map(\.user) == ["s"] && decided.deliveries.first?.state == .due && decided.roles == .everybody)
        #expect(
            decided.targets == [
                Escalation.Target(user: "h", device: nil, policy: .notify, wait: 5000, lifetime: 14_400_000, recipient: 0, reason: "live")
            ])
        #expect(decided.recipients == ["h", "s"])
        #expect(decided.notes == [RecipientNote(state: .live, choice: .awaited), RecipientNote(state: .absent, choice: .pushed)])
    }

    @Test(
        "a big audience's deadlines are spread, never later than the policy's and never less than half of it",
        arguments: [0, 0.5, 0.999_999])
    func spread(fraction: Double) throws {
        let people = (0...Policy.spreadRecipientsMin).map { (user: "u\($0)", role: "hider") }
        let present = people.enumerated().map { (user: $1.user, slot: $0) }
        for (event, data, wait, width) in [("asked", #"{"radius":3}"#, 2000.0, 500.0), ("greeted", #"{"word":"hi"}"#, 5000, 2500)] {
            let decided = try publish(event, data: data, present: present, people: people, fraction: fraction)
            #expect(decided.targets.count == people.count)
            #expect(Set(decided.targets.map(\.wait)) == [Int64(wait - width * fraction)])
            let few = try publish(event, data: data, present: present, people: Array(people.dropLast()), fraction: fraction)
            #expect(Set(few.targets.map(\.wait)) == [Int64(wait)])
        }
    }

    @Test("a value that the data lacks is a 400 that names it, whoever is there", arguments: ["asked", "greeted"])
    func missingValue(event: String) throws {
        for present in [[], [("h", 1), ("s", 2)]] {
            let refusal = #expect(throws: PublishRefusal.self) { try publish(event, data: "{}", present: present) }
            #expect(refusal?.status == 400)
            #expect(refusal?.sentence.contains(event == "asked" ? "radius" : "word") == true, "\(refusal?.sentence ?? "")")
        }
    }

    @Test("each device gets its own language")
    func languages() throws {
        let decided = try publish("paid", data: #"{"amount":"2.50"}"#)
        #expect(decided.deliveries.map { $0.message?.body } == ["2.50 erhalten", "2.50 received"])
    }

    @Test("a field of the wrong form, or data that fits no gateway, is a 400 that says so")
    func fieldsAndSizes() throws {
        for (data, word) in [
            (#"{}"#, "\"amount\" is missing"), (#"{"amount":2.5}"#, "\"amount\" in the published data is not a decimal"),
            ("{\"amount\":\"1\",\"memo\":\"\(String(repeating: "x", count: 4000))\"}", "more than FCM's 4096 bytes"),
        ] {
            let refusal = #expect(throws: PublishRefusal.self) { try publish("paid", data: data) }
            #expect(refusal?.status == 400 && refusal?.sentence.contains("paid") == true)
            #expect(refusal?.sentence.contains(word) == true, "\(refusal?.sentence ?? "")")
        }
    }

    @Test("whoever published over a socket of their own is not told by push")
    func actor() throws {
        let excluded = ConnectionID(loop: 0, slot: 1, generation: 1)
        let decided = try publish("offer", data: "{}", present: [("h", 1)], excluded: excluded)
        #expect(decided.deliveries.map(\.user) == ["s"] && decided.targets.isEmpty)
        #expect(decided.notes.first?.choice == .actor)
    }

    @Test("push_only has no socket, realtime_only has no record")
    func policies() throws {
        #expect(try publish("offer", data: "{}").roles.isDisjoint(with: [.role(0), .role(1), .unmatched]))
        let tick = try publish("tick", data: "not json")
        #expect(tick.event == nil && tick.deliveries.isEmpty && tick.roles == .everybody)
    }
}
