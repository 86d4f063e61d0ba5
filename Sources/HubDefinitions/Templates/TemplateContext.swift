package import HubCore

/// Values of the names in a notification's templates.
package struct TemplateContext: Sendable {
    /// Values of `{session}` and `{user}` in the channel's name; nil if the pattern lacks the placeholder.
    package var channel: ChannelPattern.Match
    /// Session of the channel; nil for none.
    package var session: Session?
    /// Recipient of the text; nil if on no roster.
    package var participant: Participant?
    /// Id of the event.
    package var eventID: String
    /// Name of the event on the socket.
    package var eventName: String
    /// Time of the event's commit, in milliseconds since 1970.
    package var eventTime: Int64
    /// The published data; anything but an object has no variables.
    package var data: JSONValue

    /// Values of one publish, for one recipient.
    package init(
        channel: ChannelPattern.Match, session: Session?, participant: Participant?, eventID: String, eventName: String,
        eventTime: Int64,
        data: JSONValue
    ) {
        self.channel = channel
        self.session = session
        self.participant = participant
        self.eventID = eventID
        self.eventName = eventName
        self.eventTime = eventTime
        self.data = data
    }

    /// Value of a name with a root; nil if missing.
    func value(_ root: TemplateRoot, _ path: [String]) -> JSONValue? {
        switch root {
        case .data: return data.member(path[...])
        case .event:
            switch path[0] {
            case "id": return .string(eventID)
            case "name": return .string(eventName)
            default: return .string(Timestamp.iso8601(milliseconds: eventTime))
            }
        case .session:
            if path[0] == "id", let id = channel.session { return .string(id) }
            guard let session else { return nil }
            switch path[0] {
            case "id": return .string(session.id)
            case "number": return .int(session.clientNumber)
            case "join_code": return session.joinCode.map(JSONValue.string)
            default: return JSONValue.object(session.attributes).member(path[1...])
            }
        case .participant:
            guard let participant else { return nil }
            switch path[0] {
            case "id": return .string(participant.user)
            case "number": return .int(participant.number)
            case "name": return .string(participant.name)
            // A participant without a role must not stop an event for the others, so the role reads as an empty text.
            default: return .string(participant.role ?? "")
            }
        }
    }

    /// Value of a bare name outside of sections: placeholders win over published data.
    func value(bare path: [String]) -> JSONValue? {
        if path.count == 1 {
            switch ChannelPattern.Placeholder(rawValue: path[0]) {
            case .session: if let session = channel.session { return .string(session) }
            case .user: if let user = channel.user { return .string(user) }
            case nil: break
            }
        }
        return data.member(path[...])
    }
}

extension JSONValue {
    /// Value at the end of a path of member names; nil if missing.
    func member(_ path: ArraySlice<String>) -> JSONValue? {
        var value = self
        for name in path {
            guard let next = value[name] else { return nil }
            value = next
        }
        return value
    }

    /// Text that a template prints: strings unchanged, everything else as JSON.
    var templateText: String { stringValue ?? text }
}
