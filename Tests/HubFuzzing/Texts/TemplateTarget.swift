import HubCore
import HubDefinitions
import HubJSON
import HubTesting
import HubYAML

/// Notification texts. An input is a template, a line feed and the published data.
enum TemplateTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens = [
            "{{", "}}", "{{{", "}}}", "{{#", "{{^", "{{/", "{{&", "{{!", "{{>", "{{=<% %>=}}", ".", "(", ")", "a", "data.a", "session.id",
            "participant.name", "event.time", "uppercased(",
            "count(", "plusone(", "first(", "\n{\"a\":", "[1,2]", "-9223372036854775808", "é",
        ]
        let source = InputSource("templates", tokens: tokens) { random in
            Array((random.template() + "\n" + "{\"a\":\(random.json(depth: 2)),\"list\":[\(random.json(depth: 1)),{\"b\":1}]}").utf8)
        }
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let text = JSONValue.string(String(decoding: parts[0], as: UTF8.self)).text
        let data = (try? JSONValue(parsing: Array(parts[1]))) ?? .null
        let file = "channel: presence-g-{session}\nevents: { e: { to: all, policy: notify, notification: { title: T, body: \(text) } } }"
        do throws(YAMLError) {
            let set = try DefinitionSet.load([("f.yaml", file)])
            return set.definition(named: "f").flatMap { RenderingCheck.check($0, data: data) }
        } catch {
            return YAMLWords.judge(error, file: "f.yaml", quotedBytesMax: 2 * bytes.count)
        }
    }
}

extension SeededRandom {
    /// A template, mostly valid.
    mutating func template(depth: Int = 2) -> String {
        (0...below(3)).map { _ in piece(depth) }.joined()
    }

    private mutating func piece(_ depth: Int) -> String {
        let names = [
            "a", "a.b", "data.a", "list", "session", "session.number", "session.attributes.city", "participant.name", "event.time", "user",
            ".", "nobody", "data",
        ]
        var name = element(of: names)
        if chance(1, in: 5) {
            name =
                element(of: ["uppercased", "lowercased", "count", "first", "last", "reversed", "plusone", "minusone", "even", "odd", "x"])
                + "(\(name))"
        }
        switch below(6) {
        case 0: return element(of: ["text", " ", "é🎯", "{", "}}", "<b>"])
        case 1 where depth > 0: return "{{#\(name)}}\(template(depth: depth - 1)){{/\(name)}}"
        case 2 where depth > 0: return "{{^\(name)}}\(template(depth: depth - 1)){{/\(name)}}"
        case 3: return "{{{\(name)}}}"
        case 4: return "{{& \(name) }}"
        default: return "{{\(name)}}"
        }
    }
}
