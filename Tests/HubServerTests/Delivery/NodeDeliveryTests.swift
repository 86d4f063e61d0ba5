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

    @Test("a removal without the way is carried out alone, and waits for the others; where an app was says nothing later")
    func orders() async throws {
        let stage = try NodeStage()
        stage.stage.start()
        let running = Task { [nodes = stage.nodes] in await nodes.run() }
        await stage.nodes.orders.order(
            .removed(app: "1", session: "7", definition: "game", users: ["u"], isOver: false), isAwaited: true)
        #expect(stage.expulsions() == 1)
        await stage.nodes.orders.order(
            .deviceState(app: "1", user: "u", device: "d", .background, keepsWorking: false), isAwaited: false)
        let kept = stage.way.kept.compactMap { if case .order(let order, _) = $0 { order } else { nil } }
        guard kept.count == 1, case .removed("1", "7", "game", ["u"], false) = kept[0] else {
            Issue.record("\(kept)")
            return
        }
        running.cancel()
        await running.value
        await stage.stage.stop()
    }

    @Test("an order that comes while the hub stops ends", .timeLimit(.minutes(1)))
    func stopping() async throws {
        let stage = try NodeStage()
        stage.stage.start()
        await stage.stage.stop()
        await stage.nodes.orders.order(
            .deviceState(app: "1", user: "u", device: "d", .background, keepsWorking: false), isAwaited: false)
        #expect(stage.expulsions() == 0)
    }

    @Test("a removal that comes late leaves somebody who has joined again")
    func lateRemoval() async throws {
        let stage = try NodeStage()
        try await stage.stage.session()
        let task = DeliveryTask(stage.stage.delivery)
        for (user, expelled) in [("u", 0), ("v", 1)] {
            await task.turn([
                .node(.order(.removed(app: "1", session: "7", definition: "game", users: [user], isOver: false), done: {}))
            ])
            #expect(stage.expulsions() == expelled, "\(user)")
        }
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
        stage = try DeliveryStage(loops: 1) { test, outbox in
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
    func questions() -> Int { taken(loop) { if case .reportPresent = $0 { true } else { false } } }

    /// How often the loop was told since the last call whose subscriptions end.
    func expulsions() -> Int { taken(stage.loop) { if case .expel = $0 { true } else { false } } }

    private func taken(_ loop: Mailbox<LoopMessage>, _ isMeant: (EngineMessage) -> Bool) -> Int {
        var messages: [LoopMessage] = []
        loop.drain(into: &messages)
        return messages.count { if case .engine(let message) = $0 { isMeant(message) } else { false } }
    }
}
