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
    private let nodes: NodeDelivery?
    private let told: ToldPushes
    private let state = Mutex(State())

    private struct State {
        /// Events whose message may not have arrived.
        var untold: Set<String> = []
        /// More events than are remembered were not told.
        var hasOverflowed = false
    }

    /// Events that are remembered until the owners can be told. Beyond that the owners look through the store.
    static let untoldMax = 100_000
    /// Events of one message, which stays far below its bound.
    private static let toldMax = 5_000

    /// - Parameter nodes: nil: everybody is this node's.
    init(outbox: Outbox, store: any DeliveryStore, nodes: NodeDelivery?, logger: Logger) {
        self.outbox = outbox
        self.nodes = nodes
        told = ToldPushes(logger: logger) { share in
            guard let nodes else { return }
            let owned = nodes.ownedNow
            switch share {
            case .events(let events):
                let due = try await store.dueDeliveries(events: events).filter { owned.contains($0) }
                if !due.isEmpty { await outbox.enqueue(due) }
            case .everything(let leased):
                try await outbox.resume { owned.contains($0) && ($0.state != .leased || leased.contains($0)) }
            }
        }
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
        let waiting = state.withLock { state in
            defer { state = State() }
            return state
        }
        tell(waiting.untold)
        if waiting.hasOverflowed, let nodes {
            nodes.send(.pushes(events: [])) { [weak self] in if !$0 { self?.state.withLock { $0.hasOverflowed = true } } }
        }
    }

    private func tell(_ events: Set<String>) {
        guard let nodes, !events.isEmpty else { return }
        let sorted = events.sorted()
        for start in stride(from: 0, to: sorted.count, by: Self.toldMax) {
            let part = Array(sorted[start..<min(start + Self.toldMax, sorted.count)])
            nodes.send(.pushes(events: part)) { [weak self] in if !$0 { self?.remember(part) } }
        }
    }

    private func remember(_ events: [String]) {
        state.withLock { state in
            if state.untold.count + events.count <= Self.untoldMax {
                state.untold.formUnion(events)
            } else {
                state.hasOverflowed = true
            }
        }
    }

    /// Another node has committed pushes of these events; of unknown ones, where there are none.
    func pick(_ events: [String]) { told.take(events) }

    /// Takes up the pushes of these partitions' people, whose former owner is gone. Pushes that it had leased are sent again.
    func takeOver(_ partitions: PartitionSet) async { await told.takeAll(leasedOf: partitions) }

    /// Gives up the pushes of all other people, who have another owner.
    func keep(_ partitions: PartitionSet) async { await outbox.keep { partitions.contains($0) } }
}

extension PartitionSet {
    func contains(_ push: PushRecord) -> Bool { contains(OpenPush(push)) }

    func contains(_ push: OpenPush) -> Bool { contains(Partition.of(MemberPlace(app: push.app, channel: push.user))) }
}
