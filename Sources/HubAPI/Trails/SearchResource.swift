internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `GET /apps/{app}/search`: people, sessions, channels, definitions and events whose names begin with some letters.
///
/// E-mails are never shown whole, and tokens not at all.
struct SearchResource: Sendable {
    let store: any DeliveryStore
    let definitions: @Sendable () -> DefinitionSet
    let occupied: OccupiedChannels

    static let textCharactersMax = 200
    static let limitMax = 20
    static let limitUsual = 8
    /// Letters of an event's id that name few events: they tell the minute.
    static let idCharactersMin = 8

    func respond(to request: HTTPRequest, app: App) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let text = try Self.text(request)
        let limit = try PageQuery(request: request).limit(max: Self.limitMax, otherwise: Self.limitUsual)
        let definitions = definitions()
        let channels = SessionChannel(definitions: definitions)
        async let people = store.people(app: app.id, beginning: text, limit: limit)
        async let sessions = store.sessions(app: app.id, beginning: text, limit: limit)
        async let events = events(app: app.id, text, limit: limit)
        let occupied = await occupied.names(app, text, limit)
        return .json([
            "q": .string(text),
            "people": .array(try await people.map(Self.person)),
            "sessions": .array(try await sessions.map { Self.session($0, channels) }),
            "channels": occupied.map { .array($0.map { Self.channel($0, definitions) }) } ?? .null,
            "definitions": .array(Self.definitions(definitions, text).prefix(limit).map(Self.definition)),
            "events": .array(try await events.map(RecipientRow.event)),
        ])
    }

    private static func text(_ request: HTTPRequest) throws(APIError) -> String {
        let text = Field.trimmed(request.parameter("q") ?? "")
        guard Field.isPlain(text, charactersMax: textCharactersMax) else {
            throw APIError(400, "q has 1 to \(textCharactersMax) characters: the beginning of a name or an id")
        }
        return text
    }

    /// Events by the beginning of their id, then the newest by the beginning of their name.
    private func events(app: String, _ text: String, limit: Int) async throws -> [EventRecord] {
        let id = text.lowercased()
        let isID = id.utf8.count >= Self.idCharactersMin && id.utf8.allSatisfy { "0123456789abcdef-".utf8.contains($0) }
        if isID {
            let found = try await store.events(app: app, idBeginning: id, limit: limit)
            if !found.isEmpty { return found }
        }
        return try await store.newestEvents(EventSearch(app: app, name: text, isBeginning: true), limit: limit).events
    }

    /// The definition of the channel that the text names, then those that begin with it.
    private static func definitions(_ all: DefinitionSet, _ text: String) -> [ChannelDefinition] {
        let (own, folded) = (all.match(channel: text)?.definition, text.lowercased())
        let begun = all.names.compactMap(all.definition(named:)).filter {
            $0.name != own?.name && ($0.name.lowercased().hasPrefix(folded) || $0.pattern.description.lowercased().hasPrefix(folded))
        }
        return (own.map { [$0] } ?? []) + begun
    }

    // MARK: Rows

    private static func person(_ person: FoundPerson) -> JSONValue {
        [
            "user": .string(person.user),
            "name": JSONValue(orNull: person.participant?.name),
            "email": JSONValue(orNull: person.participant?.email.map(cut)),
            "session": JSONValue(orNull: person.participant?.session),
            "role": JSONValue(orNull: person.participant?.role),
            "registered": .bool(person.isRegistered),
        ]
    }

    /// An e-mail as far as it is shown: its first letter and its domain.
    static func cut(_ email: String) -> String {
        let domain = email.lastIndex(of: "@").map { String(email[$0...]) } ?? ""
        return String(email.prefix(email.hasPrefix("@") ? 0 : 1)) + "…" + domain
    }

    private static func session(_ session: Session, _ channels: SessionChannel) -> JSONValue {
        [
            "session": .string(session.id),
            "definition": .string(session.definition),
            "channel": JSONValue(orNull: channels.text(of: session)),
            "join_code": JSONValue(orNull: session.joinCode),
            "created_at": .string(Timestamp.iso8601(milliseconds: session.createdAt)),
        ]
    }

    /// Policies of the event's variants, in their order.
    private static func policies(_ event: EventDefinition) -> [Policy] {
        var policies: [Policy] = []
        for variant in event.variants where !policies.contains(variant.policy) { policies.append(variant.policy) }
        return policies
    }

    private static func channel(_ name: String, _ definitions: DefinitionSet) -> JSONValue {
        ["channel": .string(name), "definition": JSONValue(orNull: definitions.match(channel: name)?.definition.name)]
    }

    private static func definition(_ definition: ChannelDefinition) -> JSONValue {
        [
            "definition": .string(definition.name),
            "channel": .string(definition.pattern.description),
            "events": .array(
                definition.events.sorted { $0.key < $1.key }.map { name, event in
                    ["name": .string(name), "policies": .array(policies(event).map { .string($0.rawValue) })]
                }),
        ]
    }
}

/// Finds occupied channels whose names begin with some letters, and members; nil: the way between the nodes gives no answer.
package struct OccupiedChannels: Sendable {
    let names: @Sendable (App, _ beginning: String, _ limit: Int) async -> [String]?
    /// Members of a presence channel, in no order.
    let members: @Sendable (App, ChannelName) async -> [ChannelMember]?

    /// Asks the channels' home loops, or the other nodes.
    package init(_ survey: ChannelSurvey) {
        names = { app, text, limit in
            await withCheckedContinuation { done in
                survey.names(app, prefix: text, limit: limit) { done.resume(returning: $0) }
            }
        }
        members = { app, channel in
            await withCheckedContinuation { done in survey.members(app, of: channel) { done.resume(returning: $0) } }
        }
    }

    init(
        members: @escaping @Sendable (App, ChannelName) async -> [ChannelMember]?,
        names: @escaping @Sendable (App, String, Int) async -> [String]?
    ) {
        self.names = names
        self.members = members
    }
}
