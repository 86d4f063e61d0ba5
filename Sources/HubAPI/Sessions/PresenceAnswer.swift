internal import HubCore
internal import HubDelivery

/// A person's presence in answers.
enum PresenceAnswer {
    /// - Parameter presence: nil: the person has no connection.
    static func members(_ presence: ParticipantPresence?) -> [String: JSONValue] {
        let connections = presence?.connections ?? 0
        return [
            "present": .bool(connections > 0),
            "connections": .int(Int64(connections)),
            "app_state": connections > 0 ? JSONValue(orNull: presence?.state.rawValue) : .null,
            "sockets": .array((presence?.sockets ?? []).map(socket)),
        ]
    }

    private static func socket(_ socket: ParticipantPresence.Socket) -> JSONValue {
        [
            "node": JSONValue(orNull: socket.node),
            "loop": .int(Int64(socket.loop)),
            "device": JSONValue(orNull: socket.device),
            "app_state": .string(socket.state.rawValue),
            "receipt_age_ms": socket.receiptAge.map { .int($0) } ?? .null,
        ]
    }

    /// A connection about which nothing but its place is known.
    static func socket(_ place: ChannelMember.Place) -> JSONValue {
        [
            "node": JSONValue(orNull: place.node), "loop": place.loop.map { .int(Int64($0)) } ?? .null, "device": .null,
            "app_state": .null, "receipt_age_ms": .null,
        ]
    }

    static func change(_ change: PresenceChange) -> JSONValue {
        [
            "at": .string(Timestamp.iso8601(milliseconds: change.at)), "kind": .string(change.kind.word),
            "device": JSONValue(orNull: change.device),
        ]
    }
}
