import HubCore
import HubDefinitions
import HubYAML
import Testing

/// The part of a definition's event for the gateways: kinds, languages, fields, channels and the platforms' blocks.
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

    /// The content that one publish fills in, and its problems.
    private func content(
        _ text: String, _ data: JSONValue = [:], head: String = "", locale: String? = nil
    ) throws -> (content: NotificationContent, problems: [String]) {
        let definition = try definition(text, head: head)
        let variant = try #require(definition.events["e"]?.variants[0])
        let context = TemplateContext(
            channel: .init(session: "s", user: nil), session: nil, participant: participant,
            eventID: "0193457e-0000-7000-8000-000000000001", eventName: "e", eventTime: 1000, data: data)
        var problems: [String] = []
        let content = variant.content(
            context, locale: variant.locales.tag(for: locale), androidChannels: definition.androidChannels, problems: &problems)
        return (content, problems)
    }

    private func filled(
        _ text: String, _ data: JSONValue = [:], head: String = "", locale: String? = nil
    ) throws -> NotificationContent {
        let (content, problems) = try content(text, data, head: head, locale: locale)
        #expect(problems.isEmpty)
        return content
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
        let content = try filled(text, locale: locale)
        #expect(content.body == body)
        #expect(content.title == (body == "Oi" ? "Olá" : "T"))
    }

    @Test("A subtitle is a text like the others: with variables, in each language, and none where it is empty") func subtitle() throws {
        let text = #"""
            to: all
            policy: notify
            notification: { title: T, subtitle: "{{#n}}Round {{n}}{{/n}}", body: B }
            locales: { de: { subtitle: "{{#n}}Runde {{n}}{{/n}}" }, fr: { title: "T fr" } }
            """#
        for (locale, subtitle) in [(nil, "Round 2"), ("de-CH", "Runde 2"), ("fr", "Round 2")] as [(String?, JSONValue)] {
            #expect(try filled(text, ["n": 2], locale: locale).apns == ["alert": ["subtitle": subtitle]])
        }
        #expect(try filled(text).apns.isEmpty)
    }

    @Test("A variant's blocks go over its event's, member by member") func merged() throws {
        let text = """
            android: { channel_id: game, priority: high, notification: { color: "#000000" } }
            apns: { sound: default, alert: { subtitle: S } }
            variants:
              - { to: all, policy: notify, notification: { title: T, body: B }, android: { color: "#ffffff" }, apns: { payload: { aps: { alert: { loc-key: K } } } } }
            """
        let content = try filled(text)
        #expect(content.android == ["priority": "HIGH", "notification": ["channel_id": "game", "color": "#ffffff"]])
        #expect(content.apns == ["sound": "default", "alert": ["subtitle": "S", "loc-key": "K"]])
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
        let content = try filled(text)
        #expect(content.data == ["state": "1"] && content.android == ["direct_boot_ok": true])
        #expect(content.apns.isEmpty && content.apnsRoot.isEmpty && content.webpush.isEmpty)
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
        let full = try filled(text, data)
        #expect(full.kind == .data && full.isVisible)
        #expect(full.webpush["fcm_options"] == ["link": "https://x/7"])
        #expect(full.fcmOptions == ["analytics_label": "l_7"])
        #expect(full.liveActivityToken == "abcd")
        #expect(full.apns == ["event": "update", "timestamp": 5, "content-state": ["score": 3, "text": "is 3"]])
        let idle = try filled(text, ["id": 7, "token": "", "at": 5, "score": 3])
        #expect(idle.liveActivityToken == nil && idle.apns.isEmpty)
    }

    @Test("A filled-in value that a gateway would refuse refuses the publish") func filledIn() throws {
        let text = shown + "fcm_options: { analytics_label: \"{{label}}\" }"
        #expect(try filled(text, ["label": "ok"]).fcmOptions == ["analytics_label": "ok"])
        #expect(
            try content(text, ["label": "not ok"]).problems == [
                "fcm_options.analytics_label: expected 1 to 50 of the characters a-z, A-Z, 0-9 and -_.~%, found a text"
            ])
    }

    @Test("With a registry, an unknown notification channel is a mistake, at start or at the publish") func channels() throws {
        let head = "android_channels: [orders, promotions]\n"
        #expect(mistakes(shown + "android: { channel_id: orders }", head: head).isEmpty)
        #expect(
            mistakes(shown + "android: { channel_id: order }", head: head) == [
                "event \"e\".android.channel_id: \"order\" is not in android_channels; did you mean \"orders\"? it lists: orders, promotions"
            ])
        let problems = try content(shown + "android: { channel_id: \"{{c}}\" }", ["c": "x"], head: head).problems
        #expect(problems.first?.hasPrefix("android.channel_id: \"x\" is not in android_channels") == true)
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
        #expect(try filled(text).data == ["campaign_id": "", "name": ""])
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
