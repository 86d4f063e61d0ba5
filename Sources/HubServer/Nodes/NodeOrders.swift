internal import HubCore
internal import Synchronization

/// Orders that came in at this node over HTTP, until all living nodes have carried them out. Any thread.
///
/// Without the way to the others, this node carries an order out alone. The others do so once they can read it, if it still says something
/// by then.
final class NodeOrders: Sendable {
    typealias Order = DeliveryMessage.AttendanceOrder

    /// Ways on which orders go.
    struct Ways: Sendable {
        /// Sends to all nodes. `done` says whether they will read it; a kept order fails only when the node stops.
        let send: @Sendable (_ order: Order, _ ticket: UInt64?, _ done: @escaping @Sendable (Bool) -> Void) -> Void
        /// Carries out on this node.
        let carryOut: @Sendable (_ order: Order, _ done: @escaping @Sendable () -> Void) -> Void
        /// The nodes that live, this one included.
        let living: @Sendable () -> Set<UInt64>
    }

    private struct Waiting {
        let order: Order
        /// Nodes that have not carried it out; nil: nobody waits for them.
        var nodes: Set<UInt64>?
        /// It is on its way to the other nodes.
        var isSent = false
        let begun = ContinuousClock.now
        let done: @Sendable () -> Void
    }

    private struct State {
        var waiting: [UInt64: Waiting] = [:]
        var lastTicket: UInt64 = 0
    }

    /// Time for an order to be on its way to the other nodes.
    private static let sentWithin: Duration = .milliseconds(1500)
    /// Time for the other nodes to carry an order out. A node that needs longer is as good as dead.
    private static let orderMax: Duration = .seconds(5)

    private let state = Mutex(State())
    private let ways = Guarded<Ways?>(nil)

    func connect(_ ways: Ways) { self.ways.withLock { $0 = ways } }

    /// Has every living node carry out an order.
    /// - Parameter isAwaited: returns when all have, or after five seconds; else as soon as they will.
    func order(_ order: Order, isAwaited: Bool) async {
        guard let ways = ways.withLock({ $0 }) else { return }
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let nodes = isAwaited ? ways.living() : nil
            let ticket = state.withLock { state in
                state.lastTicket += 1
                state.waiting[state.lastTicket] = Waiting(order: order, nodes: nodes) { done.resume() }
                return state.lastTicket
            }
            ways.send(order, isAwaited ? ticket : nil) { [weak self] in self?.sent(ticket, isOnItsWay: $0) }
        }
    }

    private func sent(_ ticket: UInt64, isOnItsWay: Bool) {
        guard isOnItsWay else { return carryOutAlone([ticket]) }
        let over = state.withLock { state -> Waiting? in
            state.waiting[ticket]?.isSent = true
            return state.waiting[ticket].map { $0.nodes == nil } == true ? state.waiting.removeValue(forKey: ticket) : nil
        }
        over?.done()
    }

    private func carryOutAlone(_ tickets: [UInt64]) {
        let orders = state.withLock { state in tickets.compactMap { state.waiting.removeValue(forKey: $0) } }
        guard let ways = ways.withLock({ $0 }) else { return }
        for waiting in orders { ways.carryOut(waiting.order, waiting.done) }
    }

    /// A node has carried an order out, or is dead.
    /// - Parameter ticket: nil: all of them.
    func done(_ ticket: UInt64?, node: UInt64) {
        let over = state.withLock { state -> [Waiting] in
            (ticket.map { [$0] } ?? Array(state.waiting.keys)).compactMap { ticket in
                state.waiting[ticket]?.nodes?.remove(node)
                return state.waiting[ticket]?.nodes?.isEmpty == true ? state.waiting.removeValue(forKey: ticket) : nil
            }
        }
        for waiting in over { waiting.done() }
    }

    /// Does alone what could not be sent in time, and gives up those who take too long. Call it every 250 ms.
    func tick() {
        let now = ContinuousClock.now
        let (unsent, late) = state.withLock { state in
            let unsent = state.waiting.filter { !$0.value.isSent && now >= $0.value.begun + Self.sentWithin }
            let late = state.waiting.filter { $0.value.isSent && now >= $0.value.begun + Self.orderMax }.keys
            return (unsent.keys.sorted(), late.compactMap { state.waiting.removeValue(forKey: $0) })
        }
        carryOutAlone(unsent)
        for waiting in late { waiting.done() }
    }
}
