package import PusherProtocol

/// Something that happened to a channel and that its app may want to hear of by webhook (docs/protocol.md, 6.2).
///
/// Raw: what is worth a request, and when, the webhook side decides. Facts of one channel come in the order in which they
/// happened, all but `clientEvent` and `cacheMiss` from the channel's home loop.
package struct ChannelFact: Sendable, Equatable {
    /// Index of the app.
    package let app: Int
    package let channel: ChannelName
    package let event: Event

    package enum Event: Sendable, Equatable {
        /// The first subscriber came, or the last one went, over all loops.
        case occupied, vacated
        /// A user's first connection to a presence channel, or its last one.
        case memberAdded(user: String)
        case memberRemoved(user: String)
        /// Each accepted client event; `user` on presence channels only, `data` as the receivers get it.
        case clientEvent(name: String, data: String, socketID: SocketID, user: String?)
        /// A subscriber found nothing cached.
        case cacheMiss
        case subscriptionCount(Int)

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

    /// Which facts an app wants at all; the others are never made.
    package struct Kinds: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let occupied = Kinds(rawValue: 1)
        package static let vacated = Kinds(rawValue: 2)
        package static let memberAdded = Kinds(rawValue: 4)
        package static let memberRemoved = Kinds(rawValue: 8)
        package static let clientEvent = Kinds(rawValue: 16)
        package static let cacheMiss = Kinds(rawValue: 32)
        package static let subscriptionCount = Kinds(rawValue: 64)
    }

    package init(app: Int, channel: ChannelName, event: Event) {
        self.app = app
        self.channel = channel
        self.event = event
    }
}
