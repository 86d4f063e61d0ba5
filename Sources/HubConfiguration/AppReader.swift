internal import HubCore
internal import HubYAML

/// Reads the apps: `apps` of the file, and the app of the environment's variables.
struct AppReader {
    let settings: SettingReader

    /// The app of a server without configuration, whose key and secret everybody knows.
    static let fallback = Configuration.App(id: "1", credentials: [AppCredential(key: "app-key", secret: "app-secret")])

    /// Least length of a secret. It signs tokens that are handed out, with which anybody can try secrets at leisure.
    static let secretCharactersMin = 16

    static func isDefault(_ credential: AppCredential) -> Bool {
        fallback.credentials.contains { $0.key == credential.key || $0.secret == credential.secret }
    }

    private static let keys = [
        "id", "key", "secret", "keys", "enabled", "max_connections", "client_events", "client_events_per_second",
        "subscription_count",
        "presence_members_max", "presence_linger", "event_data_bytes_max", "activity_timeout", "ping_interval", "pong_timeout",
        "allowed_origins",
        "watchlist",
        "webhooks", "push",
    ]
    /// Largest `event_data_bytes_max`. Larger data belongs on a file server, because a publish is held in memory as a whole.
    private static let eventDataBytesCeiling = 16 << 20
    private static let presenceMembersCeiling = 1_000_000
    private static let clientEventsCeiling = 1_000_000

    func apps(_ map: YAMLMap?) -> [Configuration.App] {
        var apps: [Configuration.App]
        if let node = map?["apps"], let nodes = settings.file.list(node, "apps") {
            if nodes.isEmpty { settings.file.note(node, "apps is empty: list at least one app with id:, key: and secret:") }
            let override = override(ids: nodes.map(listedID))
            apps = nodes.enumerated().compactMap { index, node in
                app(node, index: index, override: override?.index == index ? override : nil)
            }
            checkUnique(apps, nodes)
        } else {
            var app = Self.fallback
            override(ids: [app.id])?.apply(to: &app)
            note(app.credentials[0], from: .environment(EnvironmentName.appSecret.rawValue), EnvironmentName.appSecret.rawValue)
            apps = [app]
        }
        return apps
    }

    // MARK: The environment

    /// Values of the environment for one app, by its place in the list.
    private struct Override {
        let index: Int
        let id: String?
        let key: String?
        let secret: String?

        func apply(to app: inout Configuration.App) {
            if let id { app.id = id }
            if let key { app.credentials[0].key = key }
            if let secret { app.credentials[0].secret = secret }
        }
    }

    private func override(ids: [String?]) -> Override? {
        let (id, key, secret) = (settings.variable(.appID), settings.variable(.appKey), settings.variable(.appSecret))
        guard id != nil || key != nil || secret != nil else { return nil }
        if let id, !Self.isID(id) {
            settings.note(
                .environment(EnvironmentName.appID.rawValue),
                "the app's id is made of digits, because the Pusher libraries insist on it")
        }
        for (name, text) in [(EnvironmentName.appKey, key), (.appSecret, secret)] {
            if let text, !NetworkAddress.isWord(text) {
                settings.note(.environment(name.rawValue), "expected printable text without spaces")
            }
        }
        if let id, let index = ids.firstIndex(of: id) { return Override(index: index, id: id, key: key, secret: secret) }
        guard ids.count <= 1 else {
            let name = id == nil ? (key == nil ? EnvironmentName.appSecret : .appKey) : .appID
            settings.note(
                .environment(name.rawValue),
                "the file lists several apps; set TANDEM_APP_ID to one of them: \(ids.compactMap { $0 }.joined(separator: ", "))")
            return nil
        }
        return Override(index: 0, id: id, key: key, secret: secret)
    }

    private func listedID(_ node: YAMLNode) -> String? {
        guard case .map(let entries) = node.content,
            case .scalar(let text, _)? = entries.first(where: { $0.key == "id" })?.value.content
        else { return nil }
        return text
    }

    // MARK: The file

    private func app(_ node: YAMLNode, index: Int, override: Override?) -> Configuration.App? {
        guard let map = settings.file.map(node, "apps[\(index)]", keys: Self.keys) else { return nil }
        let id =
            override?.id
            ?? map.required("id", "write id: \"\(index + 1)\"").flatMap { settings.file.nonEmptyString($0, map.path("id")) }
        if let id, let node = map["id"], override?.id == nil, !Self.isID(id) {
            settings.file.note(
                node,
                "\(map.path("id")): expected digits, found \(node.kindName): the Pusher libraries accept no other application ids"
            )
        }
        let credentials = credentials(map, override)
        guard let id else { return nil }
        var app = Configuration.App(id: id, credentials: credentials)
        app.isEnabled = map.bool("enabled") ?? app.isEnabled
        app.connectionsMax = map.int("max_connections") ?? app.connectionsMax
        app.clientEvents = map.bool("client_events") ?? app.clientEvents
        app.clientEventsPerSecond =
            map.int("client_events_per_second", in: 1...Self.clientEventsCeiling) ?? app.clientEventsPerSecond
        app.subscriptionCount = map.bool("subscription_count") ?? app.subscriptionCount
        app.presenceMembersMax = map.int("presence_members_max", in: 1...Self.presenceMembersCeiling) ?? app.presenceMembersMax
        app.presenceLinger = map.duration("presence_linger") ?? app.presenceLinger
        app.eventDataBytesMax = map.byteSize("event_data_bytes_max", in: 1...Self.eventDataBytesCeiling) ?? app.eventDataBytesMax
        app.activityTimeout = map.duration("activity_timeout") ?? app.activityTimeout
        if app.activityTimeout.components.attoseconds != 0, let node = map["activity_timeout"] {
            settings.file.note(node, "\(map.path("activity_timeout")): clients are told whole seconds; write them so")
        }
        app.pingInterval = map.duration("ping_interval") ?? app.pingInterval
        app.pongTimeout = map.duration("pong_timeout") ?? app.pongTimeout
        if let node = map["allowed_origins"] {
            app.allowedOrigins = settings.file.strings(node, map.path("allowed_origins")) ?? []
        }
        app.watchlist = map.bool("watchlist") ?? app.watchlist
        app.webhooks = webhooks(map)
        app.push = PushSettingsReader(settings: settings).push(of: map)
        return app
    }

    private func credentials(_ map: YAMLMap, _ override: Override?) -> [AppCredential] {
        var all: [AppCredential] = []
        let key = override?.key ?? map.string("key")
        let secret = override?.secret ?? map.string("secret")
        let others = map["keys"].flatMap { settings.file.list($0, map.path("keys")) } ?? []
        if key != nil || secret != nil || others.isEmpty {
            if key == nil { _ = map.required("key", "write key: and secret: of the app, or set TANDEM_APP_KEY") }
            if secret == nil { _ = map.required("secret", "write key: and secret: of the app, or set TANDEM_APP_SECRET") }
            let credential = AppCredential(key: key ?? "", secret: secret ?? "")
            all.append(credential)
            if override?.secret != nil {
                note(credential, from: .environment(EnvironmentName.appSecret.rawValue), EnvironmentName.appSecret.rawValue)
            } else if let node = map["secret"] {
                note(credential, from: .file(settings.fileName, line: node.line), map.path("secret"))
            }
        }
        for (index, node) in others.enumerated() {
            guard let pair = settings.file.map(node, "\(map.path("keys"))[\(index)]", keys: ["key", "secret"]) else { continue }
            _ = pair.required("key", "write key: and secret:")
            _ = pair.required("secret", "write key: and secret:")
            if let key = pair.string("key"), let secret = pair.string("secret") {
                let credential = AppCredential(key: key, secret: secret)
                all.append(credential)
                note(credential, from: .file(settings.fileName, line: pair["secret"]?.line ?? node.line), pair.path("secret"))
            }
        }
        for credential in all where !credential.key.isEmpty && !credential.secret.isEmpty {
            if !NetworkAddress.isWord(credential.key) || !NetworkAddress.isWord(credential.secret) || credential.key.contains("/") {
                settings.file.note(map.node, "\(map.name): a key or secret is printable text without spaces, and a key has no /")
            }
        }
        return all
    }

    /// Notes a short secret for `ConfigurationParser`, which judges it once it knows where the server listens.
    private func note(_ credential: AppCredential, from source: SettingSource, _ path: String) {
        if case .file = source { settings.fileHasSecrets = true }
        let isShort = !credential.secret.isEmpty && credential.secret.utf8.count < Self.secretCharactersMin
        if isShort, !Self.fallback.credentials.contains(credential) { settings.shortSecrets.append((Setting(path, source), credential)) }
    }

    private func webhooks(_ map: YAMLMap) -> [Configuration.Webhook] {
        guard let node = map["webhooks"], let nodes = settings.file.list(node, map.path("webhooks")) else { return [] }
        return nodes.enumerated().compactMap { index, node in
            let name = "\(map.path("webhooks"))[\(index)]"
            guard let hook = settings.file.map(node, name, keys: ["url", "events"]),
                let urlNode = hook.required("url", "write url: https://…"),
                let url = settings.file.nonEmptyString(urlNode, "\(name).url")
            else { return nil }
            if NetworkAddress.httpParts(url) == nil {
                settings.file.note(urlNode, "\(name).url: expected an address that begins with http:// or https://")
            }
            let words = WebhookEvent.allCases.map(\.rawValue).joined(separator: ", ")
            guard let eventsNode = hook.required("events", "list some of \(words)"),
                let events = settings.file.list(eventsNode, "\(name).events")
            else { return nil }
            if events.isEmpty { settings.file.note(eventsNode, "\(name).events is empty; list some of \(words)") }
            return .init(url: url, events: events.compactMap { settings.file.choice($0, "an element of \(name).events") })
        }
    }

    /// Notes ids and keys that occur twice: each names one app only.
    private func checkUnique(_ apps: [Configuration.App], _ nodes: [YAMLNode]) {
        guard apps.count == nodes.count else { return }
        var ids: Set<String> = []
        var keys: Set<String> = []
        for (app, node) in zip(apps, nodes) {
            if !ids.insert(app.id).inserted {
                settings.file.note(node, "the app id \(YAMLNode.quoted(app.id)) stands twice; every app needs its own")
            }
            for credential in app.credentials where !credential.key.isEmpty {
                if !keys.insert(credential.key).inserted {
                    settings.file.note(
                        node, "the key \(YAMLNode.quoted(credential.key)) stands twice; a client is told from its key alone")
                }
            }
        }
    }

    private static func isID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 20 && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    }
}
