/// Announcements about a channel's subscribers.
package struct SubscriberNews: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The first one came, the last one left.
    package static let occupancy = SubscriberNews(rawValue: 1)
    /// Every new number; those of large channels once in five seconds at most.
    package static let counts = SubscriberNews(rawValue: 2)
}
