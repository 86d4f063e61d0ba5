import HubChannels
import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

@Suite("What a node tells the others of delivery, and what it does alone")
struct NodeDeliveryTests {
    @Test("a question who is present waits for the way, and this node answers it at once, and once")
    func attend() throws {
        let stage = try NodeStage()
        let partitions = PartitionSet([1, 2])
        stage.nodes.attend(7, partitions)
        guard case .attend(7, partitions)? = stage.way.kept.first else {
            Issue.record("the question is given up where the way is interrupted: \(stage.way.kept)")
            return
        }
        #expect(stage.questions() == 1)

        #expect(stage.nodes.take(DeliveryMessage.attend(round: 7, partitions: partitions).bytes[...], of: stage.way.node))
        #expect(stage.questions() == 0, "the node answers its own question twice")
        #expect(stage.nodes.take(DeliveryMessage.attend(round: 7, partitions: partitions).bytes[...], of: 9))
        #expect(stage.questions() == 1, "the node does not answer another one's question")
    }
}

/// Delivery of one node beside a way that is interrupted.
private struct NodeStage {
    /// Keeps what waits, and fails everything else.
    final class Way: HomesBackplane {
        private let sent = Mutex<[[UInt8]]>([])
        let node: UInt64 = 4
        /// Messages that go out as soon as they can.
        var kept: [DeliveryMessage] {
            sent.withLock { $0 }.compactMap { bytes in
                guard case .delivery(let words)? = NodeMessage(bytes, .known) else { return nil }
                return DeliveryMessage(words)
            }
        }

        func send(_ message: [UInt8], app: String, isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void) {
            if isKept { sent.withLock { $0.append(message) } } else { done(false) }
        }

        func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {}
        func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {}
        func missed(_ place: MemberPlace, user: String) {}
        func known(_ place: MemberPlace, user: String) {}
        func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {}
        func list(_ place: MemberPlace, ticket: UInt64) {}
        func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {}
        func flush() {}
    }

    let way = Way()
    let stage: DeliveryStage
    let nodes: NodeDelivery
    private let loop = Mailbox<LoopMessage> {}
    private let exchange: NodeExchange

    init() throws {
        stage = try DeliveryStage()
        let apps = AppDirectory([stage.app])
        let ports = EnginePorts([loop])
        nodes = NodeDelivery(tag: (7, 0), ports: ports, apps: apps, store: stage.test.store, time: stage.test.clock) { PartitionSet() }
        exchange = NodeExchange(
            directory: apps, process: ProcessTag(random: 7), loopCount: 1, delivery: nodes, post: { _, _ in }, report: { _ in })
        exchange.connect(way)
        nodes.connect(exchange, stage.delivery)
    }

    /// How often the loop was asked since the last call who is present.
    func questions() -> Int {
        var messages: [LoopMessage] = []
        loop.drain(into: &messages)
        return messages.count { if case .engine(.reportPresent) = $0 { true } else { false } }
    }
}
