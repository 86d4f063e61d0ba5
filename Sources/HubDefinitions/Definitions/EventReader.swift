internal import HubCore
internal import HubYAML

/// Reads one event of a definition with its variants.
struct EventReader {
    let reader: YAMLReader
    let roles: [String]
    /// Placeholders of the channel's name; nil if the name itself is mistaken, so that nothing is said about them.
    let placeholders: [ChannelPattern.Placeholder]?
    /// Registry of Android's notification channels; empty for none.
    let androidChannels: [String]

    static let channelUser = "{user}"
    /// Longest lifetime: FCM's bound of 28 days, the smaller of the two gateways'.
    private static let ttlMax = Duration.seconds(28 * 86_400)
    /// Shortest lifetime: a push with less would be too late before it is sent.
    private static let ttlMin = Duration.seconds(5)
    /// Pusher's bound on an event's name.
    private static let nameCharactersMax = 200

    private static let keys = ["to", "policy", "kind", "ttl", "group", "notification", "locales", "data"] + PlatformContent.names

    func event(_ entry: YAMLEntry) -> EventDefinition? {
        let name = "event \(YAMLNode.quoted(entry.key))"
        if entry.key.isEmpty || entry.key.count > Self.nameCharactersMax {
            reader.note(line: entry.line, column: entry.column, "an event's name has 1 to \(Self.nameCharactersMax) characters")
        }
        for reserved in ["pusher:", "pusher_internal:", "client-"] where entry.key.hasPrefix(reserved) {
            reader.note(
                line: entry.line, column: entry.column,
                "\(name) cannot be published by a backend: names that begin with \(reserved) belong to the protocol; rename it")
        }
        guard let map = reader.map(entry.value, name, keys: Self.keys + ["fields", "variants"]) else { return nil }
        let fields = fields(map)
        guard let node = map["variants"] else {
            return variant(VariantKeys(own: map, shared: nil), index: 0, conditions: []).map {
                EventDefinition(name: entry.key, fields: fields, variants: [$0])
            }
        }
        guard let nodes = reader.list(node, "\(name).variants") else { return nil }
        if nodes.isEmpty {
            reader.note(node, "\(name).variants is empty; write at least one, or to: and policy: without variants")
        }
        var variants: [EventVariant] = []
        for (index, node) in nodes.enumerated() {
            guard let own = reader.map(node, "\(name), variant \(index + 1)", keys: ["when"] + Self.keys) else { continue }
            if let variant = variant(VariantKeys(own: own, shared: map), index: index, conditions: conditions(own)) {
                if let reached = variants.first(where: { $0.conditions.isEmpty && $0.audience == .all }) {
                    reader.note(
                        node,
                        "no recipient ever gets here: the variant in line \(reached.line) is for all and has no when:; put it last"
                    )
                }
                variants.append(variant)
            }
        }
        if let node = map["notification"], !variants.isEmpty, variants.allSatisfy({ $0.policy.pushKind != .alert }) {
            reader.note(node, "\(name).notification would never be shown: no variant's policy makes visible pushes; remove it")
        }
        return variants.isEmpty ? nil : EventDefinition(name: entry.key, fields: fields, variants: variants)
    }

    private func variant(_ keys: VariantKeys, index: Int, conditions: [VariantCondition]) -> EventVariant? {
        let audience = keys.required("to", "write to: all, to: ROLE or to: \"{user}\"").flatMap {
            self.audience($0, keys.path("to"))
        }
        let words = Policy.allCases.map(\.rawValue).joined(separator: ", ")
        var policy: Policy?
        if let node = keys.required("policy", "write one of \(words)") { policy = reader.choice(node, keys.path("policy")) }
        let ttl = keys["ttl"].flatMap { self.ttl($0, keys.path("ttl")) }
        let group = keys["group"].flatMap { text($0, keys.path("group")) }
        let notification = policy.flatMap { self.notification(keys, $0) }
        if let policy { noteUseless(keys, policy) }
        let data = self.data(keys)
        let locales = notification.map { _ in self.locales(keys) } ?? .none
        let platforms = self.platforms(keys, policy)
        let kind = self.kind(keys, policy)
        guard let audience, let policy else { return nil }
        return EventVariant(
            conditions: conditions, audience: audience, policy: policy, ttl: ttl ?? policy.defaultTTL, group: group,
            kind: kind, notification: notification, locales: locales, data: data, platforms: platforms.content,
            platformTemplates: platforms.templates, index: index, line: keys.own.node.line)
    }

    private func audience(_ node: YAMLNode, _ name: String) -> Audience? {
        if case .list(let nodes) = node.content {
            if nodes.isEmpty { reader.note(node, "\(name) names nobody; write all, a role or \"{user}\"") }
            let known = nodes.compactMap { element in
                reader.nonEmptyString(element, "an element of \(name)").flatMap { reader.knownRole($0, element, name, roles) }
            }
            return .roles(known)
        }
        if case .map = node.content {
            reader.note(node, "\(name): expected all, a role or \"{user}\" in quotes, found a map")
            return nil
        }
        guard let word = reader.nonEmptyString(node, name) else { return nil }
        if word == "all" { return .all }
        if word == Self.channelUser {
            if let placeholders, !placeholders.contains(.user) {
                reader.note(node, "\(name): the channel's name has no {user}")
                return nil
            }
            return .channelUser
        }
        if roles.isEmpty {
            reader.note(
                node,
                "\(name): unknown role \(YAMLNode.quoted(word)); write all, or list the role in roles: at the top of the file")
            return nil
        }
        return reader.knownRole(word, node, name, roles).map { .roles([$0]) }
    }

    private func ttl(_ node: YAMLNode, _ name: String) -> Duration? {
        guard let ttl = reader.duration(node, name) else { return nil }
        guard ttl >= Self.ttlMin, ttl <= Self.ttlMax else {
            reader.note(node, "\(name): a notification is kept for 5s to 28d")
            return nil
        }
        return ttl
    }

    private func conditions(_ map: YAMLMap) -> [VariantCondition] {
        guard let node = map["when"], let entries = reader.entries(node, map.path("when")) else { return [] }
        return entries.compactMap { entry in
            let path = entry.key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard case .scalar = entry.value.content, !path.contains("") else {
                reader.note(
                    entry.value, "\(map.path("when")): expected a member of the data and one value for it, such as phase: endgame"
                )
                return nil
            }
            return VariantCondition(path: path, value: entry.value.json)
        }
    }

    private func notification(_ keys: VariantKeys, _ policy: Policy) -> NotificationTemplate? {
        let name = keys.path("notification")
        guard policy.pushKind == .alert else {
            // Under `variants`, the event's notification is for the variants that show one.
            if let node = keys.own["notification"] {
                reader.note(
                    node,
                    "\(name) would never be shown: the policy \(policy.rawValue) makes no visible push; remove it or choose notify or critical"
                )
            }
            return nil
        }
        guard
            let node = keys.required(
                "notification", "the policy \(policy.rawValue) shows one; write notification: { title: …, body: … }"),
            let map = reader.map(node, name, keys: ["title", "subtitle", "body", "image"])
        else { return nil }
        let title = map.required("title", "a visible notification needs a title").flatMap { text($0, map.path("title")) }
        let body = map.required("body", "a visible notification needs a body").flatMap { text($0, map.path("body")) }
        let subtitle = map["subtitle"].flatMap { text($0, map.path("subtitle")) }
        let image = map["image"].flatMap { text($0, map.path("image")) }
        guard let title, let body else { return nil }
        return NotificationTemplate(title: title, body: body, subtitle: subtitle, image: image)
    }

    /// Notes members of the variant itself that its policy never sends. Members of its event are for other variants.
    private func noteUseless(_ keys: VariantKeys, _ policy: Policy) {
        let useless =
            switch policy {
            case .realtimeOnly: ["kind", "group", "locales", "data"] + PlatformContent.names
            case .sync: ["kind", "locales", "apns"]
            default: [String]()
            }
        for entry in keys.own.entries where useless.contains(entry.key) {
            let reason = policy == .sync ? "a silent push carries data: only" : "the policy \(policy.rawValue) makes no push"
            reader.note(
                line: entry.line, column: entry.column, "\(keys.path(entry.key)) would never be used: \(reason); remove it")
        }
    }

    private func data(_ keys: VariantKeys) -> TemplateJSON {
        guard let node = keys["data"], let entries = reader.entries(node, keys.path("data")) else { return .object([:]) }
        for entry in entries {
            if let reason = DataKey.reservedReason(entry.key) {
                reader.note(
                    line: entry.line, column: entry.column,
                    "\(keys.path("data")) cannot have \(YAMLNode.quoted(entry.key)): \(reason)")
            }
        }
        return tree(node, keys.path("data"), isTyped: true)
    }

    /// Reads a value with templates.
    /// - Parameter isTyped: whether a text that is a single tag stands for its value instead of its text.
    func tree(_ node: YAMLNode, _ name: String, isTyped: Bool = false) -> TemplateJSON {
        switch node.content {
        case .list(let nodes): return .list(nodes.map { tree($0, name, isTyped: isTyped) })
        case .map(let entries):
            return .object(
                Dictionary(
                    entries.map { ($0.key, tree($0.value, "\(name).\($0.key)", isTyped: isTyped)) }, uniquingKeysWith: { _, last in last }))
        case .scalar:
            guard case .string(let text) = node.json, let template = template(text, node, name) else { return .literal(node.json) }
            return isTyped && template.isOneTag ? .value(template) : .text(template)
        }
    }

    func text(_ node: YAMLNode, _ name: String) -> Template? {
        reader.nonEmptyString(node, name).flatMap { template($0, node, name) }
    }

    func template(_ text: String, _ node: YAMLNode, _ name: String) -> Template? {
        do throws(TemplateMistake) {
            return try Template(text, placeholders: placeholders ?? ChannelPattern.Placeholder.allCases)
        } catch {
            reader.note(node, "\(name): \(error.message)")
            return nil
        }
    }
}

/// The keys of a variant, which fall back to those of its event.
struct VariantKeys {
    let own: YAMLMap
    let shared: YAMLMap?

    subscript(key: String) -> YAMLNode? { own[key] ?? shared?[key] }

    func required(_ key: String, _ fix: String) -> YAMLNode? { shared?[key].map { own[key] ?? $0 } ?? own.required(key, fix) }

    func path(_ key: String) -> String { own[key] == nil ? (shared ?? own).path(key) : own.path(key) }
}
