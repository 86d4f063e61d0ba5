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

    /// - Parameters:
    ///   - shard: index of the way.
    ///   - position: up to where everything has been heard.
    ///   - startsEpoch: the way lost its memory before this.
    ///   - isWhole: lists can be asked for at once.
    ///   - announcements: in order.
    package init(shard: Int, position: StreamID, startsEpoch: Bool, isWhole: Bool = false, announcements: [Announcement]) {
        (self.shard, self.position, self.startsEpoch, self.isWhole, self.announcements) = (
            shard, position, startsEpoch, isWhole, announcements
        )
    }
}
