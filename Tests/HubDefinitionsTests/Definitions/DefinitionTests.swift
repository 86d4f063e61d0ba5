import Foundation
import HubCore
import HubDefinitions
import HubTesting
import HubYAML
import Testing

@Suite("ChannelDefinition")
struct DefinitionTests {
    /// A definition with one event `e`, whose lines begin at line 4.
    static func event(_ lines: String...) -> String {
        "channel: presence-game-{session}\nroles: [hider, seeker]\nevents:\n  e:\n" + lines.map { "    \($0)\n" }.joined()
    }

    static let shown = "notification: { title: T, body: B }"

    @Test("the whole form is read")
    func whole() throws {
        let set = try DefinitionSet.load([("channels/hide-and-seek.yaml", hideAndSeek)])
        let definition = try #require(set.definition(named: "hide-and-seek"))
        #expect(definition.roles == ["hider", "seeker"] && definition.scope == .device)
        #expect(definition.join == .init(identity: .device, role: "seeker", requiresToken: true))
        let asked = try #require(definition.events["question_asked"]?.variants.first)
        #expect(
            asked.policy == .critical && asked.ttl == .seconds(300) && asked.audience == .roles(["hider"])
                && asked.conditions.isEmpty)
        #expect(asked.group?.source == "g.q{{question_id}}" && asked.ttlMilliseconds == 300_000)
        #expect(definition.events["phase_changed"]?.variants.map(\.ttl) == [.seconds(600), .seconds(600), .seconds(60)])
        #expect(definition.events["secret"]?.variants.first?.audience == .roles(["hider", "seeker"]))
    }

    @Test("quiet hours, alert limits and replay are read, and have defaults")
    func limits() throws {
        func definition(_ keys: String) throws -> ChannelDefinition {
            try #require(try DefinitionSet.load([("g.yaml", "channel: presence-g-{session}\n\(keys)\nevents: {}")]).definition(named: "g"))
        }
        let plain = try definition("")
        #expect(plain.membersMax == 10_000)
        #expect(
            !plain.clearsSiblings && !plain.replays && plain.quietHours == nil
                && plain.alerts == AlertLimits(burst: 5, every: .seconds(10), perDay: 0))
        let full = try definition(
            "replay: true\nquiet_hours: { from: \"22:00\", to: 08:30, timezone: Europe/Berlin }\nalerts: { burst: 2, every: 1m, per_day: 9 }"
        )
        #expect(try definition("members_max: 2000").membersMax == 2000)
        #expect(try definition("clear_siblings: true").clearsSiblings)
        #expect(full.replays && full.quietHours == QuietHours(from: 1320, to: 510, timezone: "Europe/Berlin"))
        #expect(full.alerts == AlertLimits(burst: 2, every: .seconds(60), perDay: 9))
        #expect(try definition("alerts: { per_day: 3 }").alerts == AlertLimits(burst: 5, every: .seconds(10), perDay: 3))
    }

    @Test("the first variant that fits a recipient wins")
    func variants() throws {
        let definition = try #require(try DefinitionSet.load([("hs.yaml", hideAndSeek)]).definition(named: "hs"))
        let phase = try #require(definition.events["phase_changed"])
        func policy(_ role: String?, _ data: JSONValue) -> Policy? {
            phase.variant(user: "u", role: role, channelUser: nil, data: data)?.policy
        }
        #expect(policy("hider", ["phase": "endgame"]) == .critical)
        #expect(policy("seeker", ["phase": "endgame"]) == .sync)
        #expect(
            policy(nil, ["phase": "endgame"]) == .critical
                && phase.variant(user: "u", role: nil, channelUser: nil, data: ["phase": "endgame"])?.index == 2)
        #expect(policy("seeker", ["phase": "seeking"]) == .critical)
        #expect(policy("seeker", "no object") == .critical)
        let secret = try #require(definition.events["secret"])
        #expect(secret.variant(user: "u", role: nil, channelUser: nil, data: .null) == nil)
        #expect(secret.variant(user: "u", role: "hider", channelUser: nil, data: .null) != nil)
    }

    @Test(
        "conditions compare JSON values",
        arguments: [
            ("n: 1", ["n": 1], true), ("n: 1", ["n": .double(1)], true), ("n: 1", ["n": "1"], false),
            ("n: \"1\"", ["n": "1"], true),
            ("n: 1", [:], false), ("n: null", [:], true), ("n: null", ["n": .null], true), ("n: null", ["n": 0], false),
            ("n: true", ["n": true], true), ("n: true", ["n": "true"], false), ("a.b: x", ["a": ["b": "x"]], true),
            ("a.b: x", ["a": "x"], false),
            ("n: 1", "n", false), ("n: 1.5", ["n": .double(1.5)], true), ("{n: 1, m: 2}", ["n": 1, "m": 2], true),
            ("{n: 1, m: 2}", ["n": 1], false),
        ] as [(String, JSONValue, Bool)])
    func conditions(when: String, data: JSONValue, holds: Bool) throws {
        let braces = when.first == "{" ? when : "{\(when)}"
        let text = Self.event("variants:", "  - { when: \(braces), to: all, policy: sync }")
        let definition = try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
        #expect((definition.events["e"]?.variant(user: "u", role: nil, channelUser: nil, data: data) != nil) == holds)
    }

    @Test(
        "without a ttl the policy decides",
        arguments: [
            ("critical", 600), ("notify", 14_400), ("sync", 600), ("push_only", 259_200), ("both", 14_400),
            ("realtime_only", 600),
        ])
    func ttl(policy: String, seconds: Int) throws {
        let isShown = policy != "sync" && policy != "realtime_only"
        let text = Self.event("to: all", "policy: \(policy)", isShown ? Self.shown : "# nothing shown")
        let definition = try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
        #expect(definition.events["e"]?.variants.first?.ttl == .seconds(seconds))
    }

    @Test("an event for the user of the channel's name")
    func channelUser() throws {
        let text = "channel: private-user-{user}\nevents: { e: { to: \"{user}\", policy: notify, \(Self.shown) } }"
        let set = try DefinitionSet.load([("looprail.yaml", text)])
        let found = try #require(set.match(channel: "private-user-ann"))
        #expect(found.definition.name == "looprail" && found.placeholders == .init(session: nil, user: "ann"))
        let variants = try #require(found.definition.events["e"])
        #expect(variants.variant(user: "ann", role: nil, channelUser: "ann", data: .null) != nil)
        #expect(variants.variant(user: "bob", role: nil, channelUser: "ann", data: .null) == nil)
    }

    @Test("variants take from their event what they do not say")
    func inheritance() throws {
        let text = Self.event(
            "policy: critical", "group: g", Self.shown, "data: {a: 1}", "variants:", "  - { when: {x: 1}, to: hider, policy: sync }",
            "  - { to: all, ttl: 1m }")
        let definition = try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
        let variants = try #require(definition.events["e"]?.variants)
        #expect(variants.map(\.policy) == [.sync, .critical] && variants.map { $0.notification == nil } == [true, false])
        #expect(variants.allSatisfy { $0.group?.source == "g" && $0.data == variants[0].data })
    }

    @Test("the most particular pattern wins, and most channels match none")
    func match() throws {
        let set = try DefinitionSet.load([
            ("a.yaml", "channel: presence-{session}\nevents: {}"), ("b.yaml", "channel: presence-quiz-{session}\nevents: {}"),
            ("c.yaml", "channel: presence-quiz-{session}-host\nevents: {}"),
        ])
        #expect(set.names == ["a", "b", "c"])
        #expect(set.match(channel: "presence-quiz-1")?.definition.name == "b")
        #expect(set.match(channel: "presence-quiz-1-host")?.definition.name == "c")
        #expect(set.match(channel: "presence-1")?.placeholders.session == "1")
        for channel in ["", "news", "private-quiz-1", "presence-", "#server-to-user-x"] {
            #expect(set.match(channel: channel) == nil)
        }
        #expect(DefinitionSet.empty.match(channel: "presence-1") == nil)
    }

    @Test("mutilated definitions give a definition or mistakes with a line, never a crash")
    func mutilated() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("DefinitionSet seed \(seed)")
        var random = SeededRandom(state: seed)
        // Each run draws other ones; `make fuzz` runs many more.
        for round in 0..<300 {
            let text = random.mutilate(hideAndSeek, noise: "{}[]:,-#\"'\n \t&*!|>^/.(=%~0é", isCut: round % 3 == 0)
            do throws(YAMLError) {
                _ = try DefinitionSet.load([("f.yaml", text)])
            } catch {
                #expect(error.mistakes.allSatisfy { $0.line >= 1 && $0.file == "f.yaml" && !$0.message.isEmpty })
            }
        }
    }
}

let hideAndSeek = """
    # Hide & Seek
    channel: presence-game-{session}
    roles: [hider, seeker]
    join: { identity: device, role: seeker, device_token: required }
    suppress_scope: device
    events:
      question_asked:
        to: hider
        policy: critical
        ttl: 5m
        group: "g.q{{question_id}}"
        notification: { title: "Hide & Seek", body: "A {{radius_km}} km radar question has been asked. Your answer timer is running." }
        data: { event_type: question_asked, game_id: "{{session}}", question_id: "{{question_id}}", parameters: { radius: "{{radius_km}}", n: 1, ok: true, list: ["{{session}}", 2.5] } }
        apns: { sound: default, interruption-level: time-sensitive, content-available: 1 }
        android: { channel_id: game, priority: high, notification: { color: "#4CAF50" } }
      phase_changed:
        variants:
          - { when: { phase: endgame }, to: hider,  policy: critical, notification: { title: "Hide & Seek", body: "Endgame! Stay where you are." } }
          - { when: { phase: endgame }, to: seeker, policy: sync }
          - { to: all, policy: critical, ttl: 1m, notification: { title: "Hide & Seek", body: "{{#x}}{{.}}{{/x}}{{^x}}Phase {{phase}}{{/x}}" } }
      secret: { to: [hider, seeker], policy: realtime_only }
    """
