internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// `GET /apps/{app}/users/{user}`: where a person takes part, whether they are there, and their devices.
struct PersonResource: Sendable {
    let store: any DeliveryStore
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let definitions: @Sendable () -> DefinitionSet

    /// Most sessions of one answer: the presence in each is asked for.
    static let placesMax = 20

    func respond(to request: HTTPRequest, app: String, user text: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let user = try Field.userID(text)
        let places = try await store.places(app: app, user: user, limit: Self.placesMax + 1)
        let channels = SessionChannel(definitions: definitions())
        var rows: [JSONValue] = []
        for place in places.prefix(Self.placesMax) { rows.append(try await row(place, channels)) }
        let devices = try await directory.devices(app: app, user: user)
        return .json([
            "user": .string(user), "participants": .array(rows), "more": .bool(places.count > Self.placesMax),
            "devices": .array(devices.map(DeviceRegistry.answer)),
        ])
    }

    private func row(_ participant: Participant, _ channels: SessionChannel) async throws -> JSONValue {
        let session = try await directory.session(app: participant.app, id: participant.session)
        var presence: ParticipantPresence?
        if let session {
            presence = await delivery.presence(app: participant.app, session: session, users: [participant.user])[participant.user]
        }
        let channel = session.flatMap { channels.name(session: $0.id, definition: $0.definition, user: participant.user) }
        let members: [String: JSONValue] = [
            "session": .string(participant.session),
            "definition": JSONValue(orNull: session?.definition),
            "channel": JSONValue(orNull: channel),
            "name": .string(participant.name),
            "email": JSONValue(orNull: participant.email.map(SearchResource.cut)),
            "role": JSONValue(orNull: participant.role),
            "joined_at": .string(Timestamp.iso8601(milliseconds: participant.joinedAt)),
            "changes": .array((presence?.changes ?? []).map(PresenceAnswer.change)),
        ]
        return .object(members.merging(PresenceAnswer.members(presence)) { $1 })
    }
}
