/// A change that a script told to all nodes, once.
package struct Announcement: Sendable, Equatable {
    /// Place in the stream.
    package let id: StreamID
    /// Where it happened; nil for what concerns no channel.
    package let place: MemberPlace?
    package let event: Event
    /// How it stands to a memory that Redis lost.
    package let standing: Standing

    package init(id: StreamID, place: MemberPlace?, event: Event, standing: Standing = .change) {
        self.id = id
        self.place = place
        self.event = event
        self.standing = standing
    }

    /// How sure it is that nobody was told before. Redis may lose its memory between a change and its announcement, or right after it.
    package enum Standing: Sendable, Equatable {
        /// A change, seen by the memory that tells it.
        case change
        /// Told in a memory that was lost, or perhaps: for a list that is new, but no change.
        case repeated
        /// The same of somebody of whom the new memory hears for the first time. Nodes that knew them in the lost one say so (`known`).
        case early
        /// Repeated before, and a change after all: for webhooks alone.
        case confirmed
        /// The end of what was there in a memory that was lost.
        case late
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
