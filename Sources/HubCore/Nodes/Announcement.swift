/// A change that a script told to all nodes, once.
package struct Announcement: Sendable, Equatable {
    /// Place in the stream.
    package let id: StreamID
    /// Where it happened; nil for what concerns no channel.
    package let place: MemberPlace?
    package let event: Event
    /// Told before Redis lost its memory, or perhaps: for a list that is new, but no change.
    package let isRepeated: Bool
    /// Told again because it is a change after all: for webhooks alone.
    package let isConfirmed: Bool

    package init(id: StreamID, place: MemberPlace?, event: Event, isRepeated: Bool = false, isConfirmed: Bool = false) {
        self.id = id
        self.place = place
        self.event = event
        self.isRepeated = isRepeated
        self.isConfirmed = isConfirmed
    }

    package enum Event: Sendable, Equatable {
        /// The user's first connection of all nodes came, or the last one is gone.
        case added(user: String, info: [UInt8]?)
        case removed(user: String)
        /// The user's info is another one from now on.
        case info(user: String, [UInt8]?)
        /// The channel's first subscriber came, or the last one is gone.
        case occupied, vacated
        /// A new number of subscribers.
        case count(Int)
        /// A node was declared dead.
        case dead(node: UInt64)
    }
}
