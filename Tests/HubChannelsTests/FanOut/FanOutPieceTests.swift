import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("FanOut in pieces")
struct FanOutPieceTests {
    /// A channel with so many subscribers, in the order of their slots.
    private func hub(_ count: Int, writesPerPieceMax: Int = 10) -> (TestHub, [TestClient]) {
        let hub = TestHub(writesPerPieceMax: writesPerPieceMax)
        let clients = (0..<count).map { _ in hub.open() }
        for client in clients { hub.subscribe(client, "a") }
        hub.sinks[0].forgetDeliveries()
        return (hub, clients)
    }

    private func got(_ clients: [TestClient]) -> [[String]] { clients.map { $0.published(on: "a") } }

    @Test("a turn with many to write to goes out in pieces, once to everybody")
    func pieces() {
        let (hub, clients) = hub(35)
        hub.publish("e1", on: ["a"])
        hub.publish("e2", on: ["a"])
        var isDone: [Bool] = []
        for _ in 0..<4 {
            hub.engines[0].flush()
            isDone.append(!hub.engines[0].isGoingOut)
        }
        #expect(isDone == [false, false, false, true] && hub.engines[0].hasMoreToWrite)
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [10, 10, 10, 5] && hub.sinks[0].deliveries.allSatisfy { $0.frames == 2 })
        #expect(got(clients) == [[String]](repeating: ["e1", "e2"], count: 35))
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.count == 4 && !hub.engines[0].hasMoreToWrite && hub.violations.isEmpty)
        #expect(hub.engines[0].figures.joinedFrames == 35, "a frame for each that had a write of its own anyway")
    }

    @Test("a piece that is just enough is the last", arguments: [1, 9, 10])
    func just(count: Int) {
        let (hub, clients) = hub(count)
        hub.publish("e", on: ["a"])
        hub.engines[0].flush()
        #expect(!hub.engines[0].hasMoreToWrite && got(clients) == [[String]](repeating: ["e"], count: count))
    }

    @Test("a turn with few connections to write to does not wait for further publications")
    func sharing() {
        let (hub, clients) = hub(FanOut.writesWorthSharingMin, writesPerPieceMax: 5)
        for client in clients { hub.subscribe(client, "b") }
        hub.subscribe(clients[0], "c")
        hub.settle()
        #expect(!hub.engines[0].hasFewWrites, "nothing waits")
        hub.publish("e", on: ["c"])
        #expect(hub.engines[0].hasFewWrites, "one connection waits")
        hub.publish("e", on: ["a"])
        #expect(!hub.engines[0].hasFewWrites)
        hub.engines[0].flush()
        #expect(hub.engines[0].isGoingOut && !hub.engines[0].hasFewWrites, "some have nothing yet")
        hub.settle()
        #expect(!hub.engines[0].hasFewWrites, "everything is written")
        hub.unsubscribe(clients[7], "b")
        hub.publish("e", on: ["b"])
        #expect(hub.engines[0].hasFewWrites, "all but one wait")
        hub.publish("e", on: ["c"])
        #expect(!hub.engines[0].hasFewWrites)
    }

    @Test("what is published meanwhile goes out behind it, joined")
    func meanwhile() {
        let (hub, clients) = hub(25)
        hub.publish("e1", on: ["a"])
        hub.engines[0].flush()
        hub.publish("e2", on: ["a"])
        hub.engines[0].flush()
        hub.publish("e3", on: ["a", "b"])
        #expect(got(clients).map(\.count) == [Int](repeating: 1, count: 20) + [Int](repeating: 0, count: 5))
        hub.settle()
        #expect(got(clients) == [[String]](repeating: ["e1", "e2", "e3"], count: 25))
        #expect(hub.sinks[0].deliveries.map(\.frames) == [1, 1, 1, 2, 2, 2] && hub.violations.isEmpty)
    }

    @Test("who leaves meanwhile gets what was published before, and who comes does not", arguments: [3, 17])
    func membership(leaving: Int) {
        for closes in [false, true] {
            let (hub, clients) = hub(20)
            hub.publish("e1", on: ["a"])
            hub.engines[0].flush()
            if closes { hub.close(clients[leaving]) } else { hub.unsubscribe(clients[leaving], "a") }
            // Also one that has the slot of somebody who is gone.
            let newcomer = hub.open()
            hub.publish("e2", on: ["a"])
            hub.engines[0].flush()
            hub.subscribe(newcomer, "a")
            hub.settle()
            hub.publish("e3", on: ["a"])
            hub.settle()
            #expect(clients[leaving].published(on: "a") == ["e1"] && newcomer.published(on: "a") == ["e3"])
            var others = clients
            others.remove(at: leaving)
            #expect(got(others) == [[String]](repeating: ["e1", "e2", "e3"], count: 19))
            #expect(hub.violations.isEmpty)
        }
    }

    @Test("subscribing elsewhere does not hurry it")
    func elsewhere() {
        let (hub, clients) = hub(20)
        hub.publish("e", on: ["a"])
        hub.engines[0].flush()
        let newcomer = hub.open()
        hub.subscribe(newcomer, "b")
        hub.close(newcomer)
        #expect(hub.engines[0].hasMoreToWrite && got(clients).filter { !$0.isEmpty }.count == 10)
    }

    @Test("what comes together meanwhile is announced as soon as the last piece is written")
    func announcements() {
        let (hub, _) = hub(20)
        let member = hub.open()
        hub.publish("e", on: ["a"])
        hub.engines[0].flush()
        hub.subscribe(member, "presence-b", user: "1")
        var flushes = 0
        while hub.engines[0].hasMoreToWrite, flushes < 10 {
            hub.engines[0].flush()
            flushes += 1
        }
        #expect(member.acknowledgements("presence-b") == 1 && flushes == 2)
    }

    @Test("an event for some roles, or one that nothing may overtake, has the rest written first")
    func roles() {
        let (hub, clients) = hub(20)
        hub.publish("e", on: ["a"])
        hub.engines[0].flush()
        hub.publish("secret", on: ["a"], audience: .unmatched)
        #expect(!hub.engines[0].hasMoreToWrite && got(clients) == [[String]](repeating: ["e", "secret"], count: 20))
    }

    @Test("how long a publication takes is told when its last piece is written, and not that of the ones behind it")
    func latency() {
        let (hub, _) = hub(15)
        func count() -> UInt64 { hub.engines[0].figures.latencies.reduce(0) { $0 + $1.count } }
        hub.publish("e1", on: ["a"], arrivedAt: 1)
        hub.engines[0].flush()
        hub.engines[0].written(at: 2)
        hub.publish("e2", on: ["a"], arrivedAt: 3)
        #expect(count() == 0)
        hub.engines[0].flush()
        hub.engines[0].written(at: 4)
        #expect(count() == 1 && hub.engines[0].hasMoreToWrite)
        hub.settle()
        hub.engines[0].written(at: 5)
        #expect(count() == 2)
    }

    @Test("random pieces: everybody gets what was published while it was in, once and in order", arguments: 1...40)
    func random(seed: UInt64) {
        var random = SeededRandom(state: seed)
        let hub = TestHub(writesPerPieceMax: 1 + random.below(7))
        var clients = (0..<15).map { _ in hub.open() }
        let names = (0..<4).map { "room-\($0)" }
        var subscribed = [Set<String>](repeating: [], count: clients.count)
        var expected = [[String]](repeating: [], count: clients.count)
        func check(_ index: Int) {
            let got = clients[index].frames.compactMap { frame -> String? in
                guard let event = frame["event"]?.stringValue, !event.hasPrefix("pusher") else { return nil }
                return "\(event)@\(frame["channel"]?.stringValue ?? "")"
            }
            #expect(got == expected[index], "client \(index) of seed \(seed)")
        }
        for number in 0..<400 {
            let index = random.below(clients.count)
            let name = names[random.below(names.count)]
            switch random.below(16) {
            case 0, 1: if subscribed[index].insert(name).inserted { hub.subscribe(clients[index], name) }
            case 2: if subscribed[index].remove(name) != nil { hub.unsubscribe(clients[index], name) }
            case 3 where number % 5 == 0:
                hub.close(clients[index])
                check(index)
                (clients[index], subscribed[index], expected[index]) = (hub.open(), [], [])
            case 4...9: hub.engines[0].flush()
            default:
                let excluded = random.below(3) == 0 ? random.below(clients.count) : -1
                let channels =
                    random.below(4) == 0 ? [name, names[0], names[3]].reduce(into: []) { if !$0.contains($1) { $0.append($1) } } : [name]
                hub.publish("e\(number)", on: channels, excluded: excluded < 0 ? nil : clients[excluded])
                for channel in channels {
                    for client in clients.indices where client != excluded && subscribed[client].contains(channel) {
                        expected[client].append("e\(number)@\(channel)")
                    }
                }
            }
        }
        hub.settle()
        for index in clients.indices { check(index) }
        #expect(hub.violations.isEmpty, "\(hub.violations.prefix(3))")
    }
}
