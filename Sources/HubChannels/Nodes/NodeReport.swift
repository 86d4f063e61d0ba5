package import HubCore

/// News that a node has heard on the way between the nodes, for the loop that is home of the channels.
package struct NodeReport: Sendable {
    /// Index of the way, for apps are spread over several.
    package var shard: Int
    /// Up to where everything has been heard.
    package var position: StreamID
    /// The way lost its memory before this.
    package var startsEpoch: Bool
    /// Lists can be asked for at once: the memory is whole, and only this node has to begin anew.
    package var isWhole = false
    /// In order; places of this home alone.
    package var announcements: [Announcement]
}
