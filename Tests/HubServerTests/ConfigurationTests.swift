import HubServer
import HubTesting
import HubYAML
import Testing

private func parse(
    _ text: String? = nil, _ environment: [String: String] = [:], _ flags: ConfigurationFlags = .init()
) throws(YAMLError) -> Configuration {
    try ConfigurationParser.parse(file: text.map { (name: "tandem.yaml", text: $0) }, environment: environment, flags: flags)
}

private func mistakes(
    _ text: String? = nil, _ environment: [String: String] = [:], _ flags: ConfigurationFlags = .init()
) -> [String] {
    do throws(YAMLError) {
        _ = try parse(text, environment, flags)
        return []
    } catch {
        return error.mistakes.map(\.description)
    }
}

private let everything = """
    listen:
      host: 127.0.0.2
      port: 7001
      loops: 4
      tls: { cert: c.pem, key: k.pem }
    apps:
      - id: "12"
        key: the-key
        secret: the-secret
        keys: [{ key: second, secret: s2 }]
        enabled: false
        max_connections: 5
        client_events: false
        client_events_per_second: 20
        subscription_count: true
        presence_members_max: 200
        presence_linger: 500ms
        event_data_bytes_max: 20KiB
        activity_timeout: 60s
        ping_interval: 5s
        pong_timeout: 2500ms
        allowed_origins: ["https://a.example"]
        watchlist: false
        webhooks: [ { url: "http://h.example/x", events: [channel_occupied, cache_miss] } ]
      - { id: 13, keys: [{ key: third, secret: s3 }] }
    limits:   { max_connections: 5000, connections_per_address: 3, request_timeout: 1m, send_queue_bytes_max: 2MiB, send_queue_bytes_total_max: 1GiB, wrong_join_codes_per_minute: 5 }
    store:    postgres://u:p@db/tandem
    backplane: redis://r:6379
    channels: ./c
    data: ./d
    log_level: debug
    cors:     { origins: ["https://app.example", "http://localhost:3000"] }
    push:
      apns: { key_path: a.p8, key_id: K, team_id: T, topic: com.example.app, url: "https://sim:8443", ca_file: ca.pem, use_sandbox: true }
      fcm:  { service_account: f.json, url: "http://127.0.0.1:9000/x", ca_file: ca2.pem, messages_per_minute: 1200 }
      stale_after: 14d
    """

@Suite("Configuration")
struct ConfigurationTests {
    @Test("without any file everything has its default")
    func defaults() throws {
        for configuration in [try parse(), try parse(""), try parse("# nothing\n")] {
            #expect(
                configuration.listen.host == Setting("127.0.0.1", .fallback)
                    && configuration.listen.port == Setting(6001, .fallback))
            #expect(configuration.listen.loops.value == nil && configuration.listen.tls == nil)
            #expect(configuration.apps.count == 1)
            let app = try #require(configuration.apps.first)
            #expect(app.id == "1" && app.credentials == [AppCredential(key: "app-key", secret: "app-secret")] && app.isEnabled)
            #expect(app.connectionsMax == 0 && app.clientEvents && app.clientEventsPerSecond == 10 && !app.subscriptionCount)
            #expect(app.presenceMembersMax == 100 && app.presenceLinger == .seconds(3) && app.eventDataBytesMax == 10240 && app.activityTimeout == .seconds(120))
            #expect(
                app.pingInterval == .seconds(15) && app.pongTimeout == .seconds(10) && app.allowedOrigins.isEmpty && app.watchlist
            )
            #expect(app.webhooks.isEmpty && configuration.limits == .init() && configuration.limits.sendQueueBytesMax == 1 << 20)
            #expect(configuration.limits.sendQueueBytesTotalMax == 256 << 20)
            #expect(configuration.limits.connectionsPerAddress == 0 && configuration.limits.requestTimeout == .seconds(10))
            #expect(configuration.limits.wrongJoinCodesPerMinute == 10)
            #expect(configuration.store.value == .sqlite(path: "./data/tandem.db") && configuration.backplane.value == .local)
            #expect(
                configuration.channels.value == nil && configuration.data.value == "./data" && configuration.corsOrigins.isEmpty)
            #expect(configuration.push == .init() && configuration.logLevel.value == .info)
            #expect(configuration.notYetInForce.isEmpty && configuration.unknownEnvironment.isEmpty)
        }
    }

    @Test("every key is read")
    func keys() throws {
        let configuration = try parse(everything)
        #expect(configuration.listen.host == Setting("127.0.0.2", .file("tandem.yaml", line: 2)))
        #expect(configuration.listen.port.value == 7001 && configuration.listen.loops.value == 4)
        #expect(configuration.listen.tls?.certificate.value == "c.pem" && configuration.listen.tls?.key.value == "k.pem")
        #expect(configuration.apps.map(\.id) == ["12", "13"])
        let app = configuration.apps[0]
        #expect(app.credentials.map(\.key) == ["the-key", "second"] && app.credentials.map(\.secret) == ["the-secret", "s2"])
        #expect(
            !app.isEnabled && app.connectionsMax == 5 && !app.clientEvents && app.clientEventsPerSecond == 20
                && app.subscriptionCount)
        #expect(app.presenceMembersMax == 200 && app.presenceLinger == .milliseconds(500) && app.eventDataBytesMax == 20480 && app.activityTimeout == .seconds(60))
        #expect(
            app.pingInterval == .seconds(5) && app.pongTimeout == .milliseconds(2500)
                && app.allowedOrigins == ["https://a.example"])
        #expect(!app.watchlist && app.webhooks == [.init(url: "http://h.example/x", events: [.channelOccupied, .cacheMiss])])
        #expect(configuration.apps[1].credentials == [AppCredential(key: "third", secret: "s3")])
        #expect(configuration.limits.connectionsPerAddress == 3 && configuration.limits.connectionsMax == 5000)
        #expect( configuration.limits.requestTimeout == .seconds(60))
        #expect(configuration.limits.sendQueueBytesTotalMax == 1 << 30)
        #expect(configuration.limits.sendQueueBytesMax == 2 << 20 && configuration.limits.wrongJoinCodesPerMinute == 5)
        #expect(
            configuration.store.value == .postgres(url: "postgres://u:p@db/tandem")
                && configuration.backplane.value == .redis(url: "redis://r:6379"))
        #expect(
            configuration.channels.value == "./c" && configuration.data.value == "./d" && configuration.logLevel.value == .debug)
        #expect(configuration.corsOrigins == ["https://app.example", "http://localhost:3000"])
        let apns = try #require(configuration.push.apns)
        #expect(
            apns.keyPath == Setting("a.p8", .file("tandem.yaml", line: 34)) && apns.keyID == "K" && apns.teamID == "T"
                && apns.topic == "com.example.app")
        #expect(apns.url == "https://sim:8443" && apns.caFile?.value == "ca.pem" && configuration.push.apnsSandboxByDefault)
        #expect(configuration.push.staleAfter == .seconds(14 * 86_400))
        let fcm = try #require(configuration.push.fcm)
        #expect(fcm.serviceAccount.value == "f.json" && fcm.url == "http://127.0.0.1:9000/x" && fcm.caFile?.value == "ca2.pem")
        #expect(fcm.messagesPerMinute == 1_200)
        #expect(
            configuration.notYetInForce == ["store (tandem.yaml:27)", "backplane (tandem.yaml:28)"])
    }

    @Test("the metrics are everybody's on this machine, nobody's on a public address, and the token's where there is one; it is never shown")
    func metrics() throws {
        let token = "0123456789abcdef"
        let secrets = "apps: [{ id: 1, key: k, secret: s }]\n"
        #expect(try parse().metrics.token == nil)
        let written = try parse(secrets + "metrics: { token: \(token) }\nlisten: { host: 0.0.0.0 }")
        #expect(written.metrics.token == token && !"\(written)".contains(token) && !String(reflecting: written).contains(token))
        #expect(try parse(secrets + "metrics: { token: another-token-of-16 }", ["TANDEM_METRICS_TOKEN": token]).metrics.token == token)
        #expect(mistakes("metrics: { token: fedcba }").allSatisfy { !$0.contains("fedcba") })
    }

    @Test("a flag beats the environment, the environment beats the file")
    func precedence() throws {
        let file = "listen: { host: 127.0.0.3, port: 3, loops: 3 }\ndata: f\nchannels: f\nlog_level: error\n"
        let environment = [
            "TANDEM_HOST": "127.0.0.4", "TANDEM_PORT": "4", "TANDEM_LOOPS": "4", "TANDEM_DATA": "e/", "TANDEM_CHANNELS": "e",
        ]
        let flags = ConfigurationFlags(host: "localhost", port: "0", data: "g", channels: "g", loops: "5", logLevel: "trace")
        let fromFile = try parse(file)
        #expect(
            fromFile.listen.port == Setting(3, .file("tandem.yaml", line: 1))
                && fromFile.store.value == .sqlite(path: "f/tandem.db"))
        let fromEnvironment = try parse(file, environment)
        #expect(fromEnvironment.listen.host == Setting("127.0.0.4", .environment("TANDEM_HOST")))
        #expect(fromEnvironment.listen.port.value == 4 && fromEnvironment.listen.loops.value == 4)
        #expect(fromEnvironment.channels == Setting("e", .environment("TANDEM_CHANNELS")) && fromEnvironment.data.value == "e/")
        #expect(fromEnvironment.store == Setting(.sqlite(path: "e/tandem.db"), .environment("TANDEM_DATA")))
        let fromFlags = try parse(file, environment, flags)
        #expect(
            fromFlags.listen.host == Setting("localhost", .flag("--host")) && fromFlags.listen.port == Setting(0, .flag("--port"))
        )
        #expect(
            fromFlags.listen.loops.value == 5 && fromFlags.data.value == "g" && fromFlags.channels.value == "g"
                && fromFlags.logLevel.value == .trace)
        #expect(try parse(file, ["TANDEM_PORT": ""]).listen.port.value == 3)
        #expect(try parse("store: sqlite:x.db", ["TANDEM_DATA": "e"]).store.value == .sqlite(path: "x.db"))
    }

    @Test("every variable is read")
    func environment() throws {
        let configuration = try parse(
            nil,
            [
                "TANDEM_APP_ID": "9", "TANDEM_APP_KEY": "k", "TANDEM_APP_SECRET": "true", "TANDEM_STORE": "postgresql://x/y",
                "TANDEM_BACKPLANE": "rediss://x",
                "TANDEM_TLS_CERT": "c", "TANDEM_TLS_KEY": "k", "APNS_KEY_PATH": "p", "APNS_KEY_ID": "007", "APNS_TEAM_ID": "t",
                "APNS_TOPIC": "o",
                "APNS_USE_SANDBOX": "1", "GOOGLE_APPLICATION_CREDENTIALS": "g", "TANDEM_APNS_URL": "http://localhost:1",
                "TANDEM_FCM_URL": "http://[::1]:2", "TANDEM_APNS_SANDBOX_URL": "http://localhost:3",
                "TANDEM_PUSH_CA_FILE": "ca", "PATH": "/bin",
            ])
        #expect(configuration.apps == [.init(id: "9", key: "k", secret: "true")])
        #expect(configuration.store == Setting(.postgres(url: "postgresql://x/y"), .environment("TANDEM_STORE")))
        #expect(
            configuration.backplane.value == .redis(url: "rediss://x")
                && configuration.listen.tls?.key == Setting("k", .environment("TANDEM_TLS_KEY")))
        #expect(
            configuration.push.apns?.keyPath == Setting("p", .environment("APNS_KEY_PATH"))
                && configuration.push.apns?.keyID == "007")
        #expect(configuration.push.apns?.sandboxURL == "http://localhost:3" && configuration.push.apns?.sandboxKey == nil)
        #expect(configuration.push.apns?.url == "http://localhost:1" && configuration.push.fcm?.url == "http://[::1]:2")
        #expect(
            configuration.push.apns?.caFile?.value == "ca" && configuration.push.fcm?.caFile?.value == "ca"
                && configuration.push.apnsSandboxByDefault)
        #expect(configuration.push.fcm?.serviceAccount.value == "g" && configuration.push.fcm?.messagesPerMinute == 600_000)
        #expect(configuration.notYetInForce == ["store", "backplane"])
    }

    @Test("an app's own push credentials are read from the file, and only simulators' addresses from the environment")
    func appCredentials() throws {
        let text = """
            apps:
              - id: 5
                key: a
                secret: b
                push:
                  apns: { key_path: own.p8, key_id: K5, team_id: T5, topic: com.example.five, sandbox_key_path: s.p8, sandbox_key_id: S5 }
              - { id: 6, key: c, secret: d, push: { fcm: { service_account: six.json } } }
              - { id: 7, key: e, secret: f }
            push:
              apns: { key_path: a.p8, key_id: K, team_id: T, topic: com.example.app }
            """
        let environment = [
            "APNS_TOPIC": "com.example.environment", "GOOGLE_APPLICATION_CREDENTIALS": "g.json", "TANDEM_APNS_URL": "https://sim:1",
            "TANDEM_APNS_SANDBOX_URL": "https://sim:2", "TANDEM_FCM_URL": "https://sim:3", "TANDEM_PUSH_CA_FILE": "ca.pem",
        ]
        let configuration = try parse(text, environment)
        let own = try #require(configuration.apps[0].push.apns)
        #expect(own.keyPath.value == "own.p8" && own.keyID == "K5" && own.teamID == "T5" && own.topic == "com.example.five")
        #expect(own.sandboxKey?.path.value == "s.p8" && own.sandboxKey?.id == "S5")
        #expect(own.url == "https://sim:1" && own.sandboxURL == "https://sim:2" && own.caFile?.value == "ca.pem")
        #expect(configuration.apps[0].push.fcm == nil)
        #expect(configuration.apps[1].push.fcm?.serviceAccount.value == "six.json" && configuration.apps[1].push.fcm?.url == "https://sim:3")
        #expect(configuration.apps[2].push == Configuration.Push())
        #expect(configuration.push.apns?.topic == "com.example.environment" && configuration.push.fcm?.serviceAccount.value == "g.json")
    }

    @Test("an app's push credentials that are incomplete are mistakes with their place", arguments: [
        ("apns: { key_path: a, key_id: K, team_id: T }", "has no topic: write it; an app's own credentials stand in the file"),
        ("fcm: { url: \"https://x\" }", "has no service_account: name the service account's file"),
        ("apns: { key_path: a, key_id: K, team_id: T, topic: o, sandbox_key_id: S }", "has a sandbox_key_id and no sandbox_key_path: write both"),
        ("apns: { use_sandbox: true }", "unknown key \"use_sandbox\""), ("gcm: {}", "unknown key \"gcm\""),
    ])
    func wrongAppCredentials(push: String, expected: String) {
        let found = mistakes("apps: [{id: 5, key: a, secret: b, push: { \(push) }}]", ["APNS_TOPIC": "x", "APNS_KEY_PATH": "x", "APNS_KEY_ID": "x", "APNS_TEAM_ID": "x"])
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    @Test("the environment's app replaces the file's one app, or the one of several that it names")
    func environmentApp() throws {
        let one = "apps: [{id: 5, key: a, secret: b, enabled: false}]"
        let several = "apps: [{id: 5, key: a, secret: b}, {id: 6, key: c}]"
        #expect(try parse(one, ["TANDEM_APP_SECRET": "x"]).apps[0].credentials == [AppCredential(key: "a", secret: "x")])
        let renamed = try parse(one, ["TANDEM_APP_ID": "7"]).apps[0]
        #expect(renamed.id == "7" && !renamed.isEnabled)
        #expect(
            try parse(several, ["TANDEM_APP_ID": "6", "TANDEM_APP_SECRET": "x"]).apps.map { $0.credentials[0].secret } == [
                "b", "x",
            ])
        #expect(
            mistakes(several, ["TANDEM_APP_SECRET": "x"]).contains(
                "TANDEM_APP_SECRET: the file lists several apps; set TANDEM_APP_ID to one of them: 5, 6"))
        #expect(
            mistakes(one, ["TANDEM_APP_ID": "app"]) == [
                "TANDEM_APP_ID: the app's id is made of digits, because the Pusher libraries insist on it"
            ])
        #expect(mistakes(nil, ["TANDEM_APP_KEY": "a b"]) == ["TANDEM_APP_KEY: expected printable text without spaces"])
    }

    @Test("variables that look like ours and are not are named, an orchestrator's are not")
    func unknownEnvironment() throws {
        let environment = [
            "TANDEM_PROT": "1", "TANDEM_SERVICE_HOST": "x", "TANDEM_PORT_6001_TCP": "x", "TANDEM": "1", "HOME": "/",
            "TANDEM_GATEWAYS_CONTROL": "x", "TANDEM_URL": "http://127.0.0.1:6001",
        ]
        #expect(try parse(nil, environment).unknownEnvironment == ["TANDEM_PROT"])
    }

    static let wrong: [(String, [String])] = [
        (
            "lissten: {}",
            [
                "unknown key \"lissten\" in the file; did you mean \"listen\"? known keys: listen, apps, limits, store, backplane, channels, data, log_level, cors, push, metrics"
            ]
        ),
        (
            "\nlisten: { hots: x }",
            ["2:unknown key \"hots\" in listen; did you mean \"host\"? known keys: host, port, loops, tls"]
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
        ("push: { fcm: { service_account: x, messages_per_minute: 10 } }", ["push.fcm.messages_per_minute: expected a whole number from 60 to 100000000, found the number 10"]),
        ("push: { gcm: {} }", ["unknown key \"gcm\" in push; did you mean \"fcm\"? known keys: apns, fcm, stale_after"]),
        ("a: [", ["2:bad YAML: did not find expected node content while parsing a flow node (line 2)"]),
    ]

    @Test("every mistake has its file, its line and the fix", arguments: wrong.indices)
    func mistake(index: Int) {
        let (text, expected) = Self.wrong[index]
        let lines = expected.map { $0.hasPrefix("2:") ? "tandem.yaml:2: \($0.dropFirst(2))" : "tandem.yaml:1: \($0)" }
        #expect(Set(mistakes(text)) == Set(lines), "\(mistakes(text).joined(separator: "\n"))")
        #expect(mistakes(text).count == lines.count)
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
        #expect(mistakes(nil, environment) == [message])
    }

    @Test("a wrong flag is called by its name")
    func flags() {
        #expect(
            mistakes(nil, ["TANDEM_PORT": "5"], .init(port: "x")) == [
                "--port: listen.port: expected a whole number from 0 to 65535, found the text \"x\""
            ])
        #expect(
            mistakes(nil, [:], .init(logLevel: "inf")) == [
                "--log-level: log_level cannot be \"inf\"; did you mean \"info\"? it is one of: trace, debug, info, notice, warning, error, critical"
            ])
    }

    @Test(
        "the credentials that everybody knows are refused where others can reach the server",
        arguments: [
            ("0.0.0.0", "app-key", "app-secret", false), ("::", "app-key", "app-secret", false),
            ("192.168.0.7", "mine", "app-secret", false), ("example.org", "app-key", "mine", false),
            ("127.1", "app-key", "app-secret", false), ("127.0.0.1.example.org", "app-key", "app-secret", false),
            ("127.0.0.1", "app-key", "app-secret", true),
            ("127.8.8.8", "app-key", "app-secret", true), ("::1", "app-key", "app-secret", true),
            ("localhost", "app-key", "app-secret", true), ("0.0.0.0", "mine", "mine", true),
        ])
    func defaultCredentials(host: String, key: String, secret: String, isAllowed: Bool) {
        let found = mistakes(nil, ["TANDEM_APP_KEY": key, "TANDEM_APP_SECRET": secret], .init(host: host))
        #expect(found.isEmpty == isAllowed)
        if !isAllowed {
            #expect(
                found.count == 1
                    && found[0].hasPrefix(
                        "--host: listen.host \(host) can be reached from other machines, and the app 1 still has")
            )
        }
    }

    @Test("secrets and passwords are in no description and no mistake")
    func secrets() throws {
        let configuration = try parse(everything)
        #expect(
            !String(describing: configuration.apps).contains("the-secret")
                && !String(reflecting: configuration.apps).contains("the-secret"))
        var dumped = ""
        dump(configuration.apps, to: &dumped)
        #expect(!dumped.contains("the-secret") && dumped.contains("the-key"))
        #expect(!mistakes("store: mysql://u:geheim@x\nbackplane: http://:geheim@x").joined().contains("geheim"))
    }

    @Test("mutilated files give a configuration or mistakes, never a crash")
    func mutilated() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("Configuration seed \(seed)")
        var random = SeededRandom(state: seed)
        for round in 0..<1500 {
            let text = random.mutilate(everything, noise: "{}[]:,-#\"'\n \t&*!|>0é:/@", isCut: round % 3 == 0)
            do throws(YAMLError) {
                _ = try parse(text)
            } catch {
                #expect(error.mistakes.allSatisfy { $0.line >= 1 && $0.file == "tandem.yaml" && !$0.message.isEmpty })
            }
        }
    }
}
