internal import HubAPI
internal import HubDelivery

/// Partitions that have just become this node's, until it knows who is present in their channels and which events are open.
struct Takeover {
    /// A publish or a question that waits meanwhile.
    enum Held {
        case forwarded(ForwardedPublish, of: UInt64)
        case command(PublishCommand)
        case word(DeliveryService.NodeWord)
    }

    /// Time for the nodes to say who is present.
    static let attendedWithin: Duration = .seconds(2)

    let round: UInt64
    var partitions: PartitionSet
    /// Nodes that have not reported everybody.
    var awaited: Set<UInt64>
    var held: [Held] = []
    /// Replays that begin later. The book does not await the open events yet, so a receipt would end each wait in the store. The app may
    /// have read unseen.
    var arrivals: [Arrival] = []
    /// The open events are being read.
    var isReading = false
}
