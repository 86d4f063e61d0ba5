internal import HubCore
package import HubYAML

/// Makes a configuration of a file, the environment and the command line. Flags win over the environment, and the environment over the
/// file.
package enum ConfigurationParser {
    /// Parses the arguments, and reads nothing else.
    ///
    /// - Parameters:
    ///   - file: name, for messages, and text of the configuration file; nil for none.
    ///   - environment: the process's variables.
    /// - Throws: all mistakes at once. Mistakes of the environment and the command line have the variable's or option's name, and no line.
    package static func parse(
        file: (name: String, text: String)?, environment: [String: String] = [:], flags: ConfigurationFlags = .init()
    ) throws(YAMLError) -> Configuration {
        let settings = SettingReader(fileName: file?.name ?? "configuration", environment: environment)
        let root = try file.flatMap { file throws(YAMLError) in try YAMLDocument.parse(file.text, file: file.name) }
        let map = root.flatMap {
            settings.file.map(
                $0, YAMLMap.topLevel,
                keys: [
                    "listen", "apps", "limits", "store", "backplane", "channels", "data", "log_level", "cors", "push", "metrics",
                    "operator", "console",
                ])
        }
        var configuration = Configuration()
        readListen(map, settings, flags, &configuration)
        readPlaces(map, settings, flags, &configuration)
        readLimits(map, settings, &configuration)
        configuration.apps = AppReader(settings: settings).apps(map)
        readCORS(map, settings, &configuration)
        configuration.push = PushSettingsReader(settings: settings).push(map)
        readMetrics(map, settings, &configuration)
        readOperator(map, settings, &configuration)
        configuration.console = ConsoleReader(settings: settings).console(map)
        check(&configuration, settings)

        guard settings.mistakes.isEmpty else { throw YAMLError(settings.mistakes) }
        configuration.notYetInForce = NotYetInForce.keys(configuration, written: settings.written)
        configuration.unknownEnvironment = EnvironmentName.unknown(in: environment)
        return configuration
    }

    private static func readListen(
        _ map: YAMLMap?, _ settings: SettingReader, _ flags: ConfigurationFlags, _ configuration: inout Configuration
    ) {
        let listen = map?.map("listen", keys: ["host", "port", "loops", "tls", "proxy_protocol"])
        if let host = settings.text("host", in: listen, "listen.host", environment: .host, flag: ("--host", flags.host)) {
            if NetworkAddress.isWord(host.value) {
                configuration.listen.host = host
            } else {
                settings.note(host.source, "listen.host: expected an address or a host name without spaces")
            }
        }
        // Tests use 0, which lets the system choose a free port.
        if let port = settings.int(
            "port", in: listen, "listen.port", range: 0...65_535, environment: .port, flag: ("--port", flags.port))
        {
            configuration.listen.port = port
        }
        if let loops = settings.int(
            "loops", in: listen, "listen.loops", range: 1...ConnectionID.loopsMax, environment: .loops,
            flag: ("--loops", flags.loops))
        {
            configuration.listen.loops = Setting(loops.value, loops.source)
        }
        if let proxyProtocol = listen?.bool("proxy_protocol") { configuration.listen.proxyProtocol = proxyProtocol }
        let tls = listen?.map("tls", keys: ["cert", "key"])
        let certificate = settings.text("cert", in: tls, "listen.tls.cert", environment: .tlsCertificate)
        let key = settings.text("key", in: tls, "listen.tls.key", environment: .tlsKey)
        switch (certificate, key) {
        case (let certificate?, let key?): configuration.listen.tls = .init(certificate: certificate, key: key)
        case (let certificate?, nil):
            settings.note(certificate.source, "listen.tls has a cert and no key: name the file of its private key")
        case (nil, let key?): settings.note(key.source, "listen.tls has a key and no cert: name the file of its certificate")
        case (nil, nil): break
        }
    }

    private static func readPlaces(
        _ map: YAMLMap?, _ settings: SettingReader, _ flags: ConfigurationFlags, _ configuration: inout Configuration
    ) {
        if let data = settings.text("data", in: map, "data", environment: .data, flag: ("--data", flags.data)) {
            configuration.data = data
            let folder = data.value.hasSuffix("/") ? String(data.value.dropLast()) : data.value
            configuration.store = Setting(.sqlite(path: "\(folder)/tandem.db"), data.source)
        }
        if let channels = settings.text(
            "channels", in: map, "channels", environment: .channels, flag: ("--channels", flags.channels))
        {
            configuration.channels = Setting(channels.value, channels.source)
        }
        if let level = settings.candidate("log_level", in: map, flag: ("--log-level", flags.logLevel), isText: true),
            let value = level.reader.choice(level.node, "log_level", LogLevel.self)
        {
            configuration.logLevel = Setting(value, level.source)
        }
        // Messages never repeat a wrong address, which may contain a password.
        if let store = settings.text("store", in: map, "store", environment: .store) {
            if store.value.hasPrefix("sqlite:"), store.value.count > 7 {
                configuration.store = Setting(.sqlite(path: String(store.value.dropFirst(7))), store.source)
            } else if hasScheme(store.value, ["postgres", "postgresql"]) {
                configuration.store = Setting(.postgres(url: store.value), store.source)
            } else {
                settings.note(store.source, "store: expected sqlite:PATH or postgres://HOST/DATABASE")
            }
        }
        if let backplane = settings.text("backplane", in: map, "backplane", environment: .backplane) {
            if backplane.value == "local" {
                configuration.backplane = Setting(.local, backplane.source)
            } else if hasScheme(backplane.value, ["redis", "rediss"]) {
                configuration.backplane = Setting(.redis(url: backplane.value), backplane.source)
            } else {
                settings.note(backplane.source, "backplane: expected local or redis://HOST:PORT")
            }
        }
    }

    private static func hasScheme(_ url: String, _ schemes: [String]) -> Bool {
        NetworkAddress.isWord(url) && schemes.contains { url.hasPrefix("\($0)://") && url.count > $0.count + 3 }
    }

    private static func readLimits(_ map: YAMLMap?, _ settings: SettingReader, _ configuration: inout Configuration) {
        let keys = [
            "max_connections", "connections_per_address", "request_timeout", "send_queue_bytes_max", "send_queue_bytes_total_max",
            "wrong_join_codes_per_minute", "joins_per_minute", "trusted_proxies",
        ]
        guard let limits = map?.map("limits", keys: keys) else { return }
        func read<Value>(_ value: Value?, into setting: inout Value) { if let value { setting = value } }
        read(limits.int("max_connections"), into: &configuration.limits.connectionsMax)
        read(limits.int("connections_per_address"), into: &configuration.limits.connectionsPerAddress)
        if let proxies = limits["trusted_proxies"] {
            configuration.limits.trustedProxies = networks(proxies, "limits.trusted_proxies", settings.file)
        }
        read(limits.duration("request_timeout"), into: &configuration.limits.requestTimeout)
        read(limits.byteSize("send_queue_bytes_max"), into: &configuration.limits.sendQueueBytesMax)
        read(limits.byteSize("send_queue_bytes_total_max"), into: &configuration.limits.sendQueueBytesTotalMax)
        read(limits.int("wrong_join_codes_per_minute", in: 1...1_000_000), into: &configuration.limits.wrongJoinCodesPerMinute)
        read(limits.int("joins_per_minute", in: 0...60_000), into: &configuration.limits.joinsPerMinute)
    }

    /// Addresses and networks.
    private static func networks(_ node: YAMLNode, _ name: String, _ reader: YAMLReader) -> [IPNetwork] {
        (reader.list(node, name) ?? []).compactMap { element in
            guard let text = reader.nonEmptyString(element, "an element of \(name)") else { return nil }
            if let network = IPNetwork(text) { return network }
            reader.note(
                element,
                "\(name): expected an address such as 192.0.2.1 or a network such as 10.0.0.0/8 or 2001:db8::/32, with no bit set behind its prefix, found "
                    + YAMLNode.quoted(text))
            return nil
        }
    }

    private static func readCORS(_ map: YAMLMap?, _ settings: SettingReader, _ configuration: inout Configuration) {
        guard let cors = map?.map("cors", keys: ["origins"]), let node = cors["origins"] else { return }
        configuration.corsOrigins = origins(node, "cors.origins", settings.file)
    }

    /// Least length of the token: a shorter one can be found by trying.
    private static let metricsTokenCharactersMin = 16

    private static func readMetrics(_ map: YAMLMap?, _ settings: SettingReader, _ configuration: inout Configuration) {
        let metrics = map?.map("metrics", keys: ["token"])
        guard let token = settings.text("token", in: metrics, "metrics.token", environment: .metricsToken) else { return }
        // Messages never repeat a wrong token.
        guard NetworkAddress.isWord(token.value), token.value.count >= metricsTokenCharactersMin else {
            return settings.note(
                token.source,
                "metrics.token: expected at least \(metricsTokenCharactersMin) printable characters without spaces: "
                    + "take some from openssl rand -hex 16"
            )
        }
        configuration.metrics.token = token.value
        if case .file = token.source { settings.fileHasSecrets = true }
    }

    private static func readOperator(_ map: YAMLMap?, _ settings: SettingReader, _ configuration: inout Configuration) {
        let operators = map?.map("operator", keys: ["key", "secret"])
        let key = settings.text("key", in: operators, "operator.key", environment: .operatorKey)
        let secret = settings.text("secret", in: operators, "operator.secret", environment: .operatorSecret)
        switch (key, secret) {
        case (nil, nil): return
        case (let key?, nil): settings.note(key.source, "operator has a key and no secret: write operator.secret or TANDEM_OPERATOR_SECRET")
        case (nil, let secret?): settings.note(secret.source, "operator has a secret and no key: write operator.key or TANDEM_OPERATOR_KEY")
        case (let key?, let secret?):
            if case .file = secret.source { settings.fileHasSecrets = true }
            guard NetworkAddress.isWord(key.value) else {
                return settings.note(key.source, "operator.key: expected printable text without spaces")
            }
            guard NetworkAddress.isWord(secret.value), secret.value.count >= AppReader.secretCharactersMin else {
                return settings.note(
                    secret.source,
                    "operator.secret: expected at least \(AppReader.secretCharactersMin) printable characters without spaces: "
                        + "take some from openssl rand -hex 16"
                )
            }
            guard !configuration.apps.contains(where: { $0.credentials.contains { $0.key == key.value || $0.secret == secret.value } })
            else {
                return settings.note(secret.source, "operator: an app has this key or secret; operators need their own")
            }
            configuration.operatorCredential = AppCredential(key: key.value, secret: secret.value)
        }
    }

    /// Reads origins in the form in which browsers send them.
    static func origins(_ node: YAMLNode, _ name: String, _ reader: YAMLReader) -> [String] {
        (reader.list(node, name) ?? []).compactMap { element in
            guard let origin = reader.nonEmptyString(element, "an element of \(name)") else { return nil }
            if origin == "*" || NetworkAddress.isOrigin(origin) { return origin }
            reader.note(
                element,
                "\(name): expected an origin such as https://app.example.com, without a path, found \(YAMLNode.quoted(origin))")
            return nil
        }
    }

    /// Checks values against each other.
    private static func check(_ configuration: inout Configuration, _ settings: SettingReader) {
        checkSecrets(&configuration, settings)
        let host = configuration.listen.host
        if configuration.listen.proxyProtocol, configuration.limits.trustedProxies.isEmpty, !configuration.listen.isLoopback {
            configuration.warnings.append(
                "listen.proxy_protocol is on and limits.trusted_proxies is empty: whoever can connect to \(host.value) says where they are from; name "
                    + "the addresses of your proxies")
        }
        if !configuration.listen.isLoopback {
            for app in configuration.apps where app.credentials.contains(where: AppReader.isDefault) {
                settings.note(
                    host.source,
                    "listen.host \(host.value) can be reached from other machines, and the app \(app.id) still has the key or secret that "
                        + "everybody knows; set TANDEM_APP_KEY and TANDEM_APP_SECRET (or key: and secret: of the app), or listen on 127.0.0.1"
                )
            }
        }
        let room = configuration.limits.sendQueueBytesMax
        for app in configuration.apps where app.eventDataBytesMax + frameBytesAround > room {
            settings.note(
                .file(settings.fileName, line: 1),
                "limits.send_queue_bytes_max (\(room)) has no room for one event of the app \(app.id) (event_data_bytes_max "
                    + "\(app.eventDataBytesMax)); raise the first or lower the second")
        }
        let (total, loops) = (configuration.limits.sendQueueBytesTotalMax, configuration.loopCount)
        if total / loops < room {
            settings.note(
                .file(settings.fileName, line: 1),
                "limits.send_queue_bytes_total_max (\(total)) leaves each of \(loops) loops less than limits.send_queue_bytes_max (\(room)); raise "
                    + "the first or lower the second")
        }
    }

    /// Notes short secrets. No message contains the secret itself.
    private static func checkSecrets(_ configuration: inout Configuration, _ settings: SettingReader) {
        let rule = "has fewer than \(AppReader.secretCharactersMin) characters, so that it can be found by trying"
        let remedy = "take one from openssl rand -hex 16, and tell it to the app's backends"
        for (setting, credential) in settings.shortSecrets {
            if configuration.listen.isLoopback {
                configuration.warnings.append(
                    "\(setting.source): \(setting.value) \(rule); \(remedy), before the server listens where others can reach it")
            } else if !AppReader.isDefault(credential) {
                settings.note(setting.source, "\(setting.value) \(rule): \(remedy)")
            }
        }
        if settings.fileHasSecrets { configuration.fileWithSecrets = settings.fileName }
    }

    /// Most bytes of a frame besides its data: the names of event and channel, with their JSON.
    private static let frameBytesAround = 1024
}
