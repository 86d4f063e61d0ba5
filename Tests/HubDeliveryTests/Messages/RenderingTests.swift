import Foundation
import HubCore
import HubDefinitions
import HubDelivery
import Synchronization
import Testing

private let session = Session(
    app: "1", id: "monday", number: 42, definition: "g", joinCode: "ABC123", attributes: [:], createdAt: 0)
private let ann = Participant(
    app: "1", session: "monday", user: "ann", number: 7, name: "Ann <b>&\"'", email: "ann@example.com", role: "hider", joinedAt: 0)

@Suite("Rendering")
struct RenderingTests {
    private func event(_ name: String) -> EventRecord {
        EventRecord(
            id: "0193457e-0000-7000-8000-000000000001", app: "1", channel: "presence-g-monday", sequence: 3, name: name, data: "",
            policy: .critical,
            committedAt: 1_767_920_400_250, expiresAt: 0)
    }

    private func message(_ text: String, _ name: String, _ data: JSONValue) throws -> PushMessage {
        let definition = try #require(try DefinitionSet.load([("quiz.yaml", text)]).definition(named: "quiz"))
        var rendering = Rendering(
            definition: definition, event: event(name), channel: .init(session: "monday", user: nil), session: session, data: data
        )
        let variant = try #require(definition.events[name]?.variants.first)
        return try #require(try rendering.message(variant, user: "ann", participant: ann))
    }

    @Test("the bundled quiz definition makes the payload the quiz apps read")
    func quiz() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../../channels/quiz.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        let plain = try message(text, "session-started", [:])
        #expect(plain.title == "Session Started! 🎯" && plain.body == "The quiz session has begun. Join now to participate!")
        #expect(
            plain.data == [
                "type": "session_started", "session_id": "42", "join_code": "ABC123", "started_at": "2026-01-09T01:00:00.250Z",
                "current_question_index": "0", "time_per_question": "30",
            ])
        #expect(plain.kind == .alert && plain.group == "monday.phase" && plain.apns == ["sound": "default"])
        #expect(plain.android == ["priority": "HIGH", "notification": ["channel_id": "session_notifications", "sound": "default"]])
        #expect(
            plain.expiresAt == plain.committedAt + 600_000 && plain.sequence == 3
                && plain.event == "0193457e-0000-7000-8000-000000000001")
        let filled = try message(
            text, "session-started", ["started_at": "2026-01-01T00:00:00Z", "current_question_index": 2, "time_per_question": 99])
        #expect(
            filled.data["started_at"] == "2026-01-01T00:00:00Z" && filled.data["current_question_index"] == "2"
                && filled.data["time_per_question"] == "30")
        #expect(try message(text, "session-started", ["current_question_index": 0]).data["current_question_index"] == "0")
        let set = try DefinitionSet.load([("channels/quiz.yaml", text)])
        #expect(set.match(channel: "presence-quiz-monday")?.placeholders.session == "monday")
    }

    @Test("everything that is missing in one publish is told at once, with event and definition and without values")
    func missing() throws {
        let text = """
            channel: presence-g-{session}
            events:
              question_asked:
                to: all
                policy: notify
                group: "g.q{{question_id}}"
                notification: { title: T, body: "A {{radius_km}} km radar question has been asked." }
            """
        let error = #expect(throws: RenderingError.self) { try message(text, "question_asked", ["secret": "s3cr3t"]) }
        #expect(
            error?.description
                == "the notification of \"question_asked\" in the channel definition \"quiz\" cannot be made: \"radius_km\" is missing in the published data; \"question_id\" is missing in the published data"
        )
    }

    @Test("recipients share a text unless it names them, and each has an id of their own")
    func shared() throws {
        let text = """
            channel: presence-g-{session}
            events:
              a: { to: all, policy: notify, notification: { title: T, body: B } }
              b: { to: all, policy: notify, notification: { title: T, body: "Hi {{participant.name}}" } }
              c: { to: all, policy: sync, data: { x: 1 } }
              d: { to: all, policy: realtime_only }
            """
        let definition = try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
        #expect(definition.events.mapValues { $0.variants[0].isPersonal } == ["a": false, "b": true, "c": false, "d": false])
        var bob = ann
        bob.name = "Bob"
        for (name, bodies) in [("a", ["B", "B"]), ("b", ["Hi Ann <b>&\"'", "Hi Bob"])] {
            let variant = try #require(definition.events[name]?.variants[0])
            var rendering = Rendering(
                definition: definition, event: event(name), channel: .init(session: "monday", user: nil), session: session,
                data: .null)
            let first = try #require(try rendering.message(variant, user: "ann", participant: ann))
            let second = try #require(try rendering.message(variant, user: "bob", participant: bob))
            #expect([first.body, second.body] == bodies && first.nid != second.nid)
            #expect(second.nid == NotificationID.make(event: event(name).id, app: "1", user: "bob"))
        }
        var rendering = Rendering(
            definition: definition, event: event("c"), channel: .init(session: "monday", user: nil), session: session, data: .null
        )
        let quiet = try #require(definition.events["c"]?.variants[0])
        let silent = try #require(try rendering.message(quiet, user: "ann", participant: ann))
        #expect(silent.kind == .silent && silent.title == nil && silent.data == ["x": 1])
        let unpushed = try #require(definition.events["d"]?.variants[0])
        #expect(try rendering.message(unpushed, user: "ann", participant: ann) == nil)
    }

    // MARK: With a check

    /// Counts how often it is asked.
    private final class Counter: PayloadCheck {
        let asked = Mutex(0)
        func problem(_ message: PushMessage) -> String? {
            asked.withLock { $0 += 1 }
            return nil
        }
    }

    private let shown = "to: all\npolicy: notify\nnotification: { title: T, body: B }\n"

    private func definition(_ event: String) throws -> ChannelDefinition {
        let indented = event.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
        let text = "channel: presence-g-{session}\nevents:\n  e:\n\(indented)\n"
        return try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
    }

    private func rendering(_ definition: ChannelDefinition, check: any PayloadCheck) -> Rendering {
        Rendering(
            definition: definition, event: event("e"), channel: .init(session: "monday", user: nil), session: nil, data: [:], check: check)
    }

    @Test("A text is made once for each language, however many recipients there are") func sharedTexts() throws {
        let definition = try definition(shown + "locales: { de: { body: Hallo } }")
        let counter = Counter()
        var rendering = rendering(definition, check: counter)
        let variant = try #require(definition.events["e"]?.variants[0])
        try rendering.prepare(variant)
        for locale in ["de", "de-CH", "fr", nil] {
            for user in ["ann", "bob"] { _ = try rendering.message(variant, user: user, participant: nil, locale: locale) }
        }
        #expect(counter.asked.withLock { $0 } == 2)
    }

    @Test(
        "Whether a gateway takes it is asked once for all who differ in title and body alone",
        arguments: [("", 1), ("data: { who: \"{{participant.name}}\" }\n", 3)])
    func personalTexts(data: String, count: Int) throws {
        let text = "to: all\npolicy: notify\nnotification: { title: Hello, body: \"Dear {{participant.name}}\" }\n" + data
        let definition = try definition(text)
        let counter = Counter()
        var rendering = rendering(definition, check: counter)
        let variant = try #require(definition.events["e"]?.variants[0])
        for name in ["Ann", "Bob", "Christine"] {
            var participant = ann
            participant.name = name
            try rendering.prepare(variant, participant: participant)
        }
        #expect(counter.asked.withLock { $0 } == count)
    }

    @Test("What no gateway would take is refused with the event's name") func tooLarge() throws {
        struct Refusing: PayloadCheck {
            func problem(_ message: PushMessage) -> String? { "it has 5000 bytes" }
        }
        let definition = try definition(shown)
        var rendering = rendering(definition, check: Refusing())
        let variant = try #require(definition.events["e"]?.variants[0])
        let error = #expect(throws: RenderingError.self) { try rendering.message(variant, user: "ann", participant: nil) }
        #expect(
            "\(try #require(error))".contains("the notification of \"e\" in the channel definition \"g\" cannot be made: it has 5000 bytes")
        )
    }
}
