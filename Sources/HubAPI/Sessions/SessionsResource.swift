internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import HubJSON

/// `PUT|GET|DELETE /apps/{app}/sessions/{session}`: sessions, made and ended by the backend.
struct SessionsResource: Sendable {
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let definitions: @Sendable () -> DefinitionSet

    /// Bytes of `attributes` as compact JSON: every event reads its session.
    static let attributesBytesMax = 16 * 1024
    private static let definitionNameCharactersMax = 100

    func respond(to request: HTTPRequest, app: String, session: String) async throws -> HTTPResponse {
        switch request.method {
        case "PUT": try await put(request, app: app, id: Field.sessionID(session))
        case "GET": try await get(app: app, id: Field.sessionID(session))
        case "DELETE": try await delete(app: app, id: Field.sessionID(session))
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "PUT", "DELETE"])
        }
    }

    private func put(_ request: HTTPRequest, app: String, id: String) async throws -> HTTPResponse {
        let body = try JSONBody(request.body)
        let channels = SessionChannel(definitions: definitions())
        let name = try body.requiredString("definition", charactersMax: Self.definitionNameCharactersMax)
        guard let definition = channels.definitions.definition(named: name) else {
            let known = channels.definitions.names
            let remedy = known.isEmpty ? "none is loaded" : "use one of \(known.joined(separator: ", "))"
            throw APIError(400, "there is no definition \(APIError.quoted(name)): \(remedy)")
        }
        try channels.check(session: id, definition: definition)
        let session = try await directory.putSession(
            app: app, id: id, definition: name, joinCode: Self.joinCode(body), attributes: Self.attributes(body))
        return .json(Self.answer(session, channels))
    }

    private func get(app: String, id: String) async throws -> HTTPResponse {
        guard let session = try await directory.session(app: app, id: id) else { throw APIError.noSuchSession(id) }
        return .json(Self.answer(session, SessionChannel(definitions: definitions())))
    }

    /// Deleting a missing session succeeds, so that a backend can repeat the request after a lost answer.
    private func delete(app: String, id: String) async throws -> HTTPResponse {
        guard let session = try await directory.session(app: app, id: id) else { return .json([:]) }
        let participants = try await directory.participants(app: app, session: id)
        guard try await directory.deleteSession(app: app, id: id) else { return .json([:]) }
        await delivery.sessionEnded(session, users: participants.map(\.user))
        return .json([:])
    }

    private static func joinCode(_ body: JSONBody) throws(APIError) -> String? {
        guard let text = try body.string("join_code", charactersMax: Field.joinCodeCharactersMax) else { return nil }
        guard let code = Field.joinCode(text) else {
            throw APIError(400, "join_code has 1 to \(Field.joinCodeCharactersMax) characters out of A-Z a-z 0-9 _ -")
        }
        return code
    }

    private static func attributes(_ body: JSONBody) throws(APIError) -> [String: JSONValue] {
        guard let attributes = try body.object("attributes") else { return [:] }
        guard JSONValue.object(attributes).serialized().count <= attributesBytesMax else {
            throw APIError(400, "attributes is too large: at most \(attributesBytesMax) bytes of JSON")
        }
        return attributes
    }

    private static func answer(_ session: Session, _ channels: SessionChannel) -> JSONValue {
        [
            "id": .string(session.id),
            "session_id": .int(session.clientNumber),
            "definition": .string(session.definition),
            "join_code": JSONValue(orNull: session.joinCode),
            "channel": JSONValue(orNull: channels.text(of: session)),
            "attributes": .object(session.attributes),
            "created_at": .string(Timestamp.iso8601(milliseconds: session.createdAt)),
        ]
    }
}

extension JSONValue {
    /// Null for nil.
    init(orNull text: String?) { self = text.map(JSONValue.string) ?? .null }
}
