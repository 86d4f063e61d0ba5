internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `POST /api/scenarios/sessions/{join_code}/join` and `POST /games/join`: joins a session by its code, and returns a
/// participant token.
struct JoinResource: Sendable {
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let apps: AppDirectory
    let devices: JoiningDevices
    let gates: JoinGates
    let time: any TimeSource
    let definitions: @Sendable () -> DefinitionSet

    /// - Parameter code: from the path; nil: the body's `join_code`.
    func respond(to request: HTTPRequest, joinCode code: String?) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        var body: JSONBody?
        if code == nil { body = try JSONBody(request.body) }
        let joinCode = try code ?? body?.requiredString("join_code", charactersMax: Field.joinCodeCharactersMax) ?? ""
        let key = request.query.first { $0.name == "app_key" }?.value
        if key == nil, body == nil { body = try JSONBody(request.body) }
        let appKey = try key ?? body?.string("app_key", charactersMax: AppKey.charactersMax)
        let (session, app) = try await self.session(joinCode: joinCode, appKey: appKey, address: request.remoteAddress)
        return try await join(session, app, body ?? JSONBody(request.body), ownID: request.headers["x-client-id"])
    }

    private func join(_ session: Session, _ app: App, _ body: JSONBody, ownID header: String?) async throws -> HTTPResponse {
        let name = try Field.name(body)
        let given = try Field.email(body)
        let id = try Self.deviceID(header, body)
        let installation = id.flatMap(InstallationID.init)
        let channels = SessionChannel(definitions: definitions())
        let definition = try channels.definition(of: session)
        let rule = definition.join
        if given == nil, rule.identity == .email || id == nil {
            let instead = rule.identity == .device ? ", or the installation's own secret id as X-Client-Id" : ""
            throw APIError(400, "email is missing: send the participant's e-mail\(instead)")
        }
        if rule.requiresToken { try await requireToken(body, app: app, installation) }

        let participant: Participant
        do {
            // A guessable id identifies nobody; the e-mail does, if there is one.
            let identity = rule.identity == .device && (installation != nil || given == nil) ? JoinIdentity.device : .email
            participant = try await directory.join(
                session: session, name: name, email: given ?? "", role: rule.role, identity: identity, installation: installation?.handle,
                membersMax: definition.membersMax)
        } catch PeopleStoreError.noSuchSession {
            // The session ended after the look-up. Its code is free again, and as wrong as any other.
            throw Self.wrongCode
        }
        await delivery.rosterChanged(app: app.id, session: session.id, user: participant.user)
        let device = try await devices.register(body, id: id, installation, participant)
        let token = ParticipantToken.issue(
            app: app, participant: participant, device: device, scope: .join, nowSeconds: time.wallSeconds)
        return .json([
            "id": .int(participant.number),
            "session_id": .int(session.clientNumber),
            "name": .string(participant.name),
            "email": JSONValue(orNull: given),
            "joined_at": .string(Timestamp.iso8601(milliseconds: participant.joinedAt)),
            "user_id": .string(participant.user),
            "channel": JSONValue(orNull: channels.name(session: session.id, definition: session.definition, user: participant.user)),
            "token": .string(token),
        ])
    }

    private static let wrongCode = APIError(404, "there is no session with this join code: check the code")

    /// - Parameter appKey: names the app; nil: the first configured app with this code.
    private func session(joinCode: String, appKey: String?, address: String) async throws -> (Session, App) {
        let named = try appKey.map { key throws(APIError) in try AppKey.app(key, of: apps) }
        try gates.pass(address: address)
        let hadTurn = try await gates.wrongCodes.enter(address)
        let code = Field.joinCode(joinCode)
        let sessions: [Session] = if let code { try await directory.sessions(joinCode: code) } else { [] }
        let candidates = named.map { [$0] } ?? apps.table.present.filter(\.isEnabled)
        let found = candidates.lazy.compactMap { app in sessions.first { $0.app == app.id }.map { ($0, app) } }.first
        try await gates.wrongCodes.settle(address, isRight: found != nil, hadTurn: hadTurn)
        guard let (session, app) = found else { throw Self.wrongCode }
        try gates.pass(app: app.id, session: session.id)
        return (session, app)
    }

    /// The installation's own id; nil if missing.
    private static func deviceID(_ header: String?, _ body: JSONBody) throws(APIError) -> String? {
        let inBody = try body.string("device_id", charactersMax: Field.deviceIDCharactersMax)
        guard let id = [header, inBody].compactMap(\.self).first(where: { !$0.isEmpty }) else { return nil }
        return try Field.deviceID(id)
    }

    /// For definitions that require a device for pushes: a usable token in the body, or one registered earlier.
    private func requireToken(_ body: JSONBody, app: App, _ installation: InstallationID?) async throws {
        let registration = try DeviceRegistration(body, names: .join)
        if registration.token != nil { return }
        if let installation, try await directory.installation(app: app.id, handle: installation.handle) != nil { return }
        throw APIError(400, "device_token is missing: nobody joins this session without a device that can be notified")
    }
}
