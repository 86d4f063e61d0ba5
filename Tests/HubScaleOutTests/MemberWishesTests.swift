import HubCore
import HubScaleOut
import RedisModel
import Testing

/// Wishes about members of several nodes, around a modelled Redis that carries out the scripts that ship.
@Suite("Wishes about members") struct MemberWishesTests {
    /// Nodes at one Redis, on one clock.
    private final class World {
        let redis = RedisModel(process: "1")
        var nodes: [UInt64: MemberWishes] = [:]
        private var greetings: [UInt64: NodeGreeting] = [:]
        private let origin = ContinuousClock.now
        private var words = 0
        var seconds = 0.0

        var now: ContinuousClock.Instant { origin + .seconds(seconds) }
        let place = MemberPlace(app: "1", channel: "presence-a")

        init(nodes count: UInt64) {
            load()
            for node in 1...count {
                nodes[node] = MemberWishes()
                begin(node)
            }
        }

        func greet(_ node: UInt64) { _ = greeting(node) }
        func begin(_ node: UInt64) { nodes[node]?.begin(in: greeting(node).keys.epoch, now: now) }

        private func load() { for script in ScaleOutScripts.all { redis.load(script.body, as: script) } }

        private func perform(_ command: RedisCommand) -> RedisReply {
            redis.now = 1_767_920_400_000 + Int64(seconds * 1000)
            return redis.perform(command)
        }

        private func greeting(_ node: UInt64) -> NodeGreeting {
            if let greeting = greetings[node] { return greeting }
            words += 1
            let call = NodeGreeting.call(
                process: redis.process, candidate: "m\(words)", prefix: "t", database: "", node: node, writes: true)
            guard let greeting = try? NodeGreeting(perform(call), prefix: "t", node: node) else { preconditionFailure("no greeting") }
            greetings[node] = greeting
            return greeting
        }

        func join(_ node: UInt64, _ user: String) { nodes[node]?.join(place, user: user, info: nil, membersMax: 100, ticket: 1) }
        /// The user comes to the nodes, one after the other.
        func come(_ user: String, to nodes: [UInt64]) {
            for node in nodes {
                join(node, user)
                flush(node)
            }
        }

        func leave(_ node: UInt64, _ user: String) { nodes[node]?.leave(place, user: user, lingerMilliseconds: 0, lingersAlways: false) }
        func sendAway(_ node: UInt64, _ user: String) {
            nodes[node]?.leave(place, user: user, lingerMilliseconds: 3000, lingersAlways: true)
            flush(node)
        }

        /// Carries out all wishes that may travel.
        /// - Parameter onTheWay: happens once they have been taken.
        func flush(_ node: UInt64, onTheWay: () -> Void = {}) {
            while var batch = nodes[node]?.take(now: now) {
                onTheWay()
                let commands = nodes[node]?.commands(for: &batch, greeting(node), now: now) ?? []
                _ = nodes[node]?.answered(batch, .success(commands.map { perform($0) }), now: now)
            }
        }

        func areEndsTold(_ node: UInt64) -> Bool { nodes[node]?.areEndsTold(now: now) ?? true }
        func settle(_ node: UInt64) { _ = perform(NodeBeat.settle(greeting(node))) }

        /// The server is another one, without memory, and these nodes have read so.
        func lose(noticedBy readers: [UInt64]) {
            redis.lose(process: redis.process + "1")
            load()
            greetings = [:]
            for node in readers { notice(node) }
        }

        func notice(_ node: UInt64) { nodes[node]?.restart(in: greeting(node).keys.epoch, now: now) }

        /// Announcements of this memory: what, of whom, and how they stand to a lost one.
        var told: [String] {
            guard let keys = greetings.values.first?.keys else { return [] }
            let reply = perform(RedisCommand("XREAD COUNT 1000 STREAMS", texts: [keys.events, "0-0"]))
            return ((try? StreamEntry.read(reply))?.first?.entries ?? []).compactMap(\.announcement).map { announcement in
                let event =
                    switch announcement.event {
                    case .added(let user, _): "+\(user)"
                    case .removed(let user): "-\(user)"
                    default: "\(announcement.event)"
                    }
                return announcement.standing == .change ? event : "\(event) \(announcement.standing)"
            }
        }
    }

    /// World with a user on both nodes, whom the first one has just sent away.
    private var sentAwayFromOne: World {
        let world = World(nodes: 3)
        world.come("ann", to: [1, 2])
        world.sendAway(1, "ann")
        world.seconds = 1
        return world
    }

    @Test("who is sent away by one node, and then leaves another, is told removed when the time to come back is over")
    func lingersLast() {
        let world = sentAwayFromOne
        world.leave(2, "ann")
        world.flush(2)
        world.settle(2)
        #expect(world.told == ["+ann"])
        world.seconds = 3.01
        world.settle(2)
        #expect(world.told == ["+ann", "-ann"])
    }

    @Test("who is back from a node that sent them away leaves at once")
    func isBack() {
        let world = sentAwayFromOne
        world.come("ann", to: [3])
        for node: UInt64 in [2, 3] {
            world.leave(node, "ann")
            world.flush(node)
        }
        #expect(world.told == ["+ann", "-ann"])
    }

    @Test("who leaves after the time to come back is told removed at once")
    func lingersNoMore() {
        let world = sentAwayFromOne
        world.seconds = 3.01
        world.leave(2, "ann")
        world.flush(2)
        #expect(world.told == ["+ann", "-ann"])
    }

    @Test(
        "who came just before the loss is told as somebody who may be new",
        arguments: [(9.0, ["+ann repeated", "+ann confirmed"]), (11.0, ["+ann repeated"])])
    func recent(seconds: Double, told: [String]) {
        let world = World(nodes: 2)
        world.come("ann", to: [1])
        world.seconds = seconds
        world.lose(noticedBy: [1, 2])
        world.flush(1)
        world.seconds += 10
        world.settle(1)
        #expect(world.told == told)
    }

    @Test("who was there on another node before is known, however late they came to this one")
    func hopped() {
        let world = World(nodes: 2)
        world.come("ann", to: [1])
        world.seconds = 30
        world.come("ann", to: [2])
        world.leave(1, "ann")
        world.flush(1)
        // Nothing is as new to the second memory that is lost as to the first one.
        for _ in 1...2 {
            world.seconds += 1
            world.lose(noticedBy: [1, 2])
            world.flush(2)
        }
        world.seconds += 20
        world.settle(2)
        #expect(world.told == ["+ann repeated"])
    }

    @Test("the end of somebody whose node died with the memory is told once, by those who knew them")
    func missed() {
        let world = World(nodes: 3)
        world.join(3, "ann")
        world.come("bob", to: [3])
        world.seconds = 30
        world.lose(noticedBy: [1, 2])
        world.flush(1)
        world.join(2, "bob")
        for user in ["ann", "bob"] { for node: UInt64 in [1, 2] { world.nodes[node]?.missed(world.place, user: user) } }
        world.seconds = 37
        for node: UInt64 in [2, 1] { world.flush(node) }
        #expect(world.told == ["+bob early", "-ann late"])
    }

    @Test("who is back before others say that they were there is no news")
    func known() {
        let world = World(nodes: 3)
        world.come("ann", to: [3])
        world.seconds = 30
        world.lose(noticedBy: [1, 2])
        world.flush(1)
        world.come("ann", to: [2])
        world.nodes[1]?.known(world.place, user: "ann")
        world.flush(1)
        world.seconds = 40
        world.settle(1)
        #expect(world.told == ["+ann early", "+ann repeated"])
    }

    @Test("a node that stops after the loss of a memory waits until the ends are told")
    func stops() {
        let world = World(nodes: 2)
        world.come("ann", to: [1])
        #expect(world.areEndsTold(1))
        world.lose(noticedBy: [1])
        world.leave(1, "ann")
        world.flush(1)
        #expect(!world.areEndsTold(1))
        world.seconds = 6
        world.flush(1)
        #expect(world.told == ["-ann late"] && world.areEndsTold(1))
    }

    @Test("a node that stops waits for the ends no longer than it takes to tell them")
    func stopsWithoutRedis() {
        let world = World(nodes: 2)
        world.come("ann", to: [1])
        world.lose(noticedBy: [1])
        world.leave(1, "ann")
        world.seconds = 6.9
        #expect(!world.areEndsTold(1))
        world.seconds = 7.1
        #expect(world.areEndsTold(1))
    }

    @Test("in a new memory, who leaves one node and is still on another is not told removed")
    func stillThere() {
        let world = World(nodes: 2)
        world.come("ann", to: [1, 2])
        #expect(world.told == ["+ann"])
        world.seconds = 20
        world.lose(noticedBy: [1])
        world.flush(1)
        world.leave(1, "ann")
        world.flush(1)
        #expect(world.told == ["+ann repeated"])
        world.seconds = 22
        world.settle(1)
        world.notice(2)
        world.flush(2)
        world.seconds = 30
        world.settle(1)
        #expect(world.told == ["+ann repeated"])
        world.leave(2, "ann")
        world.flush(2)
        #expect(world.told == ["+ann repeated", "-ann"])
    }

    @Test("who leaves before the node has written into a new memory is told removed once all nodes have")
    func leavesBetween() {
        let world = World(nodes: 2)
        for node: UInt64 in [1, 2] {
            world.join(node, "ann")
            world.join(node, "bob")
            world.flush(node)
        }
        world.lose(noticedBy: [1, 2])
        world.leave(1, "ann")
        world.leave(1, "bob")
        world.leave(2, "bob")
        world.flush(1)
        world.flush(2)
        #expect(world.told == ["+ann repeated"])
        world.seconds = 6
        world.flush(1)
        world.flush(2)
        #expect(world.told == ["+ann repeated", "-bob late"])
    }

    @Test("an end that meets a new memory on its way is not told there of who comes back and is on another node, too")
    func leavesOnTheWay() {
        let world = World(nodes: 2)
        world.come("ann", to: [1, 2])
        world.seconds = 20
        world.leave(1, "ann")
        var isFirst = true
        world.flush(1) {
            if isFirst {
                world.lose(noticedBy: [])
                world.join(1, "ann")
            }
            isFirst = false
        }
        world.notice(1)
        world.flush(1)
        #expect(world.told == ["+ann repeated"])
    }

    @Test("a leaver is remembered for a minute, whenever they left before")
    func leavesTwice() {
        let world = World(nodes: 1)
        world.come("ann", to: [1])
        world.leave(1, "ann")
        world.flush(1)
        world.seconds = 30
        world.come("ann", to: [1])
        world.leave(1, "ann")
        world.flush(1)
        // A minute after the first time.
        world.seconds = 61
        world.flush(1)
        world.lose(noticedBy: [1])
        world.seconds = 68
        world.flush(1)
        #expect(world.told == ["-ann late"])
    }

    @Test("a leaver is remembered for five seconds after the node has heard of the end", arguments: [(4.0, ["-ann late"]), (6.0, [])])
    func heard(seconds: Double, told: [String]) {
        let world = World(nodes: 1)
        world.come("ann", to: [1])
        world.leave(1, "ann")
        world.flush(1)
        world.nodes[1]?.removed("ann", from: world.place, now: world.now)
        world.seconds = seconds
        world.flush(1)
        world.lose(noticedBy: [1])
        world.seconds += 7
        world.flush(1)
        #expect(world.told == told)
    }

    @Test(
        "a node that joins anew in a new memory lets others say that a coming is no news, and long after the loss it does not",
        arguments: [(0.0, ["+ann early"]), (11.0, ["+ann"])])
    func joinsAnew(seconds: Double, told: [String]) {
        let world = World(nodes: 2)
        world.come("ann", to: [2])
        world.nodes[1] = world.nodes[1]?.inherited
        world.lose(noticedBy: [])
        world.greet(2)
        world.seconds = seconds
        world.begin(1)
        world.come("ann", to: [1])
        #expect(world.told == told)
    }

    @Test(
        "who comes in the first seconds of a new memory, and is gone again, is told as both to webhooks, if nobody knew them",
        arguments: [(false, ["+ann early", "+ann confirmed", "-ann"]), (true, ["+ann early", "-ann"])])
    func comesAndGoes(isKnown: Bool, told: [String]) {
        let world = World(nodes: 2)
        world.lose(noticedBy: [1, 2])
        world.come("ann", to: [1])
        if isKnown { world.nodes[2]?.known(world.place, user: "ann") }
        world.flush(2)
        world.leave(1, "ann")
        world.flush(1)
        world.seconds = 6.1
        world.settle(1)
        #expect(world.told == told)
        world.seconds = 9.1
        world.settle(1)
        #expect(world.told == told)
    }

    @Test(
        "a channel that is occupied in the first seconds of a new memory is told to webhooks, also if it is vacated before they end",
        arguments: [
            (false, ["occupied repeated", "occupied confirmed", "vacated"]), (true, ["occupied repeated", "occupied confirmed"]),
        ])
    func occupiedEarly(isBack: Bool, told: [String]) {
        let world = World(nodes: 2)
        world.lose(noticedBy: [1, 2])
        for count in isBack ? [1, 0, 1] : [1, 0] {
            world.nodes[1]?.setSubscribers(world.place, count, tells: .occupancy)
            world.flush(1)
        }
        for seconds in [6.1, 9.1] {
            world.seconds = seconds
            world.settle(1)
        }
        #expect(world.told == told)
    }
}
