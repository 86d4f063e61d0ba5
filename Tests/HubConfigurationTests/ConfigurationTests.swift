import HubConfiguration
import HubCore
import Testing

@Suite("Configuration")
struct ConfigurationTests {
    @Test("without any file everything has its default")
    func defaults() throws {
        for configuration in [try ConfigurationText.parse(), try ConfigurationText.parse(""), try ConfigurationText.parse("# nothing\n")] {
            #expect(
                configuration.listen.host == Setting("127.0.0.1", .fallback)
                    && configuration.listen.port == Setting(6001, .fallback))
            #expect(configuration.listen.loops.value == nil && configuration.listen.tls == nil)
            #expect(configuration.apps.count == 1)
            let app = try #require(configuration.apps.first)
            #expect(app.id == "1" && app.credentials == [AppCredential(key: "app-key", secret: "app-secret")] && app.isEnabled)
            #expect(app.connectionsMax == 0 && app.clientEvents && app.clientEventsPerSecond == 10 && !app.subscriptionCount)
            #expect(
                app.presenceMembersMax == 100 && app.presenceLinger == .seconds(3) && app.eventDataBytesMax == 10240
                    && app.activityTimeout == .seconds(120))
            #expect(
                app.pingInterval == .seconds(15) && app.pongTimeout == .seconds(10) && app.allowedOrigins.isEmpty && app.watchlist
            )
            #expect(app.webhooks.isEmpty && configuration.limits == .init() && configuration.limits.sendQueueBytesMax == 1 << 20)
            #expect(configuration.limits.sendQueueBytesTotalMax == 256 << 20)
            #expect(configuration.limits.connectionsPerAddress == 0 && configuration.limits.requestTimeout == .seconds(10))
            #expect(configuration.limits.wrongJoinCodesPerMinute == 10 && configuration.limits.joinsPerMinute == 300)
            #expect(configuration.limits.trustedProxies.isEmpty && !configuration.listen.proxyProtocol)
            #expect(configuration.store.value == .sqlite(path: "./data/tandem.db") && configuration.backplane.value == .local)
            #expect(
                configuration.channels.value == nil && configuration.data.value == "./data" && configuration.corsOrigins.isEmpty)
            #expect(configuration.push == .init() && configuration.logLevel.value == .info)
            #expect(configuration.notYetInForce.isEmpty && configuration.unknownEnvironment.isEmpty)
        }
    }

    @Test("every key is read")
    func keys() throws {
        let configuration = try ConfigurationText.parse(ConfigurationText.everything)
        #expect(configuration.listen.host == Setting("127.0.0.2", .file("tandem.yaml", line: 2)))
        #expect(configuration.listen.port.value == 7001 && configuration.listen.loops.value == 4)
        #expect(configuration.listen.tls?.certificate.value == "c.pem" && configuration.listen.tls?.key.value == "k.pem")
        #expect(configuration.apps.map(\.id) == ["12", "13"])
        let app = configuration.apps[0]
        #expect(app.credentials.map(\.key) == ["the-key", "second"] && app.credentials.map(\.secret) == ["the-secret", "s2"])
        #expect(
            !app.isEnabled && app.connectionsMax == 5 && !app.clientEvents && app.clientEventsPerSecond == 20
                && app.subscriptionCount)
        #expect(
            app.presenceMembersMax == 200 && app.presenceLinger == .milliseconds(500) && app.eventDataBytesMax == 20480
                && app.activityTimeout == .seconds(60))
        #expect(
            app.pingInterval == .seconds(5) && app.pongTimeout == .milliseconds(2500)
                && app.allowedOrigins == ["https://a.example"])
        #expect(!app.watchlist && app.webhooks == [.init(url: "http://h.example/x", events: [.channelOccupied, .cacheMiss])])
        #expect(configuration.apps[1].credentials == [AppCredential(key: "third", secret: "s3")])
        #expect(configuration.limits.connectionsPerAddress == 3 && configuration.limits.connectionsMax == 5000)
        #expect(configuration.limits.requestTimeout == .seconds(60))
        #expect(configuration.limits.sendQueueBytesTotalMax == 1 << 30)
        #expect(
            configuration.limits.sendQueueBytesMax == 2 << 20 && configuration.limits.wrongJoinCodesPerMinute == 5
                && configuration.limits.joinsPerMinute == 0)
        #expect(
            try configuration.limits.trustedProxies == ["10.0.0.0/8", "2001:db8::1"].map { try #require(IPNetwork($0)) }
                && configuration.listen.proxyProtocol)
        #expect(
            configuration.store.value == .postgres(url: "postgres://u:p@db/tandem")
                && configuration.backplane.value == .redis(url: "redis://r:6379"))
        #expect(
            configuration.channels.value == "./c" && configuration.data.value == "./d" && configuration.logLevel.value == .debug)
        #expect(configuration.corsOrigins == ["https://app.example", "http://localhost:3000"])
        let apns = try #require(configuration.push.apns)
        #expect(
            apns.keyPath == Setting("a.p8", .file("tandem.yaml", line: 35)) && apns.keyID == "K" && apns.teamID == "T"
                && apns.topic == "com.example.app")
        #expect(apns.url == "https://sim:8443" && apns.caFile?.value == "ca.pem" && configuration.push.apnsSandboxByDefault)
        #expect(configuration.push.staleAfter == .seconds(14 * 86_400))
        let fcm = try #require(configuration.push.fcm)
        #expect(fcm.serviceAccount.value == "f.json" && fcm.url == "http://127.0.0.1:9000/x" && fcm.caFile?.value == "ca2.pem")
        #expect(fcm.messagesPerMinute == 1_200)
        #expect(configuration.notYetInForce.isEmpty)
    }

    @Test(
        "the metrics are everybody's on this machine, nobody's on a public address, and the token's where there is one; it is never shown")
    func metrics() throws {
        let token = "0123456789abcdef"
        let secrets = "apps: [{ id: 1, key: k, secret: a-secret-of-sixteen }]\n"
        #expect(try ConfigurationText.parse().metrics.token == nil)
        let written = try ConfigurationText.parse(secrets + "metrics: { token: \(token) }\nlisten: { host: 0.0.0.0 }")
        #expect(written.metrics.token == token && !"\(written)".contains(token) && !String(reflecting: written).contains(token))
        #expect(
            try ConfigurationText.parse(secrets + "metrics: { token: another-token-of-16 }", ["TANDEM_METRICS_TOKEN": token]).metrics.token
                == token)
        #expect(ConfigurationText.mistakes("metrics: { token: fedcba }").allSatisfy { !$0.contains("fedcba") })
    }

    @Test("the console has the passwords of the file and the environment, and none is ever shown")
    func console() throws {
        let hash = "scrypt.15.8.3.AAECAwQFBgcICQoLDA0ODw.\(String(repeating: "A", count: 43))"
        let none = try ConfigurationText.parse()
        #expect(!none.console.hasPassword && none.opensConsoleByLink)
        let file = "console: { operator_password_hash: \(hash), viewer_password_hash: \(hash) }"
        let written = try ConfigurationText.parse(file, ["TANDEM_CONSOLE_PASSWORD": "geheim-geheim"])
        #expect(written.console.operatorPasswordHash == hash && written.console.viewerPasswordHash == hash)
        #expect(written.console.operatorPassword == "geheim-geheim" && written.console.hasPassword && !written.opensConsoleByLink)
        #expect(written.fileWithSecrets == "tandem.yaml")
        for text in ["\(written)", String(reflecting: written)] { #expect(!text.contains("geheim") && !text.contains(hash)) }
        for text in ["listen: { host: 0.0.0.0 }", ""] {
            #expect(try !ConfigurationText.parse("apps: [{ id: 1, key: k, secret: a-secret-of-sixteen }]\n" + text).opensConsoleByLink)
        }
        #expect(
            ConfigurationText.mistakes("console: { operator_password_hash: geheim }")
                == ["tandem.yaml:1: console.operator_password_hash: expected a hash that tandem console password has printed"]
        )
    }

    @Test("a flag beats the environment, the environment beats the file")
    func precedence() throws {
        let file = "listen: { host: 127.0.0.3, port: 3, loops: 3 }\ndata: f\nchannels: f\nlog_level: error\n"
        let environment = [
            "TANDEM_HOST": "127.0.0.4", "TANDEM_PORT": "4", "TANDEM_LOOPS": "4", "TANDEM_DATA": "e/", "TANDEM_CHANNELS": "e",
        ]
        let flags = ConfigurationFlags(host: "localhost", port: "0", data: "g", channels: "g", loops: "5", logLevel: "trace")
        let fromFile = try ConfigurationText.parse(file)
        #expect(
            fromFile.listen.port == Setting(3, .file("tandem.yaml", line: 1))
                && fromFile.store.value == .sqlite(path: "f/tandem.db"))
        let fromEnvironment = try ConfigurationText.parse(file, environment)
        #expect(fromEnvironment.listen.host == Setting("127.0.0.4", .environment("TANDEM_HOST")))
        #expect(fromEnvironment.listen.port.value == 4 && fromEnvironment.listen.loops.value == 4)
        #expect(fromEnvironment.channels == Setting("e", .environment("TANDEM_CHANNELS")) && fromEnvironment.data.value == "e/")
        #expect(fromEnvironment.store == Setting(.sqlite(path: "e/tandem.db"), .environment("TANDEM_DATA")))
        let fromFlags = try ConfigurationText.parse(file, environment, flags)
        #expect(
            fromFlags.listen.host == Setting("localhost", .flag("--host")) && fromFlags.listen.port == Setting(0, .flag("--port"))
        )
        #expect(
            fromFlags.listen.loops.value == 5 && fromFlags.data.value == "g" && fromFlags.channels.value == "g"
                && fromFlags.logLevel.value == .trace)
        #expect(try ConfigurationText.parse(file, ["TANDEM_PORT": ""]).listen.port.value == 3)
        #expect(try ConfigurationText.parse("store: sqlite:x.db", ["TANDEM_DATA": "e"]).store.value == .sqlite(path: "x.db"))
    }

    @Test("every variable is read")
    func environment() throws {
        let configuration = try ConfigurationText.parse(
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
        #expect(configuration.push.fcm?.serviceAccount.value == "g" && configuration.push.fcm?.messagesPerMinute == nil)
        #expect(configuration.notYetInForce.isEmpty)
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
        let configuration = try ConfigurationText.parse(text, environment)
        let own = try #require(configuration.apps[0].push.apns)
        #expect(own.keyPath.value == "own.p8" && own.keyID == "K5" && own.teamID == "T5" && own.topic == "com.example.five")
        #expect(own.sandboxKey?.path.value == "s.p8" && own.sandboxKey?.id == "S5")
        #expect(own.url == "https://sim:1" && own.sandboxURL == "https://sim:2" && own.caFile?.value == "ca.pem")
        #expect(configuration.apps[0].push.fcm == nil)
        #expect(
            configuration.apps[1].push.fcm?.serviceAccount.value == "six.json" && configuration.apps[1].push.fcm?.url == "https://sim:3")
        #expect(configuration.apps[2].push == Configuration.Push())
        #expect(configuration.push.apns?.topic == "com.example.environment" && configuration.push.fcm?.serviceAccount.value == "g.json")
    }

    @Test("the environment's app replaces the file's one app, or the one of several that it names")
    func environmentApp() throws {
        let one = "apps: [{id: 5, key: a, secret: b, enabled: false}]"
        let several = "apps: [{id: 5, key: a, secret: b}, {id: 6, key: c}]"
        #expect(try ConfigurationText.parse(one, ["TANDEM_APP_SECRET": "x"]).apps[0].credentials == [AppCredential(key: "a", secret: "x")])
        let renamed = try ConfigurationText.parse(one, ["TANDEM_APP_ID": "7"]).apps[0]
        #expect(renamed.id == "7" && !renamed.isEnabled)
        #expect(
            try ConfigurationText.parse(several, ["TANDEM_APP_ID": "6", "TANDEM_APP_SECRET": "x"]).apps.map { $0.credentials[0].secret }
                == [
                    "b", "x",
                ])
        #expect(
            ConfigurationText.mistakes(several, ["TANDEM_APP_SECRET": "x"]).contains(
                "TANDEM_APP_SECRET: the file lists several apps; set TANDEM_APP_ID to one of them: 5, 6"))
        #expect(
            ConfigurationText.mistakes(one, ["TANDEM_APP_ID": "app"]) == [
                "TANDEM_APP_ID: the app's id is made of digits, because the Pusher libraries insist on it"
            ])
        #expect(ConfigurationText.mistakes(nil, ["TANDEM_APP_KEY": "a b"]) == ["TANDEM_APP_KEY: expected printable text without spaces"])
    }

    @Test("variables that look like ours and are not are named, an orchestrator's are not")
    func unknownEnvironment() throws {
        let environment = [
            "TANDEM_PROT": "1", "TANDEM_SERVICE_HOST": "x", "TANDEM_PORT_6001_TCP": "x", "TANDEM": "1", "HOME": "/",
            "TANDEM_GATEWAYS_CONTROL": "x", "TANDEM_URL": "http://127.0.0.1:6001",
        ]
        #expect(try ConfigurationText.parse(nil, environment).unknownEnvironment == ["TANDEM_PROT"])
    }
}
