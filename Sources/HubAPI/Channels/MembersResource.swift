internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `GET /apps/{app}/channels/{channel}/members`: who is in a channel, on which node and loop, and what is known of each connection.
struct MembersResource: Sendable {
    let delivery: any AttendancePort
    let definitions: @Sendable () -> DefinitionSet
    let occupied: OccupiedChannels

    /// Members of one answer, at most, and unless said.
    static let limitMax = 1_000
    static let limitUsual = 100

    func respond(to request: HTTPRequest, app: App, channel text: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let limit = try PageQuery(request: request).limit(max: Self.limitMax, otherwise: Self.limitUsual)
        guard let channel = ChannelName(text) else { throw APIError(400, "the channel's name is not allowed: \(ChannelName.rule)") }
        let match = definitions().match(channel: text)
        guard let all = try await everybody(in: channel, app, user: match?.placeholders.user) else { return .interrupted }
        let members = all.sorted { $0.user < $1.user }.prefix(limit)
        var presence: [String: ParticipantPresence] = [:]
        if match != nil { presence = await delivery.presence(app: app.id, channel: text, users: members.map(\.user)) }
        let rows = members.compactMap { Self.row($0, presence[$0.user]) }
        return .json(["members": .array(rows), "more": .bool(all.count > limit)])
    }

    /// - Parameter user: of the channel's name.
    private func everybody(in channel: ChannelName, _ app: App, user: String?) async throws -> [ChannelMember]? {
        if channel.kind.isPresence { return await occupied.members(app, channel) }
        guard let user else {
            throw APIError(404, "only presence channels, and channels with a user in the name their definition gives, know their members")
        }
        return [ChannelMember(user: user, places: [])]
    }

    /// Nil: nobody is there.
    private static func row(_ member: ChannelMember, _ presence: ParticipantPresence?) -> JSONValue? {
        var members = PresenceAnswer.members(presence)
        if presence?.connections ?? 0 == 0 {
            // The hub's home of the channel knows them, and no definition has them watched.
            guard !member.places.isEmpty else { return nil }
            members["connections"] = .int(Int64(member.places.count))
            members["present"] = true
            members["sockets"] = .array(member.places.prefix(ParticipantPresence.socketsMax).map(PresenceAnswer.socket))
        }
        members["user"] = .string(member.user)
        return .object(members)
    }
}
