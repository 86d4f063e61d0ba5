import HubCore
import HubDefinitions
import HubDelivery
import HubJSON
import HubTesting
import HubYAML

/// Channel definitions.
enum DefinitionTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens =
            YAMLWords.tokens + [
                "to: all", "policy: notify", "{{", "}}", "{session}", "{user}", "variants:", "when:", "notification:", "ttl: 5m", "group:",
                "roles: [a]", "kind: data", "locales: { de: { body: x } }", "fields: { a: decimal }", "android_channels: [a]", "webpush:",
                "fcm_options:", "live_activity:", "payload: { aps: ", "headers: { apns-push-type: ", "light_settings:", "android_v2:",
            ]
        let source = InputSource("definitions", tokens: tokens, wellFormed: definition)
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func definition(_ random: inout SeededRandom) -> [UInt8] {
        let channel = random.element(of: [
            "presence-game-{session}", "private-order-{user}", "presence-{session}-{user}", "news", "private-x", "presence-{nobody}",
        ])
        var text = "channel: \(channel)\n"
        if random.chance(1, in: 2) { text += "roles: [hider, seeker]\n" }
        if random.chance(1, in: 3) { text += "join: { identity: \(random.element(of: ["email", "device", "x"])), role: hider }\n" }
        text += "events:\n"
        for index in 0..<random.below(4) {
            text += "  e\(index):\n"
            if random.chance(1, in: 4) {
                text += "    variants:\n"
                for _ in 0...random.below(3) {
                    text +=
                        "      - { \(variant(&random, separator: ", "))\(random.chance(1, in: 2) ? ", when: { phase: \(random.json(depth: 1)) }" : "") }\n"
                }
            } else {
                text += "    " + variant(&random, separator: "\n    ") + "\n"
            }
        }
        return Array(text.utf8)
    }

    private static func variant(_ random: inout SeededRandom, separator: String) -> String {
        var parts = ["to: " + random.element(of: ["all", "hider", "[hider, seeker]", "\"{user}\"", "nobody"])]
        parts.append("policy: " + random.element(of: ["realtime_only", "sync", "notify", "critical", "both", "push_only", "never"]))
        if random.chance(2, in: 3) {
            parts.append("notification: { title: \(random.quoted(random.template())), body: \(random.quoted(random.template())) }")
        }
        if random.chance(1, in: 2) { parts.append("data: " + random.json(depth: 2)) }
        if random.chance(1, in: 3) { parts.append("ttl: " + random.element(of: ["5m", "0s", "1h", "99999999999d", "-1s", "5"])) }
        if random.chance(1, in: 4) { parts.append("group: " + random.quoted(random.template())) }
        if random.chance(1, in: 4) { parts.append("apns: { sound: default, interruption-level: time-sensitive, content-available: 1 }") }
        if random.chance(1, in: 4) { parts.append("android: { channel_id: game, priority: high }") }
        if random.chance(1, in: 4) { parts.append("kind: " + random.element(of: ["data", "both", "notification", "x"])) }
        if random.chance(1, in: 4) { parts.append("locales: { de: { body: \(random.quoted(random.template())) }, pt-BR: { title: x } }") }
        if random.chance(1, in: 4) {
            let label = random.quoted(random.template())
            parts.append("fcm_options: { analytics_label: \(label) }")
        }
        if random.chance(1, in: 4) { parts.append("webpush: { headers: { TTL: \"5\" }, notification: \(random.json(depth: 2)) }") }
        if random.chance(1, in: 4) {
            let event = random.element(of: ["start", "update", "end", "never"])
            parts.append(
                "live_activity: { token: \(random.quoted(random.template())), event: \(event), content-state: \(random.json(depth: 2)) }")
        }
        if random.chance(1, in: 5) { parts.append("android_v2: { ttl: 5s, remote_notification: { notification: { id: 5 } } }") }
        return parts.joined(separator: separator)
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        do throws(YAMLError) {
            let set = try DefinitionSet.load([("f.yaml", text)])
            guard try DefinitionSet.load([("f.yaml", text)]) == set else { return "read twice it is two definitions" }
            return set.definition(named: "f").flatMap {
                RenderingCheck.check($0, data: ["a": 1, "phase": "endgame", "list": [1, ["b": "x"]]])
            }
        } catch {
            return YAMLWords.judge(error, file: "f.yaml", quotedBytesMax: bytes.count)
        }
    }
}

/// Renders the notifications of a definition, with a value for every name.
enum RenderingCheck {
    private static let session = Session(
        app: "1", id: "monday", number: 42, definition: "f", joinCode: "ABC123", attributes: ["city": "Zürich", "zone": ["name": "A"]],
        createdAt: 0)
    private static let participant = Participant(
        app: "1", session: "monday", user: "ann", number: 7, name: "Ann <b>&\"'", email: "ann@example.com", role: "hider", joinedAt: 0)

    static func check(_ definition: ChannelDefinition, data: JSONValue) -> String? {
        for (name, event) in definition.events {
            for variant in event.variants {
                let record = EventRecord(
                    id: "0193457e-0000-7000-8000-000000000001", app: "1", channel: "c", name: name, data: "", policy: variant.policy,
                    committedAt: 1_767_920_400_250, expiresAt: 0)
                var rendering = Rendering(
                    definition: definition, event: record, channel: .init(session: "monday", user: "ann"), session: session, data: data)
                do throws(RenderingError) {
                    for locale in [nil, "de-CH", "pt-BR"] {
                        let message = try rendering.message(variant, user: "ann", participant: participant, locale: locale)
                        guard try rendering.message(variant, user: "ann", participant: participant, locale: locale) == message else {
                            return "made twice it is two notifications"
                        }
                    }
                } catch {
                    if error.problems.isEmpty { return "a refusal without a reason" }
                }
            }
        }
        return nil
    }
}

/// The tokens of YAML, and the required form of its errors.
enum YAMLWords {
    static let tokens = [
        "\n", "\n  ", "\n    - ", ": ", "- ", "{ ", " }", "[", "]", ", ", "#", "\"", "'", "|\n", ">\n", "&a ", "*a", "!!str ", "<<: *a",
        "---\n", "...\n", "%YAML 1.1\n", "~", "null",
        "true", "no", "0x10", "1e9", "\t", "? ", "é", "\u{FEFF}", "\u{1}", "\u{85}", "\u{2028}", "{{{{{{{{", "[[[[[[[[", "a: &x [*x]",
    ]

    /// - Parameter quotedBytesMax: bytes of the file that an error may quote.
    static func judge(_ error: YAMLError, file: String, quotedBytesMax: Int = 2000) -> String? {
        if error.mistakes.isEmpty || error.mistakes.count > YAMLLimits.mistakesMax + 1 { return "\(error.mistakes.count) mistakes" }
        for mistake in error.mistakes
        where mistake.line < 1 || mistake.file != file || mistake.message.isEmpty || mistake.message.utf8.count > quotedBytesMax + 1000 {
            return "a mistake without a place or a sentence: \(mistake)"
        }
        return nil
    }
}
