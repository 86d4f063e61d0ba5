import HubCore
import HubDefinitions
import HubTesting
import Testing

@testable import HubDelivery

@Suite("PushPlan")
struct PushPlanTests {
    private static let yaml = """
        channel: presence-game-{session}
        events:
          asked: { to: all, policy: critical, ttl: 60s, notification: { title: Asked, body: now } }
        """

    @Test(
        "a wall clock that is set after a publish was decided does not change how long its push is worth telling",
        arguments: [-7_200_000, 0, 7_200_000] as [Int64])
    func clockStep(step: Int64) throws {
        let set = try DefinitionSet.load([("game.yaml", Self.yaml)])
        let (definition, placeholders) = try #require(set.match(channel: "presence-game-7"))
        let decided = Moment(monotonic: 1_000, wall: ManualClock.start)
        let record = EventRecord(
            id: "e", app: "1", channel: "presence-game-7", name: "asked", data: "{}", policy: .critical, committedAt: decided.wall,
            expiresAt: decided.wall + 60_000)
        let context = PushContext(
            record: record, readAt: decided, definition: definition, event: try #require(definition.events["asked"]),
            placeholders: placeholders, data: .object([:]))
        let device = Device(
            app: "1", user: "u", id: "phone", platform: .android, provider: .fcm, token: "t", environment: .production,
            registeredAt: decided.wall)
        let audience = EventAudience(
            app: "1", definition: definition, placeholders: placeholders,
            entries: [EventAudience.Entry(user: "u", participant: nil, devices: [device])])
        let target = Escalation.Target(user: "u", device: nil, policy: .critical, wait: 2_000, recipient: 0, reason: "live")
        // The clock was set before the plan heard of the event at all.
        for (passed, state) in [(2_000, PushState.due), (61_000, .expired)] as [(Int64, PushState)] {
            var plan = PushPlan()
            let now = Moment(monotonic: decided.monotonic + passed, wall: decided.wall + passed + step)
            plan.begin()
            plan.take(.opened(context), at: now)
            plan.take(.push(event: "e", [target], settled: [0]), audience, at: now)
            let taken = plan.takeWrite()
            let write = try #require(taken)
            #expect(write.rows.map(\.state) == [state])
            if state == .due { #expect(write.rows.first?.message?.expiresAt == now.wall + 58_000) }
        }
    }

    @Test("rosters are read once per turn, and anew in the next")
    func rosters() throws {
        let set = try DefinitionSet.load([("game.yaml", Self.yaml)])
        let (definition, placeholders) = try #require(set.match(channel: "presence-game-7"))
        let now = Moment(monotonic: 1_000, wall: ManualClock.start)
        var plan = PushPlan()
        for id in ["a", "b"] {
            let record = EventRecord(
                id: id, app: "1", channel: "presence-game-7", name: "asked", data: "{}", policy: .critical, committedAt: now.wall,
                expiresAt: now.wall + 60_000)
            plan.take(
                .opened(
                    PushContext(
                        record: record, readAt: now, definition: definition, event: try #require(definition.events["asked"]),
                        placeholders: placeholders, data: .object([:]))), at: now)
        }
        func push(_ event: String) -> PushPlan.Work {
            .push(
                event: event, [Escalation.Target(user: "u", device: nil, policy: .critical, wait: 1, recipient: 0, reason: "live")],
                settled: [0])
        }
        #expect(plan.need(of: push("a"))?.record.id == "a")
        plan.take(push("a"), nil, at: now)
        #expect(plan.need(of: push("b")) == nil, "the session is known to be gone")
        let taken = plan.takeWrite()
        #expect(taken?.rows.map(\.reason) == ["left"])
        plan.begin()
        #expect(plan.need(of: push("b"))?.record.id == "b")
        plan.take(.closed(event: "a"), at: now)
        #expect(plan.contextCount == 1 && plan.need(of: push("a")) == nil)
    }
}
