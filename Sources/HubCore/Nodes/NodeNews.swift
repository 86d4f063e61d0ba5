/// News that a node reads from the way between the nodes. All nodes read the same, in one order for each app.
package enum NodeNews: Sendable, Equatable {
    /// A message of a node, this one included, with its place in the stream.
    case message(origin: UInt64, at: StreamID, [UInt8])
    /// Messages of a node are missing: they were dropped before this node read them.
    case gap(origin: UInt64, missing: UInt64)
    /// A change that the way itself told.
    case announcement(Announcement)
    /// The same from the last seconds before this run of the node: for webhooks alone, which another node may hand to it.
    case earlier(Announcement)
    /// The way lost its memory, or another server took over. All that was said before may be lost. The name is that of the new memory.
    case newEpoch(String)
    /// This node was declared dead and begins anew. It has not heard what was said meanwhile. The memory is whole.
    case newRun
}
