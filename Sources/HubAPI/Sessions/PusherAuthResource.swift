internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `POST /pusher/auth` and `/pusher/user-auth`: signs for participants what their app's backend would otherwise have to sign
/// (docs/protocol.md, 4.3).
struct PusherAuthResource: Sendable {
    let bearers: BearerCheck
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let time: any TimeSource
    let definitions: @Sendable () -> DefinitionSet
    private let channelPace = PaceGate("channel authorizations of this participant", .authorizations)
    private let userPace = PaceGate("sign-ins of this participant")

    init(
        bearers: BearerCheck, directory: any PeopleStore, delivery: any AttendancePort, time: any TimeSource,
        definitions: @escaping @Sendable () -> DefinitionSet
    ) {
        self.bearers = bearers
        self.directory = directory
        self.delivery = delivery
        self.time = time
        self.definitions = definitions
    }

    /// Two numbers below 2^53 and a dot have 33.
    private static let socketIDCharactersMax = 64

    /// Authorizes a subscription to a channel of the participant's session.
    func channel(_ request: HTTPRequest) async throws -> HTTPResponse {
        let (bearer, body, socketID) = try await read(request, channelPace)
        let name = try body.requiredString("channel_name", charactersMax: ChannelName.charactersMax)
        guard let channel = ChannelName(name) else { throw APIError(400, "channel_name is not valid: \(ChannelName.rule)") }
        let participant = bearer.participant
        guard let session = try await directory.session(app: bearer.app.id, id: participant.session) else {
            throw APIError.unauthorized("the session has ended: join another one")
        }
        let channels = SessionChannel(definitions: definitions())
        guard channels.isOpen(channel.text, session: session.id, definition: session.definition, user: participant.user) else {
            let own = channels.name(session: session.id, definition: session.definition, user: participant.user)
            let remedy = own.map { "subscribe to '\($0)'" } ?? "the session has no channel for this participant"
            throw APIError(403, "the channel '\(channel)' does not belong to the session of this participant token: \(remedy)")
        }
        let signer = bearer.app.signer
        let channelData = channel.kind.isPresence ? Self.member("user_id", participant).text : nil
        await bind(socketID, bearer, to: channel)
        // Removed in the meantime: revokes the binding.
        guard try await directory.participant(app: bearer.app.id, session: session.id, user: participant.user) != nil else {
            await delivery.removed(session, user: participant.user)
            throw APIError.unauthorized("the participant was removed from the session: join again")
        }
        let auth = SubscriptionAuth.sign(
            socketID: socketID, channel: channel.text, channelData: channelData, key: signer.key, secret: signer.secret)
        var answer: [String: JSONValue] = ["auth": .string(auth)]
        if let channelData { answer["channel_data"] = .string(channelData) }
        return .json(.object(answer))
    }

    /// Authorizes a sign-in.
    func user(_ request: HTTPRequest) async throws -> HTTPResponse {
        let (bearer, _, socketID) = try await read(request, userPace)
        try await bearers.requirePerson(bearer)
        let signer = bearer.app.signer
        let userData = Self.member("id", bearer.participant).text
        await bind(socketID, bearer, to: nil)
        let auth = SubscriptionAuth.signUser(socketID: socketID, userData: userData, key: signer.key, secret: signer.secret)
        return .json(["auth": .string(auth), "user_data": .string(userData)])
    }

    private func read(_ request: HTTPRequest, _ pace: PaceGate) async throws -> (Bearer, JSONBody, SocketID) {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        let bearer = try await bearers.bearer(of: request)
        try pace.pass(bearer, now: time.monotonicNanoseconds)
        let body = try JSONBody(request.body, acceptsForm: true)
        let text = try body.requiredString("socket_id", charactersMax: Self.socketIDCharactersMax)
        guard let socketID = SocketID(text) else {
            throw APIError(400, "socket_id is not valid: send the one that the connection was given, two numbers with a dot")
        }
        return (bearer, body, socketID)
    }

    /// Before the answer goes out, because the client subscribes as soon as it arrives.
    private func bind(_ socketID: SocketID, _ bearer: Bearer, to channel: ChannelName?) async {
        await delivery.bind(
            socketID, app: bearer.app.id, user: bearer.participant.user, device: bearer.device, channel: channel)
    }

    /// The participant as other members see them: never with the e-mail.
    private static func member(_ idName: String, _ participant: Participant) -> JSONValue {
        var about: [String: JSONValue] = ["name": .string(participant.name)]
        if let role = participant.role { about["role"] = .string(role) }
        return .object([idName: .string(participant.user), "user_info": .object(about)])
    }
}
