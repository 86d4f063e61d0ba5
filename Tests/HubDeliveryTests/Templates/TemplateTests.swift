import Foundation
import HubCore
import HubDelivery
import HubTesting
import HubYAML
import Testing

private let session = Session(
    app: "1", id: "monday", number: 42, definition: "g", joinCode: "ABC123",
    attributes: ["city": "Zürich", "zone": ["name": "A"]], createdAt: 0)
private let ann = Participant(
    app: "1", session: "monday", user: "ann", number: 7, name: "Ann <b>&\"'", email: "ann@example.com", role: "hider", joinedAt: 0
)

/// The body that `template` gives for one publish, or what is missing.
private func render(
    _ template: String, _ data: JSONValue = [:], session: Session? = session, participant: Participant? = ann
)
    -> String
{
    let quoted = String(decoding: JSONEncoder.encodeText(template), as: UTF8.self)
    let text =
        "channel: presence-g-{session}\nevents: { e: { to: all, policy: notify, notification: { title: T, body: \(quoted) } } }"
    do {
        let definition = try DefinitionSet.load([("g.yaml", text)]).definition(named: "g")!
        let event = EventRecord(
            id: "0193457e-0000-7000-8000-000000000001", app: "1", channel: "presence-g-monday", name: "e", data: "",
            policy: .notify,
            committedAt: 1_767_920_400_250, expiresAt: 0)
        var rendering = Rendering(
            definition: definition, event: event, channel: .init(session: "monday", user: nil), session: session, data: data)
        let message = try rendering.message(definition.events["e"]!.variants[0], user: "ann", participant: participant)
        return message?.body ?? "none"
    } catch let error as YAMLError {
        return "refused: " + error.mistakes[0].description
    } catch let error as RenderingError {
        return "lacks: " + error.problems.joined(separator: "; ")
    } catch {
        return "\(error)"
    }
}

extension JSONEncoder {
    /// JSON strings are YAML strings.
    fileprivate static func encodeText(_ text: String) -> [UInt8] { JSONValue.string(text).serialized() }
}

@Suite("Template")
struct TemplateTests {
    static let rendered: [(String, JSONValue, String)] = [
        ("plain { } text }}", [:], "plain { } text }}"),
        ("{{a}}", ["a": "x"], "x"), ("{{ a }}", ["a": "x"], "x"), ("{{{a}}}", ["a": "<&\"'>"], "<&\"'>"),
        ("{{&a}}", ["a": "<&\"'>"], "<&\"'>"),
        ("{{a}}", ["a": "<b>&\"'"], "<b>&\"'"), ("  {{&a}} b", ["a": "x"], "  x b"),
        ("{{a}}", ["a": "{{session}}"], "{{session}}"),
        ("{{a}} {{a}}", ["a": 0], "0 0"), ("{{a}}", ["a": ""], ""), ("{{a}}", ["a": false], "false"),
        ("{{a}}", ["a": .double(2.5)], "2.5"),
        ("{{a}}", ["a": 9_007_199_254_740_993], "9007199254740993"), ("{{a}}", ["a": [1, "x"]], "[1,\"x\"]"),
        ("{{a}}", ["a": ["b": 1]], "{\"b\":1}"),
        ("{{a.b}}", ["a": ["b": "x"]], "x"), ("{{data.session}} {{session}}", ["session": "mine"], "mine monday"),
        ("{{user}}", ["user": "u"], "u"),
        ("{{session.id}}/{{session.number}}/{{session.join_code}}", [:], "monday/42/ABC123"),
        ("{{session.attributes.city}} {{session.attributes.zone.name}}", [:], "Zürich A"),
        ("{{participant.id}} {{participant.number}} {{participant.role}}", [:], "ann 7 hider"),
        ("{{participant.name}}", [:], "Ann <b>&\"'"),
        ("{{event.id}} {{event.name}} {{event.time}}", [:], "0193457e-0000-7000-8000-000000000001 e 2026-01-09T01:00:00.250Z"),
        ("{{participant}} {{event}} {{data}}", ["participant": "p", "event": "e", "data": "d"], "p e d"),
        ("{{#a}}[{{a}}]{{/a}}{{^a}}none{{/a}}", ["a": 0], "[0]"), ("{{#a}}[{{a}}]{{/a}}{{^a}}none{{/a}}", ["a": ""], "[]"),
        ("{{#a}}[{{a}}]{{/a}}{{^a}}none{{/a}}", [:], "none"), ("{{#a}}[{{a}}]{{/a}}{{^a}}none{{/a}}", ["a": .null], "none"),
        ("{{#a}}x{{/a}}{{^a}}none{{/a}}", ["a": false], "none"), ("{{#a}}x{{/a}}{{^a}}none{{/a}}", ["a": true], "x"),
        ("{{#a}}x{{/a}}{{^a}}none{{/a}}", ["a": []], "none"), ("{{#a}}{{.}},{{/a}}", ["a": [1, "b", true]], "1,b,true,"),
        ("{{#a}}{{b}}{{c}} {{/a}}", ["a": [["b": 1], ["b": 2]], "c": "!"], "1! 2! "),
        ("{{#a}}{{b}}{{/a}}", ["a": ["b": "in"], "b": "out"], "in"),
        ("{{#a.b.c}}x{{/a.b.c}}ok", ["a": 1], "ok"), ("{{#data.a}}x{{/data.a}}{{^data.a}}y{{/data.a}}", [:], "y"),
        ("{{#session.attributes.nope}}x{{/session.attributes.nope}}ok", [:], "ok"), ("{{#a}}{{unused}}{{/a}}ok", [:], "ok"),
        ("{{uppercased(a)}}", ["a": "é"], "É"), ("{{capitalized(lowercased(a))}}", ["a": "ABC"], "Abc"),
        ("{{count(a)}}", ["a": [1, 2]], "2"),
        ("{{first(a)}} {{last(a)}} {{first(reversed(a))}}", ["a": [1, 2]], "1 2 2"),
        ("{{plusone(a)}} {{minusone(a)}}", ["a": 1], "2 0"),
        ("{{kilometers(a)}}", ["a": 3000], "3"), ("{{kilometers(a)}}", ["a": 1500], "1.5"), ("{{kilometers(a)}}", ["a": 5], "0.005"),
        ("{{kilometers(a)}}", ["a": -250], "-0.25"), ("{{kilometers(a)}}", ["a": .double(2000.4)], "2"),
        ("{{kilometers(a)}}", ["a": .double(1e300)], "1e+297"),
        ("{{plusone(a)}}", ["a": .int(.max)], "9223372036854775807"),
        ("{{minusone(a)}}", ["a": .int(.min)], "-9223372036854775808"),
        ("{{#even(a)}}even{{/even(a)}}{{^even(a)}}odd{{/even(a)}}", ["a": 3], "odd"),
        ("{{#empty(a)}}e{{/empty(a)}}", ["a": []], "e"),
        ("a\n  {{#b}}\n  x\n  {{/b}}\nc", ["b": true], "a\n  x\nc"), ("a{{! comment }}b", [:], "ab"),
        ("🎯{{a}}é\u{301}", ["a": "👩‍👩‍👧"], "🎯👩‍👩‍👧é\u{301}"),
    ]

    @Test("values are filled in", arguments: rendered.indices)
    func values(index: Int) {
        let (template, data, expected) = Self.rendered[index]
        #expect(render(template, data) == expected, "\(template)")
    }

    static let lacking: [(String, JSONValue, String)] = [
        ("{{a}}", [:], "\"a\" is missing in the published data"),
        ("{{a}} {{b}} {{a}}", [:], "\"a\" is missing in the published data; \"b\" is missing in the published data"),
        ("{{a}}", ["a": .null], "\"a\" is missing in the published data"),
        ("{{a.b}}", ["a": 1], "\"a.b\" is missing in the published data"),
        ("{{data.a}}", [:], "\"data.a\" is missing in the published data"),
        ("{{a}}", "text", "\"a\" is missing in the published data"),
        ("{{#a}}x{{/a}}{{a}}", [:], "\"a\" is missing in the published data"),
        ("{{^a}}{{a}}{{/a}}", [:], "\"a\" is missing in the published data"),
        ("{{#a}}{{b}}{{/a}}", ["a": [["b": 1], ["c": 1]]], "\"b\" is missing in the published data"),
        ("{{#a}}{{.}}{{/a}}", ["a": [.null]], "\".\" is missing in the published data"),
        ("{{session.attributes.nope}}", [:], "\"session.attributes.nope\" is missing in the session's attributes"),
        ("{{first(a)}}", ["a": []], "\"a\" is missing in the published data"),
        ("{{uppercased(a)}}", ["a": 1], "uppercased() cannot be applied to what \"a\" is here"),
        ("{{plusone(a)}}", ["a": "1"], "plusone() cannot be applied to what \"a\" is here"),
    ]

    @Test("what is missing is named", arguments: lacking.indices)
    func missing(index: Int) {
        let (template, data, expected) = Self.lacking[index]
        #expect(render(template, data) == "lacks: \(expected)", "\(template)")
    }

    @Test("a session, join code or participant that is not there is named")
    func noContext() {
        #expect(render("{{session.number}}", session: nil) == "lacks: \"session.number\" is missing: there is no such session")
        #expect(render("{{session.id}}{{session}}", session: nil) == "mondaymonday")
        #expect(
            render("{{participant.name}}", participant: nil)
                == "lacks: \"participant.name\" is missing: the recipient is no participant of the session")
        var closed = session
        closed.joinCode = nil
        #expect(
            render("{{session.join_code}}", session: closed)
                == "lacks: \"session.join_code\" is missing: the session has no join code")
        #expect(render("{{#session.join_code}}x{{/session.join_code}}ok", session: closed) == "ok")
        var plain = ann
        plain.role = nil
        #expect(render("[{{participant.role}}]", participant: plain) == "[]")
    }

    @Test(
        "what is no template stops the start with file, line and the fix",
        arguments: [
            ("{{a", "{{ without }}"), ("{{}}", "is no name"), ("{{a b}}", "is no name"), ("{{a..b}}", "is no name"),
            ("{{.a}}", "is no name"), ("{{a.}}", "is no name"),
            ("{{#a}}", "has no end"), ("{{/a}}", "was not begun"), ("{{#a}}{{#b}}{{/a}}{{/b}}", "stands where {{/b}} has to end"),
            ("{{{a}}", "{{{ without }}}"),
            ("{{>p}}", "partials"), ("{{<p}}{{/p}}", "partials"), ("{{$p}}{{/p}}", "partials"), ("{{=<% %>=}}", "delimiters"),
            ("{{% CONTENT_TYPE:TEXT}}", "not available"),
            ("{{.}}", "outside of one"), ("{{shout(a)}}", "unknown template function \"shout\""),
            ("{{uppercased(a}}", "brackets"), ("{{uppercased a)}}", "brackets"), ("{{uppercased a}}", "is no name"),
            ("{{a)}}", "brackets"), ("{{index()}}", "unknown template function"), ("{{count()}}", "is no name"),
            ("{{uppercased(empty(a))}}", "uppercased() cannot take"),
            ("{{session.email}}", "unknown name \"session.email\""),
            ("{{participant.email}}", "unknown name \"participant.email\""), ("{{event.sequence}}", "unknown name"),
            ("{{event.data}}", "unknown name"), ("{{session.attributes}}", "unknown name"), ("{{session.id.x}}", "unknown name"),
            ("{{#session.nope}}{{/session.nope}}", "unknown name"),
            (String(repeating: "{{#a}}", count: 9), "nested deeper"), (String(repeating: "x", count: 5000), "longer"),
            ("{{é}}", "is no name"), ("{\u{301}{a}}", "plain"),
        ])
    func refused(template: String, message: String) {
        let result = render(template)
        if message == "plain" {
            #expect(result == template)
        } else {
            #expect(
                result.hasPrefix("refused: g.yaml:2: event \"e\".notification.body: ") && result.contains(message), "\(result)")
        }
    }

    @Test("names of a session are refused where the channel has none")
    func noSession() {
        let found = definitionMistakes(
            "channel: private-u-{user}\nevents: { e: { to: all, policy: notify, notification: { title: \"{{user}}\", body: \"{{session.number}}\" } } }"
        )
        #expect(
            found == [
                "game.yaml:2: event \"e\".notification.body: session.number: this channel's name has no {session}, so its events belong to no session"
            ])
    }

    @Test("random templates over random data render or are refused, never crash")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("Template seed \(seed)")
        var random = SeededRandom(state: seed)
        let pieces = [
            "{{", "}}", "{", "}", "#", "^", "/", "a", "b", ".", " ", "\n", "(", ")", "uppercased(", "count(", "{{a}}", "{{#a}}",
            "{{/a}}", "{{^b}}", "{{/b}}", "{{.}}", "{{{b}}}",
            "!", "&", "\r\n", "é", "\u{301}", "{{plusone(a)}}", "session", "=", ">", "$", "<", "%", "{{first(a)}}",
        ]
        let values: [JSONValue] = [
            .null, true, false, 0, "", "x", [], [1, .null, [:]], ["a": 1, "b": ["a": []]], .int(.max), .double(1e300),
        ]
        // Other ones in each run; `make fuzz` has the many.
        for _ in 0..<1000 {
            let template = (0..<Int.random(in: 1...14, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            _ = render(template, ["a": values.randomElement(using: &random)!, "b": values.randomElement(using: &random)!])
        }
    }
}

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

    @Test("nested data keeps its shape and its types, texts are filled in, FCM's nested block is taken apart")
    func nested() throws {
        let message = try message(hideAndSeek, "question_asked", ["question_id": 17, "radius_km": 3])
        #expect(message.data["parameters"] == ["radius": 3, "n": 1, "ok": true, "list": ["monday", .double(2.5)]])
        #expect(message.group == "g.q17" && message.body == "A 3 km radar question has been asked. Your answer timer is running.")
        #expect(message.apns == ["sound": "default", "interruption-level": "time-sensitive", "content-available": 1])
        #expect(message.android == ["priority": "HIGH", "notification": ["channel_id": "game", "color": "#4CAF50"]])
    }

    @Test("members of Apple's alert stay together")
    func alert() throws {
        let text =
            "channel: presence-g-{session}\nevents: { e: { to: all, policy: both, notification: { title: T, body: B, image: \"https://x/{{i}}\" }, apns: { alert: { subtitle: \"{{i}}\" } } } }"
        let message = try message(text, "e", ["i": 5])
        #expect(message.apns == ["alert": ["subtitle": "5"]] && message.image == "https://x/5")
    }

    @Test("everything that is missing in one publish is told at once, with event and definition and without values")
    func missing() throws {
        let error = #expect(throws: RenderingError.self) { try message(hideAndSeek, "question_asked", ["secret": "s3cr3t"]) }
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
}
