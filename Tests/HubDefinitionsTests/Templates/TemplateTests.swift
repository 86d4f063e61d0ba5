import Foundation
import HubCore
import HubDefinitions
import HubTesting
import HubYAML
import Testing

private let session = Session(
    app: "1", id: "monday", number: 42, definition: "g", joinCode: "ABC123",
    attributes: ["city": "Zürich", "zone": ["name": "A"]], createdAt: 0)
private let ann = Participant(
    app: "1", session: "monday", user: "ann", number: 7, name: "Ann <b>&\"'", email: "ann@example.com", role: "hider", joinedAt: 0
)

/// The values that templates of one publish can name.
private func context(
    _ data: JSONValue, event: String = "e", session: Session? = session, participant: Participant? = ann
) -> TemplateContext {
    TemplateContext(
        channel: .init(session: "monday", user: nil), session: session, participant: participant,
        eventID: "0193457e-0000-7000-8000-000000000001", eventName: event, eventTime: 1_767_920_400_250, data: data)
}

/// The body that `template` renders for one publish, or the missing values.
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
        var problems: [String] = []
        let content = definition.events["e"]!.variants[0].content(
            context(data, session: session, participant: participant), locale: nil, androidChannels: [], problems: &problems)
        return problems.isEmpty ? content.body ?? "none" : "lacks: " + problems.joined(separator: "; ")
    } catch {
        return "refused: " + error.mistakes[0].description
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
        // Each run draws other ones; `make fuzz` runs many more.
        for _ in 0..<1000 {
            let template = (0..<Int.random(in: 1...14, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            _ = render(template, ["a": values.randomElement(using: &random)!, "b": values.randomElement(using: &random)!])
        }
    }
}

@Suite("Filled-in content")
struct FilledContentTests {
    private func filled(_ text: String, _ name: String, _ data: JSONValue) throws -> (content: NotificationContent, group: String?) {
        let definition = try #require(try DefinitionSet.load([("quiz.yaml", text)]).definition(named: "quiz"))
        let variant = try #require(definition.events[name]?.variants.first)
        var problems: [String] = []
        let context = context(data, event: name)
        let content = variant.content(context, locale: nil, androidChannels: definition.androidChannels, problems: &problems)
        let group = variant.group?.render(context, problems: &problems)
        #expect(problems.isEmpty)
        return (content, group)
    }

    @Test("nested data keeps its shape and its types, texts are filled in, FCM's nested block is taken apart")
    func nested() throws {
        let (content, group) = try filled(hideAndSeek, "question_asked", ["question_id": 17, "radius_km": 3])
        #expect(content.data["parameters"] == ["radius": 3, "n": 1, "ok": true, "list": ["monday", .double(2.5)]])
        #expect(group == "g.q17" && content.body == "A 3 km radar question has been asked. Your answer timer is running.")
        #expect(content.apns == ["sound": "default", "interruption-level": "time-sensitive", "content-available": 1])
        #expect(content.android == ["priority": "HIGH", "notification": ["channel_id": "game", "color": "#4CAF50"]])
    }

    @Test("members of Apple's alert stay together")
    func alert() throws {
        let text =
            "channel: presence-g-{session}\nevents: { e: { to: all, policy: both, notification: { title: T, body: B, image: \"https://x/{{i}}\" }, apns: { alert: { subtitle: \"{{i}}\" } } } }"
        let (content, _) = try filled(text, "e", ["i": 5])
        #expect(content.apns == ["alert": ["subtitle": "5"]] && content.image == "https://x/5")
    }
}
