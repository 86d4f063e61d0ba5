import HubStorage
import HubTesting
import Testing

@testable import DeliverySimulation
@testable import HubDelivery

/// The judge of several simulated nodes.
@Suite("Several simulated nodes") struct NodeSimulationTests {
    /// A world with a stored event, whose channel the first node owns.
    private func world() -> (NodeSimulation, owner: SimNode, event: NodeEvent) {
        let world = NodeSimulation(NodeSettings(seed: 1, pairs: 0))
        let (node, channel) = (world.nodes[0], world.channels[0])
        world.publishes.append(
            NodePublish(index: 0, channel: 0, lifetime: 90_000, id: PublishID(text: "p", time: ManualClock.start), asker: 0))
        let event = NodeEvent(
            publish: 0,
            record: EventRecord(
                id: "e", app: "1", channel: channel.name, name: "n", data: "", policy: .notify, committedAt: ManualClock.start,
                expiresAt: ManualClock.start + 90_000), at: 0, lifetime: 90_000, users: [], notes: [])
        world.events.append(event)
        world.eventIndex["e"] = 0
        own(channel.partition, node, at: 0)
        return (world, node, event)
    }

    private func own(_ partition: Int32, _ node: SimNode, at: Int64) {
        let process = node.owning.process
        let look = LeaseBook.Look(
            nodes: [process: 1], leases: [partition: .init(owner: process, epoch: 1)], serverStart: "a", serverUp: 0, sentAt: at,
            answeredAt: at)
        _ = node.owning.book.take(look)
    }

    @Test("a node that hands on what it reads after it was declared dead is found out")
    func readsOn() {
        let (world, node, _) = world()
        let release = NodeRelease(event: 0, owner: 99, attendedUpTo: nil, receipt: nil, isAgain: false, serial: 1)
        world.take(.event(release), of: 99, node)
        #expect(world.report.violationCount == 0)
        world.memories[0].dead.insert(node.run)
        world.take(.event(release), of: 99, node)
        #expect(world.report.violationCount == 1)
    }

    @Test("an owner that Redis does not hear lets its own events out past it, also when the others have declared it dead")
    func alone() {
        let (world, node, event) = world()
        /// Until a message fails that is not appended.
        func wait() {
            world.now += 1500
            world.work(.tick, node)
        }
        let release = DeliveryBook.Release(publish: 1, request: 0, channel: 0, eventID: event.record.id)
        node.isUnheard = true
        world.memories[0].dead.insert(node.run)
        world.letOut(release, isAgain: false, node)
        #expect(node.alone.isEmpty)
        wait()
        #expect(world.report.violationCount == 0 && node.alone.count == 1 && node.letOut[event.record.id] != nil)
        // It has given its partition back, or PostgreSQL does not confirm its leases any more.
        let partition = world.channels[0].partition
        for change in [{ node.owning.book.gives([partition]) }, { world.now += 3000 }] {
            own(partition, node, at: world.now)
            change()
            world.letOut(release, isAgain: false, node)
            wait()
            #expect(node.alone.count == 1)
        }
    }
}
