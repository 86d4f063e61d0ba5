internal import HubCore
internal import HubYAML

/// Reads an event's platform blocks, kind, languages and fields.
extension EventReader {
    /// The blocks of a variant, merged member by member over those of its event.
    func platforms(_ keys: VariantKeys, _ policy: Policy?) -> (content: PlatformContent, templates: TemplateJSON?) {
        var content = PlatformContent()
        // Shared blocks are for visible variants, and must not reach the recipients of silent ones unseen.
        let shared = policy == .sync ? nil : keys.shared
        for map in [shared, keys.own].compactMap({ $0 }) { content = content.merged(under: blocks(map)) }
        var reader = ContentReader(allowsTags: true)
        content.check(&reader)
        for mistake in reader.mistakes { note(mistake, in: [keys.own, keys.shared].compactMap { $0 }) }
        noteUnknownChannel(content, keys)
        noteHidden(content, keys, policy)
        let templates = templates(.object(content.members), at: [], isTyped: false)
        return (content, templates.isLiteral ? nil : templates)
    }

    private func blocks(_ map: YAMLMap) -> PlatformContent {
        var members: [String: JSONValue] = [:]
        for name in PlatformContent.names {
            guard let node = map[name] else { continue }
            members[name] = node.json
            // Read once more for the mistakes of the block's templates, with their lines.
            _ = tree(node, map.path(name))
        }
        guard !members.isEmpty else { return PlatformContent() }
        var reader = ContentReader(allowsTags: true)
        let content = PlatformContent(members, reader: &reader)
        for mistake in reader.mistakes { note(mistake, in: [map]) }
        return content
    }

    /// Canonical members with their texts as templates, whose mistakes have been noted already.
    private func templates(_ value: JSONValue, at path: [String], isTyped: Bool) -> TemplateJSON {
        switch value {
        case .object(let members):
            return .object(
                members.reduce(into: [:]) { templates, member in
                    let path = path + [member.key]
                    // Members that an app decodes by type, or that are numbers on the wire.
                    let isTyped = isTyped || ContentSchema.typedMembers.contains(member.key) || ContentSchema.isOfApp(path)
                    templates[member.key] = self.templates(member.value, at: path, isTyped: isTyped)
                })
        case .array(let values): return .list(values.map { templates($0, at: path, isTyped: isTyped) })
        case .string(let text):
            do throws(TemplateMistake) {
                let template = try Template(text, placeholders: placeholders ?? ChannelPattern.Placeholder.allCases)
                return isTyped && template.isOneTag ? .value(template) : .text(template)
            } catch { return .literal(value) }
        default: return .literal(value)
        }
    }

    /// Notes a mistake at the place in the file that its path leads to, as far as the path exists.
    private func note(_ mistake: ContentMistake, in maps: [YAMLMap]) {
        guard let block = mistake.path.first, let map = maps.first(where: { $0[block] != nil }) ?? maps.first else { return }
        var node = map[block] ?? map.node
        var place: (line: Int, column: Int) = (node.line, node.column)
        // The path is that of the canonical form, which flat members lack in the file.
        var rest = mistake.path.dropFirst()
        while let step = rest.first {
            if case .map(let entries) = node.content, let entry = entries.first(where: { $0.key == step }) {
                node = entry.value
                place = (entry.line, entry.column)
            } else if case .list(let nodes) = node.content, let index = Int(step.dropFirst().dropLast()), nodes.indices.contains(index) {
                node = nodes[index]
                place = (node.line, node.column)
            }
            rest = rest.dropFirst()
        }
        let name = map.path(block) + mistake.place.dropFirst(block.utf8.count)
        let message: String
        switch mistake.problem {
        case .unknown(let key, let known):
            if case .map(let entries) = node.content, let entry = entries.first(where: { $0.key == key }) {
                place = (entry.line, entry.column)
            }
            message =
                "unknown key \(YAMLNode.quoted(key)) in \(name)\(NearestName.hint(for: key, among: known)) known keys: \(known.joined(separator: ", "))"
        case .expected(let expected): message = "\(name): expected \(expected), found \(node.kindName)"
        case .sentence(let sentence): message = "\(name): \(sentence)"
        }
        reader.note(line: place.line, column: place.column, message)
    }

    private func noteUnknownChannel(_ content: PlatformContent, _ keys: VariantKeys) {
        guard let problem = AndroidChannels.problem(content, known: androidChannels, allowsTags: true) else { return }
        reader.note(keys["android"] ?? keys["android_v2"] ?? keys.own.node, "\(keys.path("android")).channel_id: \(problem)")
    }

    private func noteHidden(_ content: PlatformContent, _ keys: VariantKeys, _ policy: Policy?) {
        guard let policy, policy.pushKind == .alert, keys["kind"]?.json != "data", content.apnsHeaders["apns-push-type"] == "background",
            let node = keys["apns"]
        else { return }
        reader.note(
            node,
            "\(keys.path("apns")).headers.apns-push-type: the policy \(policy.rawValue) shows a notification, and a background push shows none; remove it, or write kind: data"
        )
    }

    func kind(_ keys: VariantKeys, _ policy: Policy?) -> ContentKind {
        guard policy?.pushKind == .alert else { return .data }
        guard let node = keys["kind"] else { return .both }
        let kind = reader.choice(node, keys.path("kind"), ContentKind.self) ?? .both
        if kind == .notification, let data = keys["data"] {
            reader.note(data, "\(keys.path("data")) would never be sent: kind: notification has no data; write kind: both, or remove it")
        }
        return kind
    }

    func locales(_ keys: VariantKeys) -> LocaleTexts {
        guard let node = keys["locales"], let entries = reader.entries(node, keys.path("locales")),
            let shown = keys["notification"].flatMap({
                reader.map($0, keys.path("notification"), keys: ["title", "subtitle", "body", "image"])
            })
        else { return .none }
        var texts: [String: NotificationTemplate] = [:]
        for entry in entries {
            let name = "\(keys.path("locales")).\(entry.key)"
            if !LocaleTexts.isTag(entry.key) {
                reader.note(line: entry.line, column: entry.column, "\(name): expected a language tag such as de or pt-BR")
                continue
            }
            if texts.keys.contains(where: { LocaleTexts.canonical($0) == LocaleTexts.canonical(entry.key) }) {
                reader.note(line: entry.line, column: entry.column, "\(name) stands twice; keep one of them")
            }
            guard let map = reader.map(entry.value, name, keys: ["title", "subtitle", "body", "image"]) else { continue }
            if map.entries.isEmpty { reader.note(entry.value, "\(name) is empty; write title: or body:") }
            func part(_ key: String) -> Template? {
                map[key].flatMap { text($0, map.path(key)) } ?? shown[key].flatMap { text($0, shown.path(key)) }
            }
            guard let title = part("title"), let body = part("body") else { continue }
            texts[entry.key] = NotificationTemplate(title: title, body: body, subtitle: part("subtitle"), image: part("image"))
        }
        return LocaleTexts(texts)
    }

    // MARK: Fields

    private static let fieldTypes: [String: EventField.Form] = [
        "string": .string, "integer": .integer, "decimal": .decimal, "boolean": .boolean,
    ]

    func fields(_ map: YAMLMap) -> [EventField] {
        guard let node = map["fields"], let entries = reader.entries(node, map.path("fields")) else { return [] }
        return entries.compactMap { entry in
            let name = "\(map.path("fields")).\(entry.key)"
            guard case .map = entry.value.content else {
                return form(entry.value, name).map { EventField(name: entry.key, form: $0, isRequired: true) }
            }
            guard let own = reader.map(entry.value, name, keys: ["type", "required"]),
                let type = own.required("type", "write type: string, or a list of values")
            else { return nil }
            let isRequired = own.bool("required") ?? true
            return form(type, own.path("type")).map { EventField(name: entry.key, form: $0, isRequired: isRequired) }
        }
    }

    private func form(_ node: YAMLNode, _ name: String) -> EventField.Form? {
        if case .list(let nodes) = node.content {
            let values = nodes.map(\.json)
            let areScalars = values.allSatisfy { $0.arrayValue == nil && $0.objectValue == nil && $0 != .null }
            if values.isEmpty || !areScalars { reader.note(node, "\(name): expected the values it can have, such as [completed, failed]") }
            return .oneOf(values)
        }
        guard let word = reader.nonEmptyString(node, name) else { return nil }
        if let form = Self.fieldTypes[word] { return form }
        let words = ["string", "integer", "decimal", "boolean"]
        reader.note(
            node,
            "\(name) cannot be \(YAMLNode.quoted(word))\(NearestName.hint(for: word, among: words)) it is one of: \(words.joined(separator: ", ")), or a list of values"
        )
        return nil
    }
}

/// The registry of notification channels: Android shows no notification of a channel that the app has not created.
enum AndroidChannels {
    /// Mistake of a block whose channel is unknown; nil if known, or without a registry.
    static func problem(_ content: PlatformContent, known: [String], allowsTags: Bool = false) -> String? {
        guard !known.isEmpty else { return nil }
        let named = [content.androidNotification["channel_id"], content.androidV2["remote_notification"]?["notification"]?["channel_id"]]
        for case .string(let channel)? in named where !known.contains(channel) {
            if allowsTags, channel.contains("{{") { continue }
            return
                "\(YAMLNode.quoted(channel)) is not in android_channels\(NearestName.hint(for: channel, among: known)) it lists: \(known.joined(separator: ", "))"
        }
        return nil
    }
}
