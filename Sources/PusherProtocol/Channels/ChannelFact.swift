package import HubCore

/// Something that happened to a channel and that its app may want to hear of by webhook (docs/protocol.md, 6.2).
///
/// Facts are raw: the webhook side decides about requests and their time. Facts of one channel keep the order of occurrence.
/// All but `clientEvent` and `cacheMiss` come from the channel's home loop.
package struct ChannelFact: Sendable, Equatable {
    /// Index of the app.
    package let app: Int
    /// The channel that it happened to.
    package let channel: ChannelName
    /// The change, with its details.
    package let event: Event
    /// Place in the stream between the nodes; nil on a single node.
    package let position: StreamID?

    /// A change of the channel, as webhooks report it.
    package enum Event: Sendable, Equatable {
        /// The first subscriber came or the last one left, over all loops.
        case occupied, vacated
        /// A user's first connection to a presence channel came, or the last one left.
        case memberAdded(user: String)
        case memberRemoved(user: String)
        /// An accepted client event. `user` is set on presence channels only; `data` is the receivers' data.
        case clientEvent(name: String, data: String, socketID: SocketID, user: String?)
        /// A new subscriber found an empty cache.
        case cacheMiss
        case subscriptionCount(Int)

        /// The option that selects this fact.
        package var kind: Kinds {
            switch self {
            case .occupied: .occupied
            case .vacated: .vacated
            case .memberAdded: .memberAdded
            case .memberRemoved: .memberRemoved
            case .clientEvent: .clientEvent
            case .cacheMiss: .cacheMiss
            case .subscriptionCount: .subscriptionCount
            }
        }
    }

    /// Facts that an app subscribes to; all others are never made.
    package struct Kinds: OptionSet, Sendable, Hashable {
        /// A bit for each kind.
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// First subscribers.
        package static let occupied = Kinds(rawValue: 1)
        /// Last subscribers that left.
        package static let vacated = Kinds(rawValue: 2)
        /// Members' first connections.
        package static let memberAdded = Kinds(rawValue: 4)
        /// Members' last connections that left.
        package static let memberRemoved = Kinds(rawValue: 8)
        /// Accepted client events.
        package static let clientEvent = Kinds(rawValue: 16)
        /// Subscriptions that found an empty cache.
        package static let cacheMiss = Kinds(rawValue: 32)
        /// Announced numbers of subscribers.
        package static let subscriptionCount = Kinds(rawValue: 64)
    }

    /// A fact of the app with this index.
    package init(app: Int, channel: ChannelName, event: Event, position: StreamID? = nil) {
        self.app = app
        self.channel = channel
        self.event = event
        self.position = position
    }
}
