import Testing

@testable import HubStorage

/// The owners of partitions, as nodes come, stand still and go.
@Suite struct LeaseBookTests {
    /// Nodes over one clock and one table of leases, each with its book.
    private struct World {
        var now: Int64 = 0
        var beats: [Int64: Int64] = [:]
        var leases = Dictionary(
            uniqueKeysWithValues: (0..<LeaseBook.partitionCount).map { ($0, LeaseBook.Look.Lease(owner: 0, epoch: 0)) })
        var books: [Int64: LeaseBook] = [:]
        var stopped: Set<Int64> = []
        var serverStart = "a"
        var isDirect = true
        /// Nodes that do not hear themselves through the backplane.
        var deaf: Set<Int64> = []
        private var saidDeaf: Set<Int64> = []
        private var saidCutOff: Set<Int64> = []
        var actions: [LeaseBook.Action] = []

        mutating func start(_ node: Int64) {
            books[node] = LeaseBook(me: node)
            beats[node] = 0
        }

        /// Every node that runs looks once, in order, and carries out what its book says.
        mutating func turn(after: Int64 = LeaseBook.lookEvery, lookTakes: Int64 = 5) {
            now += after
            for node in books.keys.sorted() where !stopped.contains(node) {
                beats[node, default: 0] += 1
                books[node]?.note(hears: !deaf.contains(node))
                if books[node]?.isDeaf == true { saidDeaf.insert(node) } else { saidDeaf.remove(node) }
                if books[node]?.isCutOff == true { saidCutOff.insert(node) } else { saidCutOff.remove(node) }
                let look = LeaseBook.Look(
                    nodes: beats, deaf: saidDeaf, cutOff: saidCutOff, leases: leases, unconnected: isDirect ? stopped : nil,
                    serverStart: serverStart, serverUp: now, sentAt: now, answeredAt: now + lookTakes)
                actions = books[node]?.take(look) ?? []
                for action in actions {
                    switch action {
                    case .take(let partition, let owner):
                        if leases[partition]?.owner == owner {
                            leases[partition] = .init(owner: node, epoch: (leases[partition]?.epoch ?? 0) + 1)
                        }
                    case .giveBack(let partitions): for partition in partitions { leases[partition]?.owner = 0 }
                    case .forget(let other): beats[other] = nil
                    }
                }
            }
        }

        func count(_ node: Int64) -> Int { leases.values.count { $0.owner == node } }
    }

    @Test("the first node takes everything, the second half, a third its part")
    func shares() {
        var world = World()
        world.start(1)
        for _ in 0..<2 { world.turn() }
        #expect(world.count(1) == 64 && world.books[1]?.owned.count == 64)
        world.start(2)
        for _ in 0..<4 { world.turn() }
        #expect(world.count(1) == 32 && world.count(2) == 32)
        world.start(3)
        // Five seconds.
        for _ in 0..<10 { world.turn() }
        #expect([1, 2, 3].map { world.count($0) }.sorted() == [21, 21, 22])
    }

    @Test("a killed node is succeeded within two seconds, behind PgBouncer within five, and its epochs rise", arguments: [true, false])
    func killed(isDirect: Bool) {
        var world = World()
        world.isDirect = isDirect
        for node: Int64 in [1, 2] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        let epochs = world.leases.filter { $0.value.owner == 1 }
        #expect(epochs.count == 32)
        world.stopped = [1]
        var turns = 0
        while world.count(2) < 64, turns < 20 {
            world.turn()
            turns += 1
        }
        #expect(Int64(turns) * LeaseBook.lookEvery <= (isDirect ? 2_000 : 5_000), "\(turns) turns")
        #expect(epochs.allSatisfy { (world.leases[$0.key]?.epoch ?? 0) > $0.value.epoch })
        world.turn()
        #expect(world.beats[1] == nil, "the row of the dead node is gone")
    }

    @Test("a look before its time takes what is free, and lets nobody look dead")
    func earlyLooks() {
        var world = World()
        for node: Int64 in [1, 2, 3] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        world.isDirect = false
        world.stopped = [1]
        // The third hands everything over.
        world.stopped.insert(3)
        world.beats[3] = nil
        for partition in world.leases.keys where world.leases[partition]?.owner == 3 { world.leases[partition]?.owner = 0 }
        for _ in 0..<(2 * LeaseBook.stillMax) { world.turn(after: 20) }
        #expect(world.count(2) == 32 && world.count(1) + world.count(0) == 32)
        for _ in 0...LeaseBook.stillMax { world.turn() }
        #expect(world.count(2) == 64)
    }

    @Test("a server that starts again makes nobody dead")
    func restartedServer() {
        var world = World()
        for node: Int64 in [1, 2] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        world.stopped = [1]
        for _ in 0..<(LeaseBook.stillMaxUnconnected - 1) { world.turn() }
        world.serverStart = "b"
        world.isDirect = false
        for _ in 0..<(LeaseBook.stillMax - 1) { world.turn() }
        #expect(world.count(1) == 32, "looks before the restart do not count")
        for _ in 0..<3 { world.turn() }
        #expect(world.count(2) == 64)
    }

    @Test("slow and failed looks say nothing about others, and end what the node may do")
    func slowLooks() {
        var world = World()
        for node: Int64 in [1, 2] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        let last = world.now
        #expect(world.books[2]?.mayAct(at: last + LeaseBook.actsFor - 1) == true)
        world.stopped = [1]
        for _ in 0..<20 { world.turn(lookTakes: LeaseBook.lookMax + 1) }
        #expect(world.count(1) == 32 && world.books[2]?.mayAct(at: world.now) == false)
    }

    @Test("a node that alone hears nothing gives everything back, and gets its share once it hears")
    func cutOff() {
        var world = World()
        for node: Int64 in [1, 2, 3] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        world.deaf = [1]
        for _ in 0..<(LeaseBook.deafMax - 1) { world.turn() }
        #expect(world.count(1) > 0 && world.books[1]?.isCutOff == false, "nodes hear a restarted Redis one after the other")
        for _ in 0..<3 { world.turn() }
        #expect(world.books[1]?.isCutOff == true)
        #expect([1, 2, 3].map { world.count($0) } == [0, 32, 32])
        world.deaf = []
        for _ in 0..<6 { world.turn() }
        #expect([1, 2, 3].map { world.count($0) }.sorted() == [21, 21, 22] && world.books[1]?.isCutOff == false)
    }

    @Test("where nobody hears, partitions stay, also those of a node that was cut off before the others")
    func nobodyHears() {
        var world = World()
        for node: Int64 in [1, 2] { world.start(node) }
        for _ in 0..<12 { world.turn() }
        world.deaf = [1, 2]
        for _ in 0..<20 { world.turn() }
        #expect([1, 2].map { world.count($0) } == [32, 32])
        world.deaf = [1]
        for _ in 0..<(LeaseBook.deafMax + 3) { world.turn() }
        #expect([1, 2].map { world.count($0) } == [0, 64])
        world.deaf = [1, 2]
        for _ in 0..<8 { world.turn() }
        #expect([1, 2].map { world.count($0) } == [32, 32], "a node that is alone with its deafness takes part again")
    }

    @Test("what a stopped node may still do ends before a successor begins")
    func deadline() {
        let successionMin = Int64(LeaseBook.stillMax) * LeaseBook.countEvery
        #expect(LeaseBook.actsFor < successionMin)
    }

    @Test("looks of common ticks count although some begin sooner, and looks between them do not")
    func sooner() {
        var world = World()
        world.isDirect = false
        for node: Int64 in 1...2 { world.start(node) }
        for _ in 0..<12 { world.turn() }
        world.stopped = [1]
        let every = LeaseBook.countEvery
        for _ in 1..<LeaseBook.stillMax { for after in [every / 2, every - every / 2] { world.turn(after: after) } }
        #expect(world.count(2) == 32)
        world.turn(after: every)
        #expect(world.count(2) == 64)
    }

    @Test("a node sees another whose beat moves, and not one that stands still")
    func another() {
        var world = World()
        world.start(1)
        for _ in 0..<3 { world.turn() }
        world.start(2)
        world.turn()
        world.turn()
        #expect(world.books[2]?.seesAnother == true)
        world.stopped = [1]
        world.turn()
        #expect(world.books[2]?.seesAnother == false)
    }
}
