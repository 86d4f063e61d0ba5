import HubCore
import Testing

@testable import HubChannels

/// Counters of the engines, for metrics.
@Suite("Counters")
struct CounterTests {
    @Test("subscriptions, channels and deliveries are those of all loops together, and a publish counts where it came in")
    func sums() {
        let hub = TestHub(loops: 2)
        let clients = (0..<4).map { hub.open($0 % 2) }
        for client in clients { hub.subscribe(client, "a") }
        hub.subscribe(clients[0], "b")
        hub.subscribe(clients[0], "a")
        hub.settle()
        func sum(_ number: (EngineCounters) -> Int) -> Int { hub.engines.reduce(0) { $0 + number($1.figures) } }
        #expect(sum(\.counters.subscriptions) == 5 && sum(\.channels) == 2)
        for number in 0..<3 { hub.publish("e\(number)", on: ["a", "b", "empty"]) }
        hub.publish("less", on: ["a"], excluded: clients[1])
        hub.settle()
        #expect(sum { Int($0.counters.published) } == 4)
        #expect(sum { Int($0.counters.deliveries) } == 3 * 5 + 3)
        hub.close(clients[0])
        hub.settle()
        #expect(sum(\.counters.subscriptions) == 3 && sum(\.channels) == 1)
    }

    @Test("of the frames of one batch those behind the first are counted as joined, for each subscriber")
    func joined() {
        let hub = TestHub()
        let clients = (0..<3).map { _ in hub.open() }
        for client in clients { hub.subscribe(client, "a") }
        hub.engines[0].flush()
        for number in 0..<4 { hub.publish("e\(number)", on: ["a"]) }
        hub.publish("less", on: ["a"], excluded: clients[1])
        hub.publish("last", on: ["a"])
        hub.engines[0].flush()
        // Six frames for two of them in one write, and five for the third.
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [2, 1])
        #expect(hub.engines[0].figures.joinedFrames == 2 * 5 + 4)
        hub.publish("alone", on: ["a"])
        hub.engines[0].flush()
        #expect(hub.engines[0].figures.joinedFrames == 2 * 5 + 4)
    }

    @Test("a publication is measured from its arrival to the end of the write, once on each loop that has subscribers")
    func latency() {
        let hub = TestHub(loops: 3)
        for loop in 0..<2 { hub.subscribe(hub.open(loop), "a") }
        hub.settle()
        let start = hub.clock.monotonicNanoseconds
        for way in Publication.Way.allCases {
            hub.publish("e", on: ["a", "b"], arrivedAt: start, way: way)
        }
        hub.publish("unmeasured", on: ["a"])
        hub.settle()
        for engine in hub.engines {
            #expect(engine.figures.latencies.allSatisfy { $0.count == 0 }, "nothing is measured before it is written")
        }
        for _ in 0..<2 { for engine in hub.engines { engine.written(at: start + 2_000_000) } }
        for engine in hub.engines[..<2] {
            #expect(engine.figures.latencies.map(\.count) == [1, 1, 1])
            #expect(engine.figures.latencies.map(\.sum) == [2_000_000, 2_000_000, 2_000_000])
        }
        #expect(hub.engines[2].figures.latencies.map(\.count) == [0, 0, 0])
    }

    @Test("what the hub closes is counted by its code")
    func closes() {
        let hub = TestHub()
        _ = hub.open(key: "nobody's")
        _ = hub.open(version: "3")
        _ = hub.open(version: "3")
        #expect(hub.engines[0].figures.counters.closes == [4001: 1, 4007: 2])
    }
}
