import HubConfiguration
import HubTesting
import HubYAML

/// Configuration files.
enum ConfigurationTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens =
            YAMLWords.tokens + [
                "listen:", "apps:", "- id: \"1\"", "key: k", "secret: s", "limits:", "push:", "store: sqlite:x", "10s", "1MiB", "webhooks:",
                "tls:", "cors:",
            ]
        let source = InputSource("configurations", tokens: tokens, wellFormed: configuration)
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func configuration(_ random: inout SeededRandom) -> [UInt8] {
        var text = ""
        if random.chance(1, in: 2) {
            text +=
                "listen: { host: \(random.element(of: ["127.0.0.1", "\"::1\"", "h", "1"])), port: \(random.number()), loops: \(random.number()) }\n"
        }
        if random.chance(2, in: 3) {
            text += "apps:\n"
            for index in 0...random.below(3) {
                text += "  - id: \"\(random.chance(1, in: 8) ? "x" : String(index))\"\n    key: k\(index)\n    secret: s\n"
                for key in ["max_connections", "client_events_per_second", "presence_members_max", "event_data_bytes_max", "no_such_key"]
                where random.chance(1, in: 4) { text += "    \(key): \(random.number())\n" }
                for key in ["enabled", "client_events", "subscription_count", "watchlist"] where random.chance(1, in: 4) {
                    text += "    \(key): \(random.element(of: ["true", "false", "yes", "1"]))\n"
                }
                for key in ["activity_timeout", "ping_interval", "pong_timeout"] where random.chance(1, in: 4) {
                    text += "    \(key): \(random.duration())\n"
                }
                if random.chance(1, in: 4) {
                    text +=
                        "    webhooks: [ { url: \"\(random.element(of: ["http://127.0.0.1/x", "ftp://x", "", "https://é"]))\", events: [channel_occupied, member_added] } ]\n"
                }
                if random.chance(1, in: 6) { text += "    allowed_origins: [https://example.com, \(random.word())]\n" }
            }
        }
        if random.chance(1, in: 3) {
            text +=
                "limits: { request_timeout: \(random.duration()), send_queue_bytes_max: \(random.element(of: ["1MiB", "64KiB", "0", "1", "99999999999GiB"])) }\n"
        }
        if random.chance(1, in: 3) { text += "store: \(random.element(of: ["sqlite:./x.db", "postgres://u:p@h/d", "x", "\"sqlite:\""]))\n" }
        if random.chance(1, in: 4) {
            text +=
                "push:\n  apns: { key_path: k, key_id: ABCDE12345, team_id: ABCDE12345, topic: t, url: \(random.element(of: ["https://a", "http://127.0.0.1:1", "x"])) }\n"
        }
        if random.chance(1, in: 4) { text += "cors: { origins: [\(random.element(of: ["https://a.b", "'*'", "x"]))] }\n" }
        return Array(text.utf8)
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        do throws(YAMLError) {
            let configuration = try ConfigurationParser.parse(file: (name: "f.yaml", text: text))
            return try ConfigurationParser.parse(file: (name: "f.yaml", text: text)) == configuration
                ? nil : "read twice it is two configurations"
        } catch {
            return YAMLWords.judge(error, file: "f.yaml")
        }
    }
}

extension SeededRandom {
    fileprivate mutating func number() -> String {
        element(of: ["0", "1", "2", "100", "6001", "65536", "-1", "1.5", "9223372036854775808", "x", "0x10", "1_000"])
    }
    fileprivate mutating func duration() -> String {
        element(of: ["10s", "120s", "2m", "250ms", "0s", "-1s", "1d", "99999999999999999999s", "10", "s", "1.5s"])
    }
}
