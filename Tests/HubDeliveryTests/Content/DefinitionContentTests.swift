import HubCore
import HubYAML
import Synchronization
import Testing

@testable import HubDelivery

/// What an event's definition says to the gateways: kinds, languages, fields, channels and the platforms' blocks.
@Suite struct DefinitionContentTests {
    private let participant = Participant(
        app: "1", session: "s", user: "ann", number: 7, name: "Ann", email: "a@example.com", role: nil, joinedAt: 0)

    private func definition(_ event: String, head: String = "") throws -> ChannelDefinition {
        let indented = event.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
        let text = "channel: presence-g-{session}\n\(head)events:\n  e:\n\(indented)\n"
        return try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
    }

    private func mistakes(_ event: String, head: String = "") -> [String] {
        do {
            _ = try definition(event, head: head)
            return []
        } catch let error as YAMLError { return error.mistakes.map(\.message) } catch { return ["\(error)"] }
    }

    private func rendering(_ definition: ChannelDefinition, _ data: JSONValue = [:], check: (any PayloadCheck)? = nil) -> Rendering {
        let event = EventRecord(
            id: "0193457e-0000-7000-8000-000000000001", app: "1", channel: "presence-g-s", sequence: 3, name: "e", data: "",
            policy: .notify,
            committedAt: 1000, expiresAt: 0)
        return Rendering(
            definition: definition, event: event, channel: .init(session: "s", user: nil), session: nil, data: data, check: check)
    }

    private func message(
        _ text: String, _ data: JSONValue = [:], head: String = "", locale: String? = nil, variant: Int = 0
    ) throws -> PushMessage {
        let definition = try definition(text, head: head)
        var rendering = rendering(definition, data)
        let variant = try #require(definition.events["e"]?.variants[variant])
        return try #require(try rendering.message(variant, user: "ann", participant: participant, locale: locale))
    }

    private let shown = "to: all\npolicy: notify\nnotification: { title: T, body: B }\n"

    @Test(
        "A device's language chooses the text, from the particular to the general",
        arguments: [
            ("de-CH", "Hallo"), ("de", "Hallo"), ("de_AT", "Hallo"), ("pt-BR", "Oi"), ("pt", "B"), ("en", "B"), (nil, "B"),
            ("PT-br-x", "Oi"),
        ])
    func locales(locale: String?, body: String) throws {
        let text = shown + "locales: { de: { body: Hallo }, pt-BR: { title: Olá, body: Oi } }"
        let message = try message(text, locale: locale)
        #expect(message.body == body)
        #expect(message.title == (body == "Oi" ? "Olá" : "T"))
    }

    @Test("A text is made once for each language, however many recipients there are") func sharedTexts() throws {
        final class Counter: PayloadCheck {
            let asked = Mutex(0)
            func problem(_ message: PushMessage) -> String? {
                asked.withLock { $0 += 1 }
                return nil
            }
        }
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
        final class Counter: PayloadCheck {
            let asked = Mutex(0)
            func problem(_ message: PushMessage) -> String? {
                asked.withLock { $0 += 1 }
                return nil
            }
        }
        let text = "to: all\npolicy: notify\nnotification: { title: Hello, body: \"Dear {{participant.name}}\" }\n" + data
        let definition = try definition(text)
        let counter = Counter()
        var rendering = rendering(definition, check: counter)
        let variant = try #require(definition.events["e"]?.variants[0])
        for name in ["Ann", "Bob", "Christine"] {
            var participant = participant
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

    @Test("A subtitle is a text like the others: with variables, in each language, and none where it is empty") func subtitle() throws {
        let text = #"""
            to: all
            policy: notify
            notification: { title: T, subtitle: "{{#n}}Round {{n}}{{/n}}", body: B }
            locales: { de: { subtitle: "{{#n}}Runde {{n}}{{/n}}" }, fr: { title: "T fr" } }
            """#
        for (locale, subtitle) in [(nil, "Round 2"), ("de-CH", "Runde 2"), ("fr", "Round 2")] as [(String?, JSONValue)] {
            #expect(try message(text, ["n": 2], locale: locale).apns == ["alert": ["subtitle": subtitle]])
        }
        #expect(try message(text).apns.isEmpty)
    }

    @Test("A variant's blocks go over its event's, member by member") func merged() throws {
        let text = """
            android: { channel_id: game, priority: high, notification: { color: "#000000" } }
            apns: { sound: default, alert: { subtitle: S } }
            variants:
              - { to: all, policy: notify, notification: { title: T, body: B }, android: { color: "#ffffff" }, apns: { payload: { aps: { alert: { loc-key: K } } } } }
            """
        let message = try message(text)
        #expect(message.android == ["priority": "HIGH", "notification": ["channel_id": "game", "color": "#ffffff"]])
        #expect(message.apns == ["sound": "default", "alert": ["subtitle": "S", "loc-key": "K"]])
    }

    @Test("A silent variant takes none of its event's blocks: they were written for who is shown something") func silentTakesNothing()
        throws
    {
        let text = """
            android: { data: { secret: S } }
            apns: { payload: { data: { secret: S } } }
            webpush: { data: { secret: S } }
            variants:
              - { to: all, policy: sync, data: { state: "1" }, android: { direct_boot_ok: true } }
            """
        let message = try message(text)
        #expect(message.data == ["state": "1"] && message.android == ["direct_boot_ok": true])
        #expect(message.apns.isEmpty && message.apnsRoot.isEmpty && message.webpush.isEmpty)
    }

    @Test("Webpush, options, the kind and a Live Activity come from the definition") func blocks() throws {
        let text =
            shown + """
                kind: data
                webpush: { headers: { Urgency: high }, fcm_options: { link: "https://x/{{id}}" } }
                fcm_options: { analytics_label: "l_{{id}}" }
                live_activity: { token: "{{token}}", event: update, timestamp: "{{at}}", content-state: { score: "{{score}}", text: "is {{score}}" } }
                """
        let data: JSONValue = ["id": 7, "token": "abcd", "at": 5, "score": 3]
        let full = try message(text, data)
        #expect(full.content == .data && full.kind == .alert)
        #expect(full.webpush["fcm_options"] == ["link": "https://x/7"])
        #expect(full.fcmOptions == ["analytics_label": "l_7"])
        #expect(full.liveActivityToken == "abcd")
        #expect(full.apns == ["event": "update", "timestamp": 5, "content-state": ["score": 3, "text": "is 3"]])
        let idle = try message(text, ["id": 7, "token": "", "at": 5, "score": 3])
        #expect(idle.liveActivityToken == nil && idle.apns.isEmpty)
    }

    @Test("A filled-in value that a gateway would refuse refuses the publish") func filledIn() throws {
        let text = shown + "fcm_options: { analytics_label: \"{{label}}\" }"
        #expect(try message(text, ["label": "ok"]).fcmOptions == ["analytics_label": "ok"])
        let error = #expect(throws: RenderingError.self) { try message(text, ["label": "not ok"]) }
        #expect(
            error?.problems == ["fcm_options.analytics_label: expected 1 to 50 of the characters a-z, A-Z, 0-9 and -_.~%, found a text"])
    }

    @Test("With a registry, an unknown notification channel is a mistake, at start or at the publish") func channels() throws {
        let head = "android_channels: [orders, promotions]\n"
        #expect(mistakes(shown + "android: { channel_id: orders }", head: head).isEmpty)
        #expect(
            mistakes(shown + "android: { channel_id: order }", head: head) == [
                "event \"e\".android.channel_id: \"order\" is not in android_channels; did you mean \"orders\"? it lists: orders, promotions"
            ])
        let error = #expect(throws: RenderingError.self) {
            try message(shown + "android: { channel_id: \"{{c}}\" }", ["c": "x"], head: head)
        }
        #expect(error?.problems.first?.hasPrefix("android.channel_id: \"x\" is not in android_channels") == true)
    }

    @Test("Fields of an event are asked for by type and name") func fields() throws {
        let text =
            shown + """
                fields:
                  transaction_id: string
                  count: integer
                  amount: decimal
                  final: boolean
                  status: [completed, failed]
                  note: { type: string, required: false }
                """
        let event = try #require(try definition(text).events["e"])
        let right: JSONValue = ["transaction_id": "", "count": 1, "amount": "0.10", "final": true, "status": "failed"]
        #expect(event.fieldProblems(right).isEmpty)
        let wrong: JSONValue = ["count": "1", "amount": .double(0.1), "final": 1, "status": "lost", "note": 5]
        #expect(
            event.fieldProblems(wrong) == [
                "\"transaction_id\" is missing in the published data: write a text",
                "\"count\" in the published data is not a whole number",
                "\"amount\" in the published data is not a decimal number in quotes, such as \"12.50\"",
                "\"final\" in the published data is not true or false",
                "\"status\" in the published data is not one of completed, failed",
                "\"note\" in the published data is not a text",
            ])
    }

    @Test("Empty texts stay and null members go") func emptyTexts() throws {
        let text = shown + "data: { campaign_id: \"\", name: \"{{#x}}{{x}}{{/x}}\", none: null }"
        #expect(try message(text).data == ["campaign_id": "", "name": ""])
    }

    @Test(
        "Mistakes of the new keys have their fix",
        arguments: [
            ("kind: silent", "event \"e\".kind cannot be \"silent\"; it is one of: notification, data, both"),
            (
                "kind: notification\ndata: { a: 1 }",
                "event \"e\".data would never be sent: kind: notification has no data; write kind: both, or remove it"
            ),
            ("locales: { 7: { body: x } }", "event \"e\".locales.7: expected a language tag such as de or pt-BR"),
            ("locales: { de: {} }", "event \"e\".locales.de is empty; write title: or body:"),
            ("locales: { de: { text: x } }", "unknown key \"text\" in event \"e\".locales.de; known keys: title, subtitle, body, image"),
            (
                "fields: { a: text }",
                "event \"e\".fields.a cannot be \"text\"; it is one of: string, integer, decimal, boolean, or a list of values"
            ),
            ("fields: { a: [] }", "event \"e\".fields.a: expected the values it can have, such as [completed, failed]"),
            (
                "webpush: { fcm_options: { link: \"http://x\" } }",
                "event \"e\".webpush.fcm_options.link: expected an address that begins with https://, found the text \"http://x\""
            ),
            ("fcm_options: { label: x }", "unknown key \"label\" in event \"e\".fcm_options; known keys: analytics_label"),
            (
                "apns: { headers: { apns-push-type: background } }",
                "event \"e\".apns.headers.apns-push-type: the policy notify shows a notification, and a background push shows none; remove it, or write kind: data"
            ),
            ("live_activity: { content-state: {} }", "event \"e\".live_activity: has no event; write start, update or end"),
            (
                "android: { vibrate_timings: [1s, fast] }",
                "event \"e\".android.vibrate_timings[1]: expected a duration in seconds such as \"3.5s\", from 0s to 86400s, found the text \"fast\""
            ),
        ])
    func mistakesOfNewKeys(keys: String, mistake: String) {
        let found = mistakes(shown + keys)
        #expect(found.contains(mistake), "\(found)")
    }
}
