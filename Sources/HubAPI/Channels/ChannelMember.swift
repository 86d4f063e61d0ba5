/// A member of a presence channel, and where their connections are.
package struct ChannelMember: Sendable, Equatable {
    /// A connection of one node, or all of the member's connections of one of several nodes.
    package struct Place: Sendable, Equatable {
        /// Name of the node; nil: there is one.
        package var node: String?
        /// Index of the event loop; nil: only its own node knows it.
        package var loop: Int?

        package init(node: String?, loop: Int?) {
            self.node = node
            self.loop = loop
        }
    }

    /// The member's user id.
    package var user: String
    /// At least one.
    package var places: [Place]

    package init(user: String, places: [Place]) {
        self.user = user
        self.places = places
    }
}
