import HubConfiguration
import HubTesting
import HubYAML
import Testing

@Suite("Mistakes in the configuration")
struct ConfigurationMistakeTests {
    @Test(
        "an app's push credentials that are incomplete are mistakes with their place",
        arguments: [
            ("apns: { key_path: a, key_id: K, team_id: T }", "has no topic: write it; an app's own credentials stand in the file"),
            ("fcm: { url: \"https://x\" }", "has no service_account: name the service account's file"),
            (
                "apns: { key_path: a, key_id: K, team_id: T, topic: o, sandbox_key_id: S }",
                "has a sandbox_key_id and no sandbox_key_path: write both"
            ),
            ("apns: { use_sandbox: true }", "unknown key \"use_sandbox\""), ("gcm: {}", "unknown key \"gcm\""),
        ])
    func wrongAppCredentials(push: String, expected: String) {
        let found = ConfigurationText.mistakes(
            "apps: [{id: 5, key: a, secret: b, push: { \(push) }}]",
            ["APNS_TOPIC": "x", "APNS_KEY_PATH": "x", "APNS_KEY_ID": "x", "APNS_TEAM_ID": "x"])
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    static let wrong: [(String, [String])] = [
        (
            "lissten: {}",
            [
                "unknown key \"lissten\" in the file; did you mean \"listen\"? known keys: listen, apps, limits, store, backplane, channels, data, log_level, cors, push, metrics, operator, console"
            ]
        ),
        (
            "\nlisten: { hots: x }",
            ["2:unknown key \"hots\" in listen; did you mean \"host\"? known keys: host, port, loops, tls, proxy_protocol"]
        ),
        ("- a", ["the file: expected a map, found a list"]),
        (
            "listen: { port: 65536, loops: 257, host: 'a b' }",
            [
                "listen.host: expected an address or a host name without spaces",
                "listen.port: expected a whole number from 0 to 65535, found the number 65536",
                "listen.loops: expected a whole number from 1 to 256, found the number 257",
            ]
        ),
        (
            "listen: { port: -1, loops: 0 }",
            [
                "listen.port: expected a whole number from 0 to 65535, found the number -1",
                "listen.loops: expected a whole number from 1 to 256, found the number 0",
            ]
        ),
        ("listen: { port: http }", ["listen.port: expected a whole number from 0 to 65535, found the text \"http\""]),
        ("listen: { tls: { cert: x } }", ["listen.tls has a cert and no key: name the file of its private key"]),
        ("listen: { tls: { key: x } }", ["listen.tls has a key and no cert: name the file of its certificate"]),
        ("apps: []", ["apps is empty: list at least one app with id:, key: and secret:"]),
        ("apps: {}", ["apps: expected a list, found a map"]),
        (
            "apps: [{}]",
            [
                "apps[0] has no id: write id: \"1\"",
                "apps[0] has no key: write key: and secret: of the app, or set TANDEM_APP_KEY",
                "apps[0] has no secret: write key: and secret: of the app, or set TANDEM_APP_SECRET",
            ]
        ),
        (
            "apps: [{id: my-app, key: k, secret: s}]",
            ["apps[0].id: expected digits, found the text \"my-app\": the Pusher libraries accept no other application ids"]
        ),
        (
            "apps: [{id: 1, key: k, secret: s}, {id: 1, key: k, secret: s}]",
            [
                "the app id \"1\" stands twice; every app needs its own",
                "the key \"k\" stands twice; a client is told from its key alone",
            ]
        ),
        (
            "apps: [{id: 1, keys: [{key: k, secret: s}, {key: k, secret: t}]}]",
            ["the key \"k\" stands twice; a client is told from its key alone"]
        ),
        ("apps: [{id: 1, keys: [{key: k}]}]", ["apps[0].keys[0] has no secret: write key: and secret:"]),
        (
            "apps: [{id: 1, key: 'a/b', secret: s}]",
            ["apps[0]: a key or secret is printable text without spaces, and a key has no /"]
        ),
        (
            "apps: [{id: 1, key: k, secret: s, ping_interval: 0s, pong_timeout: 5, activity_timeout: 1500ms, max_connections: -1, enabled: yes}]",
            [
                "apps[0].ping_interval: expected a duration greater than zero, found the text \"0s\"",
                "apps[0].pong_timeout: expected a duration such as 250ms, 15s, 5m, 2h or 3d, found the number 5",
                "apps[0].activity_timeout: clients are told whole seconds; write them so",
                "apps[0].max_connections: expected a whole number from 0, found the number -1",
                "apps[0].enabled: expected true or false, found the text \"yes\"",
            ]
        ),
        (
            "apps: [{id: 1, key: k, secret: s, event_data_bytes_max: 0, presence_members_max: 0, client_events_per_second: 0}]",
            [
                "apps[0].event_data_bytes_max: expected 1 to 16777216 bytes, found the number 0",
                "apps[0].presence_members_max: expected a whole number from 1 to 1000000, found the number 0",
                "apps[0].client_events_per_second: expected a whole number from 1 to 1000000, found the number 0",
            ]
        ),
        (
            "apps: [{id: 1, key: k, secret: s, webhooks: [{url: ftp://x, events: [cache_mis]}, {url: http://x}, {events: []}, {url: http://u@x, events: []}]}]",
            [
                "apps[0].webhooks[0].url: expected an address that begins with http:// or https://",
                "an element of apps[0].webhooks[0].events cannot be \"cache_mis\"; did you mean \"cache_miss\"? it is one of: channel_occupied, channel_vacated, member_added, member_removed, client_event, cache_miss, subscription_count",
                "apps[0].webhooks[1] has no events: list some of channel_occupied, channel_vacated, member_added, member_removed, client_event, cache_miss, subscription_count",
                "apps[0].webhooks[2] has no url: write url: https://…",
                "apps[0].webhooks[3].url: expected an address that begins with http:// or https://",
                "apps[0].webhooks[3].events is empty; list some of channel_occupied, channel_vacated, member_added, member_removed, client_event, cache_miss, subscription_count",
            ]
        ),
        (
            "limits: { send_queue_bytes_max: 1MB }",
            ["limits.send_queue_bytes_max: expected a number of bytes such as 10240, 64KiB or 1MiB, found the text \"1MB\""]
        ),
        (
            "limits: { send_queue_bytes_max: 8KiB }",
            [
                "limits.send_queue_bytes_max (8192) has no room for one event of the app 1 (event_data_bytes_max 10240); raise the first or lower the second"
            ]
        ),
        (
            "limits: { send_queue_bytes_total_max: 3MiB }\nlisten: { loops: 4 }",
            [
                "limits.send_queue_bytes_total_max (3145728) leaves each of 4 loops less than limits.send_queue_bytes_max (1048576); raise the first or lower the second"
            ]
        ),
        (
            "limits: { request_timeout: 0s, wrong_join_codes_per_minute: 0 }",
            [
                "limits.request_timeout: expected a duration greater than zero, found the text \"0s\"",
                "limits.wrong_join_codes_per_minute: expected a whole number from 1 to 1000000, found the number 0",
            ]
        ),
        (
            "limits: { joins_per_minute: -1, trusted_proxies: [10.0.0.1/8, proxy.example, 10.0.0.0/8, \"::1/129\"] }",
            [
                "limits.joins_per_minute: expected a whole number from 0 to 60000, found the number -1",
                "limits.trusted_proxies: expected an address such as 192.0.2.1 or a network such as 10.0.0.0/8 or 2001:db8::/32, with no bit set behind its prefix, found \"10.0.0.1/8\"",
                "limits.trusted_proxies: expected an address such as 192.0.2.1 or a network such as 10.0.0.0/8 or 2001:db8::/32, with no bit set behind its prefix, found \"proxy.example\"",
                "limits.trusted_proxies: expected an address such as 192.0.2.1 or a network such as 10.0.0.0/8 or 2001:db8::/32, with no bit set behind its prefix, found \"::1/129\"",
            ]
        ),
        ("limits: { trusted_proxies: 10.0.0.0/8 }", ["limits.trusted_proxies: expected a list, found the text \"10.0.0.0/8\""]),
        ("listen: { proxy_protocol: v2 }", ["listen.proxy_protocol: expected true or false, found the text \"v2\""]),
        ("store: mysql://u:geheim@x", ["store: expected sqlite:PATH or postgres://HOST/DATABASE"]),
        ("store: 'sqlite:'", ["store: expected sqlite:PATH or postgres://HOST/DATABASE"]),
        ("backplane: nats://x", ["backplane: expected local or redis://HOST:PORT"]),
        (
            "log_level: verbose",
            ["log_level cannot be \"verbose\"; it is one of: trace, debug, info, notice, warning, error, critical"]
        ),
        (
            "cors: { origins: [\"https://a/b\", \"a.example\"] }",
            [
                "cors.origins: expected an origin such as https://app.example.com, without a path, found \"https://a/b\"",
                "cors.origins: expected an origin such as https://app.example.com, without a path, found \"a.example\"",
            ]
        ),
        (
            "metrics: { token: short-geheim }",
            ["metrics.token: expected at least 16 printable characters without spaces: take some from openssl rand -hex 16"]
        ),
        ("operator: { key: k }", ["operator has a key and no secret: write operator.secret or TANDEM_OPERATOR_SECRET"]),
        ("operator: { secret: s }", ["operator has a secret and no key: write operator.key or TANDEM_OPERATOR_KEY"]),
        (
            "operator: { key: k, secret: short-geheim }",
            ["operator.secret: expected at least 16 printable characters without spaces: take some from openssl rand -hex 16"]
        ),
        (
            "operator: { key: app-key, secret: long-enough-geheim }",
            ["operator: an app has this key or secret; operators need their own"]
        ),
        (
            "metrics: { tokens: x }",
            ["unknown key \"tokens\" in metrics; did you mean \"token\"? known keys: token"]
        ),
        (
            "push: { apns: { key_path: x, key_id: 'a b' } }",
            [
                "push.apns.key_id: expected text without spaces", "push.apns has no team_id: write it, or set APNS_TEAM_ID",
                "push.apns has no topic: write it, or set APNS_TOPIC",
            ]
        ),
        (
            "push: { fcm: { url: \"http://fcm.example\" } }",
            [
                "push.fcm.url: http:// is for this machine only (127.0.0.1, ::1, localhost); use https://",
                "push.fcm has no service_account: name the service account's file, or set GOOGLE_APPLICATION_CREDENTIALS",
            ]
        ),
        ("push: { fcm: { service_account: x, url: x } }", ["push.fcm.url: expected an address such as https://127.0.0.1:8443"]),
        (
            "push: { fcm: { service_account: x, messages_per_minute: 10 } }",
            ["push.fcm.messages_per_minute: expected a whole number from 60 to 100000000, found the number 10"]
        ),
        ("push: { gcm: {} }", ["unknown key \"gcm\" in push; did you mean \"fcm\"? known keys: apns, fcm, stale_after"]),
        ("a: [", ["2:bad YAML: did not find expected node content while parsing a flow node (line 2)"]),
    ]

    @Test("every mistake has its file, its line and the fix", arguments: wrong.indices)
    func mistake(index: Int) {
        let (text, expected) = Self.wrong[index]
        let lines = expected.map { $0.hasPrefix("2:") ? "tandem.yaml:2: \($0.dropFirst(2))" : "tandem.yaml:1: \($0)" }
        #expect(Set(ConfigurationText.mistakes(text)) == Set(lines), "\(ConfigurationText.mistakes(text).joined(separator: "\n"))")
        #expect(ConfigurationText.mistakes(text).count == lines.count)
    }

    @Test(
        "mistakes from elsewhere are called by their names",
        arguments: [
            (
                ["TANDEM_PORT": "tcp://10.0.0.1:6001"],
                "TANDEM_PORT: listen.port: expected a whole number from 0 to 65535, found the text \"tcp://10.0.0.1:6001\""
            ),
            (["TANDEM_LOOPS": "0"], "TANDEM_LOOPS: listen.loops: expected a whole number from 1 to 256, found the number 0"),
            (["TANDEM_HOST": "a b"], "TANDEM_HOST: listen.host: expected an address or a host name without spaces"),
            (["TANDEM_STORE": "x"], "TANDEM_STORE: store: expected sqlite:PATH or postgres://HOST/DATABASE"),
            (["TANDEM_BACKPLANE": "x"], "TANDEM_BACKPLANE: backplane: expected local or redis://HOST:PORT"),
            (["TANDEM_TLS_CERT": "x"], "TANDEM_TLS_CERT: listen.tls has a cert and no key: name the file of its private key"),
            (["APNS_USE_SANDBOX": "yes"], "APNS_USE_SANDBOX: expected true or false"),
            (
                ["TANDEM_FCM_URL": "https://x"],
                "TANDEM_FCM_URL: push.fcm has no service_account: name the service account's file, or set GOOGLE_APPLICATION_CREDENTIALS"
            ),
        ])
    func elsewhere(environment: [String: String], message: String) {
        #expect(ConfigurationText.mistakes(nil, environment) == [message])
    }

    @Test("a wrong flag is called by its name")
    func flags() {
        #expect(
            ConfigurationText.mistakes(nil, ["TANDEM_PORT": "5"], .init(port: "x")) == [
                "--port: listen.port: expected a whole number from 0 to 65535, found the text \"x\""
            ])
        #expect(
            ConfigurationText.mistakes(nil, [:], .init(logLevel: "inf")) == [
                "--log-level: log_level cannot be \"inf\"; did you mean \"info\"? it is one of: trace, debug, info, notice, warning, error, critical"
            ])
    }

    @Test(
        "the credentials that everybody knows are refused where others can reach the server",
        arguments: [
            ("0.0.0.0", "app-key", "app-secret", false), ("::", "app-key", "app-secret", false),
            ("192.168.0.7", "mine", "app-secret", false), ("example.org", "app-key", "0123456789abcdef", false),
            ("127.1", "app-key", "app-secret", false), ("127.0.0.1.example.org", "app-key", "app-secret", false),
            ("127.0.0.1", "app-key", "app-secret", true),
            ("127.8.8.8", "app-key", "app-secret", true), ("::1", "app-key", "app-secret", true),
            ("localhost", "app-key", "app-secret", true), ("0.0.0.0", "mine", "0123456789abcdef", true),
        ])
    func defaultCredentials(host: String, key: String, secret: String, isAllowed: Bool) {
        let found = ConfigurationText.mistakes(nil, ["TANDEM_APP_KEY": key, "TANDEM_APP_SECRET": secret], .init(host: host))
        #expect(found.isEmpty == isAllowed)
        if !isAllowed {
            #expect(
                found.count == 1
                    && found[0].hasPrefix(
                        "--host: listen.host \(host) can be reached from other machines, and the app 1 still has")
            )
        }
    }

    @Test("a secret of fewer than 16 characters is refused where others can reach the server, and warned of elsewhere")
    func shortSecrets() throws {
        let text = """
            apps:
              - id: 1
                key: mine
                secret: fifteen-letters
                keys: [{ key: next, secret: \(Self.long) }]
              - id: 2
                keys:
                  - key: other
                    secret: short
            """
        let (first, second) = ("tandem.yaml:4: apps[0].secret", "tandem.yaml:9: apps[1].keys[0].secret")
        let refusals = ConfigurationText.mistakes(text, [:], .init(host: "0.0.0.0"))
        #expect(
            refusals.count == 2 && refusals[0].hasPrefix("\(first) has fewer than 16")
                && refusals[1].hasPrefix("\(second) has fewer than 16"))
        #expect(refusals.allSatisfy { $0.contains("openssl rand -hex 16") && !$0.contains("fifteen") })
        let warnings = try ConfigurationText.parse(text).warnings
        #expect(warnings.count == 2 && warnings[0].hasPrefix(first) && warnings[1].hasPrefix(second))
        let environment = ["TANDEM_APP_ID": "1", "TANDEM_APP_SECRET": "from-elsewhere"]
        #expect(
            try ConfigurationText.parse(text, environment).warnings.first?.hasPrefix("TANDEM_APP_SECRET: TANDEM_APP_SECRET has") == true)
        #expect(ConfigurationText.mistakes(nil, ["TANDEM_APP_KEY": "mine", "TANDEM_APP_SECRET": "short"], .init(host: "::")).count == 1)
        #expect(try ConfigurationText.parse().warnings == [], "the well-known pair, on this machine only")
    }

    /// The shortest allowed secret.
    private static let long = "0123456789abcdef"

    @Test("the PROXY protocol from everybody is warned of where others can reach the server, and not where proxies are named")
    func openProxyDoor() throws {
        let app = "apps: [{ id: 5, key: a, secret: 0123456789abcdef }]\n"
        func warnings(_ host: String, _ limits: String = "{}") throws -> [String] {
            try ConfigurationText.parse("\(app)listen: { host: \(host), proxy_protocol: true }\nlimits: \(limits)").warnings
        }
        let found = try warnings("0.0.0.0")
        #expect(found.count == 1 && found.first?.contains("limits.trusted_proxies is empty") == true)
        #expect(try warnings("0.0.0.0", "{ trusted_proxies: [10.0.0.0/8] }") == [] && warnings("127.0.0.1") == [])
    }

    @Test("secrets and passwords are in no description and no mistake")
    func secrets() throws {
        let configuration = try ConfigurationText.parse(ConfigurationText.everything)
        #expect(
            !String(describing: configuration.apps).contains("the-secret")
                && !String(reflecting: configuration.apps).contains("the-secret"))
        var dumped = ""
        dump(configuration.apps, to: &dumped)
        #expect(!dumped.contains("the-secret") && dumped.contains("the-key"))
        #expect(!ConfigurationText.mistakes("store: mysql://u:geheim@x\nbackplane: http://:geheim@x").joined().contains("geheim"))
    }

    @Test("mutilated files give a configuration or mistakes, never a crash")
    func mutilated() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("Configuration seed \(seed)")
        var random = SeededRandom(state: seed)
        // Each run draws other ones; `make fuzz` runs many more.
        for round in 0..<300 {
            let text = random.mutilate(ConfigurationText.everything, noise: "{}[]:,-#\"'\n \t&*!|>0é:/@", isCut: round % 3 == 0)
            do throws(YAMLError) {
                _ = try ConfigurationText.parse(text)
            } catch {
                #expect(error.mistakes.allSatisfy { $0.line >= 1 && $0.file == "tandem.yaml" && !$0.message.isEmpty })
            }
        }
    }
}
