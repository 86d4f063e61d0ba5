internal import HubChannels
internal import HubCore
internal import HubDelivery

/// `POST /api/scenarios/sessions/{join_code}/join` and `POST /games/join`: somebody comes into a session by its code, and gets a
/// participant token.
struct JoinResource: Sendable {
    let directory: any Directory
    let desk: any AttendanceDesk
    let apps: AppDirectory
    let shelf: DeviceShelf
    let gates: JoinGates
    let time: any TimeSource
    let definitions: @Sendable () -> DefinitionSet

    /// - Parameter code: from the path; nil: the body's `join_code`.
    func respond(to request: HTTPRequest, joinCode code: String?) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        var body: JSONBody?
        if code == nil { body = try JSONBody(request.body) }
        let joinCode = try code ?? body?.requiredString("join_code", charactersMax: Field.joinCodeCharactersMax) ?? ""
        let (session, app) = try await self.session(joinCode: joinCode, address: request.remoteAddress)
        return try await join(session, app, body ?? JSONBody(request.body), ownID: request.headers["x-client-id"])
    }

    private func join(_ session: Session, _ app: App, _ body: JSONBody, ownID header: String?) async throws -> HTTPResponse {
        let name = try Field.name(body)
        let given = try Field.email(body)
        let ownID = try Self.deviceID(header, body)
        let channels = SessionChannel(definitions: definitions())
        let rule = try channels.definition(of: session).join
        if given == nil, rule.identity == .email || ownID == nil {
            let instead = rule.identity == .device ? ", or the installation's own name as X-Client-Id" : ""
            throw APIError(400, "email is missing: send the participant's e-mail\(instead)")
        }
        let email = given ?? ""
        if rule.requiresToken { try await requireToken(body, app: app, ownID: ownID) }

        let participant: Participant
        do {
            participant = try await directory.join(
                session: session, name: name, email: email, role: rule.role, identity: rule.identity, device: ownID)
        } catch DirectoryError.noSuchSession {
            // It ended after the look-up; the code is free again, and as good as any other wrong one.
            throw Self.wrongCode
        }
        await desk.rosterChanged(app: app.id, session: session.id, user: participant.user)
        let device = try await register(body, ownID: ownID, participant: participant, adopts: rule.identity == .device)
        let token = ParticipantToken.issue(
            app: app, session: session.id, user: participant.user, device: device, nowSeconds: time.wallSeconds)
        return .json([
            "id": .int(participant.number),
            "session_id": .int(session.clientNumber),
            "name": .string(participant.name),
            "email": JSONValue(orNull: participant.email ?? given),
            "joined_at": .string(Timestamp.iso8601(milliseconds: participant.joinedAt)),
            "user_id": .string(participant.user),
            "channel": JSONValue(orNull: channels.name(session: session.id, definition: session.definition, user: participant.user)),
            "token": .string(token),
        ])
    }

    private static let wrongCode = APIError(404, "there is no session with this join code: check the code")

    private func session(joinCode: String, address: String) async throws -> (Session, App) {
        try gates.pass(address: address)
        let hadTurn = try await gates.wrongCodes.enter(address)
        let code = Field.joinCode(joinCode)
        let found: Session? = if let code { try await directory.session(joinCode: code) } else { nil }
        let app = found.flatMap { apps.app(id: $0.app) }
        try await gates.wrongCodes.settle(address, isRight: app != nil, hadTurn: hadTurn)
        guard let session = found, let app else { throw Self.wrongCode }
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        try gates.pass(app: app.id, session: session.id)
        return (session, app)
    }

    /// The installation's own name for itself; nil when it sends none.
    private static func deviceID(_ header: String?, _ body: JSONBody) throws(APIError) -> String? {
        let inBody = try body.string("device_id", charactersMax: Field.deviceIDCharactersMax)
        guard let id = [header, inBody].compactMap(\.self).first(where: { !$0.isEmpty }) else { return nil }
        return try Field.deviceID(id)
    }

    /// Stores the device token if there is a usable one, and returns the id of the participant's device either way. A join
    /// never fails for what it says of the token, because people must get in without notifications too.
    ///
    /// An installation that does not name itself is called after its platform. Ids belong to one user, so the next token of the
    /// same phone replaces this one instead of making a second device; two phones of one person and one platform need ids of their own.
    /// - Parameter adopts: an installation that sends no token brings along the one it registered before.
    private func register(_ body: JSONBody, ownID: String?, participant: Participant, adopts: Bool) async throws -> String {
        let registration = try? DeviceRegistration(body, names: .join)
        // The platform counts even beside a token that is no good: the next one then finds the same device.
        let platform = registration?.inferredPlatform ?? (try? DeviceRegistration.platform(body, names: .join))
        let device = ownID ?? Self.derivedID(platform)
        guard let registration, registration.token != nil else {
            if adopts, let ownID { try await adopt(ownID, by: participant) }
            return device
        }
        let owner = DeviceRegistration.Owner(app: participant.app, user: participant.user, device: device)
        let former = try await shelf.stored(owner)
        do {
            _ = try await shelf.put(registration, of: owner, former: former, keepsFormer: true)
        } catch is APIError {
            // The token does not fit the provider that came with it; an earlier one stays.
            return device
        }
        return device
    }

    /// The installation is the participant's from now on, token and all.
    private func adopt(_ id: String, by participant: Participant) async throws {
        guard var device = try await directory.installation(app: participant.app, id: id), device.user != participant.user else { return }
        let former = device.user
        device.user = participant.user
        _ = try await directory.putDevice(device)
        if former == WaitingDevices.owner(ofInstallation: id) {
            _ = try await directory.deleteDevice(app: participant.app, user: former, id: id)
        }
    }

    /// For definitions that let nobody in who cannot be pushed to: a usable token in the body, or one that was registered before.
    private func requireToken(_ body: JSONBody, app: App, ownID: String?) async throws {
        let registration = try DeviceRegistration(body, names: .join)
        if registration.token != nil { return }
        if let ownID, try await directory.installation(app: app.id, id: ownID) != nil { return }
        throw APIError(400, "device_token is missing: nobody joins this session without a device that can be notified")
    }

    static func derivedID(_ platform: DevicePlatform?) -> String {
        platform.map { "unnamed-\($0.rawValue)" } ?? "unnamed"
    }
}
