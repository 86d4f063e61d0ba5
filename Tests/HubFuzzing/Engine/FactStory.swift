import HubChannels
import PusherProtocol

/// Checks the facts for webhooks as a sequence: only absent subjects can come, and only present ones can go.
struct FactStory {
    private var occupied: Set<String> = []
    private var members: Set<String> = []

    func isOccupied(_ channel: String) -> Bool { occupied.contains(channel) }

    /// The contradiction in the next fact; nil if there is none.
    mutating func follow(_ fact: ChannelFact) -> String? {
        let channel = fact.channel.text
        switch fact.event {
        case .occupied: return occupied.insert(channel).inserted ? nil : "\(channel) is occupied twice"
        case .vacated: return occupied.remove(channel) != nil ? nil : "\(channel) is vacated without being occupied"
        case .memberAdded(let user): return members.insert("\(channel) \(user)").inserted ? nil : "\(user) is added to \(channel) twice"
        case .memberRemoved(let user):
            return members.remove("\(channel) \(user)") != nil ? nil : "\(user) is removed from \(channel) without being there"
        case .cacheMiss: return fact.channel.kind.isCache ? nil : "a cache miss on \(channel)"
        case .clientEvent(let name, _, _, let user):
            return EventName.isClientEvent(name) && (user != nil) == fact.channel.kind.isPresence
                ? nil : "a client event \(name) of \(user ?? "nobody") on \(channel)"
        case .subscriptionCount(let count): return count >= 0 ? nil : "\(channel) has \(count) subscribers"
        }
    }

    /// Checks the end, when everybody must have left.
    func end() -> String? {
        occupied.isEmpty && members.isEmpty ? nil : "still there by the facts: \(occupied) \(members)"
    }
}
