import HubCore

/// Channel attributes requested by `info`, in publishes and queries.
package struct ChannelAttributes: OptionSet, Hashable, Sendable {
    /// The bits of the attributes below.
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Distinct users, on presence channels only.
    package static let userCount = ChannelAttributes(rawValue: 1)
    /// Connections.
    package static let subscriptionCount = ChannelAttributes(rawValue: 2)
    /// The last event, on cache channels only.
    package static let cache = ChannelAttributes(rawValue: 4)

    /// Parses the comma-separated list; empty items are ignored.
    /// - Throws: a sentence that names the first unknown attribute.
    package init(parsing list: String) throws(ProtocolError) {
        self = []
        for item in list.split(separator: ",") {
            let name = item.drop { $0 == " " }
            switch name {
            case "": continue
            case "user_count": insert(.userCount)
            case "subscription_count": insert(.subscriptionCount)
            case "cache": insert(.cache)
            default:
                throw ProtocolError(
                    message: "info has the unknown attribute '\(name.quotable(64))': use user_count, subscription_count or cache")
            }
        }
    }
}
