internal import HubCore
package import HubYAML

/// Reads one definition file and finds all its mistakes.
package enum ChannelDefinitionParser {
    /// Reads a definition, which is called like its file without `.yaml`.
    /// - Parameter file: name or path, as it is to stand in mistakes.
    /// - Throws: all mistakes of the file.
    package static func parse(_ text: String, file: String) throws(YAMLError) -> ChannelDefinition {
        let reader = YAMLReader(file: file)
        let definition = read(try YAMLDocument.parse(text, file: file), reader, file: file)
        guard reader.mistakes.isEmpty, let definition else {
            let missing = YAMLMistake(file: file, line: 1, column: 1, message: "the file is empty; write channel: and events:")
            throw YAMLError(reader.mistakes.isEmpty ? [missing] : reader.mistakes)
        }
        return definition
    }

    /// Name of a file's definition: `quiz` for `channels/quiz.yaml`.
    package static func name(ofFile file: String) -> String {
        let name = file.split(separator: "/").last.map(String.init) ?? file
        for ending in [".yaml", ".yml"] where name.hasSuffix(ending) { return String(name.dropLast(ending.count)) }
        return name
    }

    private static func read(_ root: YAMLNode?, _ reader: YAMLReader, file: String) -> ChannelDefinition? {
        guard let root,
            let map = reader.map(
                root, YAMLMap.topLevel,
                keys: [
                    "channel", "roles", "join", "suppress_scope", "clear_siblings", "replay", "members_max", "quiet_hours", "alerts",
                    "android_channels", "events",
                ])
        else { return nil }
        let name = name(ofFile: file)
        if name.isEmpty || !name.unicodeScalars.allSatisfy(isNameCharacter) {
            reader.note(
                line: 1, column: 1, "a definition is called like its file; name the file with letters, digits, _ and - only")
        }
        let pattern = readPattern(map, reader)
        let roles = readRoles(map, reader)
        let join = readJoin(map, reader, roles: roles)
        let scope = map["suppress_scope"].flatMap { reader.choice($0, "suppress_scope", SuppressScope.self) } ?? .participant
        let clearsSiblings = readClearsSiblings(map, reader, scope: scope)
        let replays = map.bool("replay") ?? false
        let membersMax = readMembersMax(map, reader, pattern: pattern)
        let quietHours = readQuietHours(map, reader)
        let alerts = readAlerts(map)

        let androidChannels = map.strings("android_channels") ?? []

        var events: [String: EventDefinition] = [:]
        if let node = map.required("events", "list its events, each with to: and policy:"),
            let entries = reader.entries(node, "events")
        {
            let eventReader = EventReader(
                reader: reader, roles: roles, placeholders: pattern?.placeholders, androidChannels: androidChannels)
            for entry in entries { events[entry.key] = eventReader.event(entry) }
        }
        guard let pattern else { return nil }
        return ChannelDefinition(
            name: name, file: file, pattern: pattern, roles: roles, join: join, scope: scope, clearsSiblings: clearsSiblings,
            replays: replays,
            membersMax: membersMax, quietHours: quietHours, alerts: alerts, androidChannels: androidChannels, events: events)
    }

    private static func readPattern(_ map: YAMLMap, _ reader: YAMLReader) -> ChannelPattern? {
        guard let node = map.required("channel", "write channel: presence-NAME-{session}"),
            let text = reader.nonEmptyString(node, "channel")
        else { return nil }
        do throws(ChannelPattern.Invalid) {
            return try ChannelPattern(text)
        } catch {
            reader.note(node, "channel \(YAMLNode.quoted(text)): \(error)")
            return nil
        }
    }

    private static func readClearsSiblings(_ map: YAMLMap, _ reader: YAMLReader, scope: SuppressScope) -> Bool {
        let clears = map.bool("clear_siblings") ?? false
        if clears, scope == .device, let node = map["clear_siblings"] {
            reader.note(node, "clear_siblings: with suppress_scope: device each device stands for itself; leave one of the two out")
        }
        return clears
    }

    private static func readMembersMax(_ map: YAMLMap, _ reader: YAMLReader, pattern: ChannelPattern?) -> Int {
        let membersMax = map.int("members_max", in: 1...ChannelDefinition.membersMaxMax)
        if let node = map["members_max"], let pattern, !pattern.prefix.hasPrefix("presence-") {
            reader.note(node, "members_max: only presence- channels have members; leave it out, or begin the channel with presence-")
        }
        return membersMax ?? ChannelDefinition.membersMaxDefault
    }

    private static func readRoles(_ map: YAMLMap, _ reader: YAMLReader) -> [String] {
        guard let node = map["roles"], let nodes = reader.list(node, "roles") else { return [] }
        var roles: [String] = []
        for node in nodes {
            guard let role = reader.nonEmptyString(node, "an element of roles") else { continue }
            if role == "all" || role == EventReader.channelUser {
                reader.note(node, "a role cannot be called \(YAMLNode.quoted(role)): that word means somebody else in to:")
            } else if roles.contains(role) {
                reader.note(node, "the role \(YAMLNode.quoted(role)) stands twice in roles")
            } else {
                roles.append(role)
            }
        }
        if roles.count > ChannelDefinition.rolesMax {
            reader.note(node, "roles has \(roles.count) elements; there may be at most \(ChannelDefinition.rolesMax)")
        }
        return roles
    }

    private static func readJoin(_ map: YAMLMap, _ reader: YAMLReader, roles: [String]) -> ChannelDefinition.JoinRule {
        guard let join = map.map("join", keys: ["identity", "role", "device_token"]) else { return .init(identity: .email, role: nil) }
        let identity = join["identity"].flatMap { reader.choice($0, "join.identity", IdentityWord.self) }
        let role = join["role"].flatMap { node in
            reader.nonEmptyString(node, "join.role").flatMap { reader.knownRole($0, node, "join.role", roles) }
        }
        let token = join["device_token"].flatMap { reader.choice($0, "join.device_token", TokenWord.self) }
        return .init(identity: identity == .device ? .device : .email, role: role, requiresToken: token == .required)
    }

    private static func readQuietHours(_ map: YAMLMap, _ reader: YAMLReader) -> QuietHours? {
        guard let hours = map.map("quiet_hours", keys: ["from", "to", "timezone"]) else { return nil }
        func minutes(_ key: String) -> Int? {
            guard let node = hours.required(key, "write \(key): \"22:00\""), let text = reader.nonEmptyString(node, hours.path(key))
            else { return nil }
            if let minutes = QuietHours.minutes(text) { return minutes }
            reader.note(node, "\(hours.path(key)): expected a time of the day such as \"22:00\", found \(YAMLNode.quoted(text))")
            return nil
        }
        let (from, to) = (minutes("from"), minutes("to"))
        var timezone: String?
        if let node = hours.required("timezone", "write the one of most recipients, such as timezone: Europe/Berlin") {
            timezone = reader.nonEmptyString(node, hours.path("timezone"))
            if let name = timezone, !QuietHours.isKnown(timezone: name) {
                reader.note(
                    node,
                    "\(hours.path("timezone")): this machine knows no time zone \(YAMLNode.quoted(name)); "
                        + "write a name of the time zone database, such as Europe/Berlin")
            }
        }
        guard let from, let to, let timezone else { return nil }
        if from == to { reader.note(hours.node, "quiet_hours: from and to are the same; quiet hours end some time of the day") }
        return QuietHours(from: from, to: to, timezone: timezone)
    }

    private static func readAlerts(_ map: YAMLMap) -> AlertLimits {
        var limits = AlertLimits.standard
        guard let alerts = map.map("alerts", keys: ["burst", "every", "per_day"]) else { return limits }
        limits.burst = alerts.int("burst", in: 1...AlertLimits.burstMax) ?? limits.burst
        if let node = alerts["every"], let every = alerts.duration("every") {
            if every > AlertLimits.everyMax {
                alerts.reader.note(node, "\(alerts.path("every")): at most 1d; to allow few alerts a day, write per_day:")
            }
            limits.every = every
        }
        limits.perDay = alerts.int("per_day") ?? limits.perDay
        return limits
    }

    /// Words of `join.identity`: `JoinIdentity` belongs to the stores and lists no cases.
    private enum IdentityWord: String, CaseIterable { case email, device }
    private enum TokenWord: String, CaseIterable { case optional, required }

    private static func isNameCharacter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "-": true
        default: false
        }
    }
}

extension YAMLReader {
    /// The role, if the definition lists it.
    func knownRole(_ role: String, _ node: YAMLNode, _ name: String, _ roles: [String]) -> String? {
        if roles.contains(role) { return role }
        let known = roles.isEmpty ? "the definition has no roles: list" : "roles: \(roles.joined(separator: ", "))"
        note(node, "\(name): unknown role \(YAMLNode.quoted(role))\(NearestName.hint(for: role, among: roles)) \(known)")
        return nil
    }
}
