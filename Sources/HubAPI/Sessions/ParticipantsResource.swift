internal import HubCore
internal import HubCrypto
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `GET /apps/{app}/sessions/{session}/participants` and `PUT|DELETE …/participants/{user}`: the roster, kept by the backend.
struct ParticipantsResource: Sendable {
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let time: any TimeSource
    let definitions: @Sendable () -> DefinitionSet

    private static let roleCharactersMax = 100

    /// The roster, with each participant's presence.
    func respondToList(_ request: HTTPRequest, app: String, session id: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET"]) }
        guard let session = try await directory.session(app: app, id: try Field.sessionID(id)) else { throw APIError.noSuchSession(id) }
        let roster = try await directory.roster(app: app, session: id).sorted { $0.participant.number < $1.participant.number }
        let presence = await delivery.presence(app: app, session: session, users: roster.map(\.participant.user))
        let entries = roster.map { entry in
            var members = Self.members(entry.participant)
            members.merge(PresenceAnswer.members(presence[entry.participant.user])) { $1 }
            members["devices"] = .int(Int64(entry.devices.count))
            return JSONValue.object(members)
        }
        return .json(["participants": .array(entries)])
    }

    /// `POST …/participants/{user}/token`: admits an invited person. The backend decides about the recipient of the token.
    func issueToken(_ request: HTTPRequest, app: App, session: String, user: String) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        let (session, user) = (try Field.sessionID(session), try Field.userID(user))
        let body = try request.body.isEmpty ? JSONBody(.object([:]), named: "the body") : JSONBody(request.body)
        let scope = try body.choice("scope", of: [ParticipantScope.session, .app]) ?? .session
        let named = try body.string("device", charactersMax: Field.deviceIDCharactersMax)
            .map { text throws(APIError) in try Field.deviceID(text) }
        guard let participant = try await directory.participant(app: app.id, session: session, user: user) else {
            throw APIError(404, "the session has no participant \(APIError.quoted(user)): add one with PUT, then ask again")
        }
        let device = named ?? JoiningDevices.unnamed(nil, SecureRandom.bytes(JoiningDevices.randomByteCount))
        let now = time.wallSeconds
        return .json([
            "token": .string(ParticipantToken.issue(app: app, participant: participant, device: device, scope: scope, nowSeconds: now)),
            "expires_at": .string(Timestamp.iso8601(milliseconds: (now + ParticipantToken.lifetimeSeconds) * 1000)),
        ])
    }

    func respond(to request: HTTPRequest, app: String, session: String, user: String) async throws -> HTTPResponse {
        let session = try Field.sessionID(session)
        let user = try Field.userID(user)
        switch request.method {
        case "PUT": return try await put(request, app: app, session: session, user: user)
        case "DELETE":
            let found = try await directory.session(app: app, id: session)
            _ = try await directory.deleteParticipant(app: app, session: session, user: user)
            // Also for a user off the roster: an earlier request may have ended half-way.
            if let found { await delivery.removed(found, user: user) }
            return .json([:])
        default: throw APIError.methodNotAllowed(request.method, allowed: ["PUT", "DELETE"])
        }
    }

    private func put(_ request: HTTPRequest, app: String, session id: String, user: String) async throws -> HTTPResponse {
        let body = try JSONBody(request.body)
        let name = try Field.name(body)
        let email = try Field.email(body)
        guard let session = try await directory.session(app: app, id: id) else { throw APIError.noSuchSession(id) }
        let channels = SessionChannel(definitions: definitions())
        let definition = try channels.definition(of: session)
        try channels.check(user: user, session: session, definition: definition)
        let role = try Self.role(body, definition)
        let participant = try await directory.putParticipant(app: app, session: id, user: user, name: name, email: email, role: role)
        await delivery.rosterChanged(app: app, session: id, user: user)
        return .json(.object(Self.members(participant)))
    }

    private static func role(_ body: JSONBody, _ definition: ChannelDefinition) throws(APIError) -> String? {
        guard let role = try body.string("role", charactersMax: roleCharactersMax) else { return nil }
        guard definition.roles.contains(role) else {
            let remedy = definition.roles.isEmpty ? "the definition has no roles" : "use one of \(definition.roles.joined(separator: ", "))"
            throw APIError(400, "there is no role \(APIError.quoted(role)) in the definition \(definition.name): \(remedy)")
        }
        return role
    }

    private static func members(_ participant: Participant) -> [String: JSONValue] {
        [
            "id": .int(participant.number),
            "user": .string(participant.user),
            "name": .string(participant.name),
            "email": JSONValue(orNull: participant.email),
            "role": JSONValue(orNull: participant.role),
            "joined_at": .string(Timestamp.iso8601(milliseconds: participant.joinedAt)),
        ]
    }
}
