import HubChannels
import HubCore
import HubDelivery
import HubTesting
import Logging
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

    @Test("nodes that have not come to a new memory are given up, and count until they are declared dead")
    func remained() async throws {
        let stage = try NodeStage()
        let task = DeliveryTask(stage.stage.delivery)
        for node: UInt64 in [8, 9] {
            await task.turn([.node(.joined(node: node, .init(tag: node, moreTag: 0, loopCount: 1, isQuestion: false)))])
        }
        await task.turn([.node(.remained([8]))])
        #expect(stage.way.givenUp == [9] && task.table.contains(9))
        await task.turn([.node(.left(node: 9))])
        #expect(!task.table.contains(9) && task.table.contains(8))
    }
}

/// Delivery of one node beside a way that is interrupted.
private struct NodeStage {
    /// Keeps what waits, and fails everything else.
    final class Way: HomesBackplane {
        private let sent = Mutex<[[UInt8]]>([])
        private let absent = Mutex<Set<UInt64>>([])
        let node: UInt64 = 4
        var givenUp: Set<UInt64> { absent.withLock { $0 } }
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

        func giveUp(_ nodes: Set<UInt64>) { absent.withLock { $0.formUnion(nodes) } }

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
        let app = App(index: 0, id: "1", secrets: ["k": "s"])
        let apps = AppDirectory([app])
        let (ports, nodes) = (EnginePorts([loop]), Guarded<NodeDelivery?>(nil))
        stage = try DeliveryStage { test, outbox in
            let several = NodeDelivery(tag: (7, 0), ports: ports, apps: apps, store: test.store, time: test.clock) { PartitionSet() }
            nodes.withLock { $0 = several }
            let pushes = NodePushQueue(outbox: outbox, store: test.store, nodes: nil, logger: Logger(label: "test"))
            return DeliveryService.Several(nodes: several, pushes: pushes, firstNumber: 0) { _ in [] }
        }
        self.nodes = try #require(nodes.withLock { $0 })
        exchange = NodeExchange(
            directory: apps, process: ProcessTag(random: 7), loopCount: 1, delivery: self.nodes, post: { _, _ in }, report: { _ in })
        exchange.connect(way)
        self.nodes.connect(exchange, stage.delivery)
    }

    /// How often the loop was asked since the last call who is present.
    func questions() -> Int {
        var messages: [LoopMessage] = []
        loop.drain(into: &messages)
        return messages.count { if case .engine(.reportPresent) = $0 { true } else { false } }
    }
}
