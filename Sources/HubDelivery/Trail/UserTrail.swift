/// Some of a user's events with their outcomes, the newest first.
package struct UserTrail: Sendable, Equatable {
    /// An event with its position.
    package struct Entry: Sendable, Equatable {
        /// Grows from event to event over all apps and channels, as `UserEvents.Entry.position`.
        package var position: Int64
        /// The event's trail, with this user as its only recipient.
        package var trail: EventTrail

        /// An event as stored.
        package init(position: Int64, trail: EventTrail) {
            self.position = position
            self.trail = trail
        }
    }

    /// The page's events.
    package var entries: [Entry]
    /// Position for the next page: everything from it on has been searched, even if nothing was found. Nil: nothing is left.
    package var next: Int64?

    /// A page as stored.
    package init(entries: [Entry], next: Int64?) {
        self.entries = entries
        self.next = next
    }

    /// Most events of one page.
    package static let pageMax = 100
}
