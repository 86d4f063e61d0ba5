internal import HubCore
internal import HubDelivery
internal import HubOutbox
internal import Logging
internal import Synchronization

/// Hands committed pushes to the outbox of the node that owns their people. Any thread.
///
/// A person's pushes go by one outbox, whatever channels they come from: alert limits and order need one place. The rows are in the store;
/// the message only says that there are some. An owner that missed it finds them when it looks through the store.
final class NodePushQueue: PushQueue {
    private let outbox: Outbox
    private let store: any DeliveryStore
    private let nodes: NodeDelivery?
    private let logger: Logger
    /// Events whose message may not have arrived.
    private let untold = Mutex<Set<String>>([])

    /// - Parameter nodes: nil: everybody is this node's.
    init(outbox: Outbox, store: any DeliveryStore, nodes: NodeDelivery?, logger: Logger) {
        self.outbox = outbox
        self.store = store
        self.nodes = nodes
        self.logger = logger
    }

    func enqueue(_ deliveries: [PushRecord]) async {
        guard let nodes else { return await outbox.enqueue(deliveries) }
        let owned = nodes.ownedNow
        var (own, others) = ([PushRecord](), Set<String>())
        for delivery in deliveries { if owned.contains(delivery) { own.append(delivery) } else { others.insert(delivery.event) } }
        if !own.isEmpty { await outbox.enqueue(own) }
        tell(others)
    }

    /// Tells the owners once more that could not be told.
    func tick() {
        tell(
            untold.withLock { untold in
                defer { untold = [] }
                return untold
            })
    }

    private func tell(_ events: Set<String>) {
        guard let nodes, !events.isEmpty else { return }
        nodes.send(.pushes(events: events.sorted())) { [weak self] in if !$0 { self?.untold.withLock { $0.formUnion(events) } } }
    }

    /// Another node has committed pushes of these events.
    func pick(_ events: [String]) async {
        guard let nodes else { return }
        for event in events {
            do {
                let owned = nodes.ownedNow
                let due = try await store.deliveries(event: event).filter { $0.state == .due && owned.contains($0) }
                if !due.isEmpty { await outbox.enqueue(due) }
            } catch {
                logger.error("pushes of another node could not be read; trying again", metadata: ["error": "\(error)"])
                _ = untold.withLock { $0.insert(event) }
            }
        }
    }

    /// Takes up the pushes of these partitions' people.
    /// - Parameter isFirst: the former owner is gone, so what it had leased is sent again.
    func resume(_ partitions: PartitionSet, isFirst: Bool) async {
        do {
            try await outbox.resume { partitions.contains($0) && (isFirst || $0.state != .leased) }
        } catch {
            logger.error("open pushes could not be read; trying again", metadata: ["error": "\(error)"])
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            await resume(partitions, isFirst: isFirst)
        }
    }

    /// Gives up the pushes of all other people, who have another owner.
    func keep(_ partitions: PartitionSet) async { await outbox.keep { partitions.contains($0) } }
}

extension PartitionSet {
    func contains(_ push: PushRecord) -> Bool { contains(Partition.of(MemberPlace(app: push.app, channel: push.user))) }
}
