internal import HubCore
package import PusherProtocol

/// The JSON of webhooks. Receivers read every value as a string; only the protocol's two numbers are numbers.
package enum WebhookText {
    /// One event: an object with exactly the members of its kind.
    package static func event(_ fact: ChannelFact) -> [UInt8] {
        var text: [UInt8] = []
        text += "{\"name\":\"".utf8
        text += fact.event.name.utf8
        text.append(UInt8(ascii: "\""))
        append("channel", fact.channel.text, to: &text)
        switch fact.event {
        case .occupied, .vacated, .cacheMiss: break
        case .memberAdded(let user), .memberRemoved(let user): append("user_id", user, to: &text)
        case .clientEvent(let name, let data, let socketID, let user):
            append("event", name, to: &text)
            append("data", data, to: &text)
            append("socket_id", socketID.description, to: &text)
            if let user, fact.channel.kind.isPresence { append("user_id", user, to: &text) }
        case .subscriptionCount(let count): text += ",\"subscription_count\":\(count)".utf8
        }
        text.append(UInt8(ascii: "}"))
        return text
    }

    /// The body of a request.
    /// - Parameter events: objects separated by commas.
    package static func body(timeMilliseconds: Int64, events: [UInt8]) -> [UInt8] {
        Array("{\"time_ms\":\(timeMilliseconds),\"events\":[".utf8) + events + Array("]}".utf8)
    }

    private static func append(_ name: String, _ value: String, to text: inout [UInt8]) {
        text += ",\"\(name)\":".utf8
        JSONText.appendQuoted(value.utf8, to: &text)
    }
}

extension ChannelFact.Event {
    /// The name in Pusher's protocol.
    fileprivate var name: String {
        switch self {
        case .occupied: "channel_occupied"
        case .vacated: "channel_vacated"
        case .memberAdded: "member_added"
        case .memberRemoved: "member_removed"
        case .clientEvent: "client_event"
        case .cacheMiss: "cache_miss"
        case .subscriptionCount: "subscription_count"
        }
    }
}
