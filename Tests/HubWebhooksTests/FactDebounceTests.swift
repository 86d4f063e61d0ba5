import HubTesting
import HubWebhooks
import PusherProtocol
import Testing

/// A debounce under a clock that the test moves: what comes out, with the millisecond at which it did.
private final class Stage {
    var debounce = FactDebounce()
    var now: UInt64 = 0
    var told: [(Int, ChannelFact.Event)] = []

    init(heldMax: Int = WebhookLimits.heldMax) { debounce = FactDebounce(heldMax: heldMax) }

    func at(_ milliseconds: Int, _ channel: String, _ event: ChannelFact.Event, app: Int = 0) throws {
        pass(until: milliseconds)
        if let fact = debounce.take(try .fact(channel, event, app: app), now: now) { told.append((milliseconds, fact.event)) }
    }

    func pass(until milliseconds: Int) {
        let end = UInt64(milliseconds) * millisecondNanoseconds
        while let due = debounce.nextDue, due <= end { settle(due) }
        settle(end)
    }

    private func settle(_ time: UInt64) {
        now = time
        told += debounce.settle(now: now).map { (Int(now / millisecondNanoseconds), $0.event) }
    }

    var events: [ChannelFact.Event] { told.map(\.1) }
    var times: [Int] { told.map(\.0) }
}

@Suite("FactDebounce")
struct FactDebounceTests {
    @Test("C27: a reload within three seconds tells neither the removal nor the addition")
    func reload() throws {
        let stage = Stage()
        try stage.at(0, "presence-a", .occupied)
        try stage.at(0, "presence-a", .memberAdded(user: "ada"))
        try stage.at(1000, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(1000, "presence-a", .vacated)
        try stage.at(3999, "presence-a", .occupied)
        try stage.at(3999, "presence-a", .memberAdded(user: "ada"))
        stage.pass(until: 20_000)
        #expect(stage.events == [.occupied, .memberAdded(user: "ada")])
        #expect(stage.debounce.nextDue == nil)
    }

    @Test("who is back after three seconds has left and come")
    func late() throws {
        let stage = Stage()
        try stage.at(0, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(0, "presence-a", .vacated)
        try stage.at(3000, "presence-a", .occupied)
        try stage.at(3000, "presence-a", .memberAdded(user: "ada"))
        #expect(stage.events == [.memberRemoved(user: "ada"), .vacated, .occupied, .memberAdded(user: "ada")])
        #expect(stage.times == [3000, 3000, 3000, 3000])
    }

    @Test("each removal waits for its own three seconds, also after one that was called off")
    func again() throws {
        let stage = Stage()
        try stage.at(0, "a", .vacated)
        try stage.at(1000, "a", .occupied)
        try stage.at(2000, "a", .vacated)
        stage.pass(until: 4999)
        #expect(stage.events.isEmpty)
        stage.pass(until: 5000)
        #expect(stage.events == [.vacated] && stage.times == [5000])
        // A removal without an addition between, as after lost facts: one is told, at the later time.
        try stage.at(6000, "a", .vacated)
        try stage.at(7000, "a", .vacated)
        stage.pass(until: 30_000)
        #expect(stage.events == [.vacated, .vacated] && stage.times == [5000, 10_000])
    }

    @Test("somebody else's coming calls off the channel's emptying, not the member's leaving")
    func otherMember() throws {
        let stage = Stage()
        try stage.at(0, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(0, "presence-a", .vacated)
        try stage.at(500, "presence-a", .occupied)
        try stage.at(500, "presence-a", .memberAdded(user: "bob"))
        stage.pass(until: 10_000)
        #expect(stage.events == [.memberAdded(user: "bob"), .memberRemoved(user: "ada")])
    }

    @Test("channels and apps do not call off each other's removals")
    func apart() throws {
        let stage = Stage()
        try stage.at(0, "a", .vacated)
        try stage.at(1, "b", .occupied)
        try stage.at(2, "a", .occupied, app: 1)
        try stage.at(3, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(4, "presence-b", .memberAdded(user: "ada"))
        stage.pass(until: 10_000)
        #expect(stage.events == [.occupied, .occupied, .memberAdded(user: "ada"), .vacated, .memberRemoved(user: "ada")])
    }

    @Test("other facts pass a waiting removal; one member's facts keep their order")
    func passing() throws {
        let stage = Stage()
        let typing = ChannelFact.Event.clientEvent(
            name: "client-typing", data: "1", socketID: SocketID(first: 1, second: 1), user: "ada")
        try stage.at(0, "presence-a", .memberAdded(user: "ada"))
        try stage.at(10, "presence-a", typing)
        try stage.at(20, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(30, "presence-a", .subscriptionCount(1))
        stage.pass(until: 10_000)
        #expect(stage.events == [.memberAdded(user: "ada"), typing, .subscriptionCount(1), .memberRemoved(user: "ada")])
    }

    @Test("a channel's cache miss is told once in three seconds")
    func cacheMiss() throws {
        let stage = Stage()
        for time in [0, 1, 2999, 3000, 3001] { try stage.at(time, "cache-a", .cacheMiss) }
        try stage.at(3002, "cache-b", .cacheMiss)
        try stage.at(3003, "cache-a", .cacheMiss, app: 1)
        #expect(stage.times == [0, 3000, 3002, 3003])
    }

    @Test("nothing is ever told of a user's own channel")
    func serverToUser() throws {
        let stage = Stage()
        try stage.at(0, "#server-to-user-ada", .occupied)
        try stage.at(1, "#server-to-user-ada", .vacated)
        stage.pass(until: 10_000)
        #expect(stage.events.isEmpty)
    }

    @Test("at the end every waiting removal is told, in order")
    func settleAll() throws {
        let stage = Stage()
        try stage.at(0, "presence-a", .memberRemoved(user: "ada"))
        try stage.at(1, "presence-a", .memberRemoved(user: "bob"))
        try stage.at(2, "presence-a", .memberAdded(user: "ada"))
        try stage.at(3, "presence-a", .vacated)
        #expect(stage.debounce.settleAll().map(\.event) == [.memberRemoved(user: "bob"), .vacated])
        #expect(stage.debounce.nextDue == nil)
    }

    @Test("when too many wait, a removal is told at once and a miss every time")
    func full() throws {
        let stage = Stage(heldMax: 2)
        for (time, channel) in ["a", "b", "c"].enumerated() { try stage.at(time, channel, .vacated) }
        for channel in ["cache-a", "cache-b", "cache-c", "cache-c", "cache-a"] { try stage.at(5, channel, .cacheMiss) }
        #expect(stage.events == [.vacated, .cacheMiss, .cacheMiss, .cacheMiss, .cacheMiss])
        // An earlier removal of the same channel is not told a second time.
        try stage.at(10, "a", .vacated)
        stage.pass(until: 2999 + 10)
        #expect(stage.events.filter { $0 == .vacated }.count == 3)
        try stage.at(4000, "d", .vacated)
        #expect(stage.debounce.nextDue == 7000 * millisecondNanoseconds)
    }

    @Test("whatever comes and goes, what is told alternates and ends with how things are")
    func random() throws {
        for seed in 0..<200 {
            var random = SeededRandom(state: UInt64(seed))
            let stage = Stage()
            var isIn = false
            var time = 0
            for _ in 0..<200 {
                time += Int.random(in: 0...4000, using: &random)
                isIn.toggle()
                try stage.at(time, "presence-a", isIn ? .memberAdded(user: "ada") : .memberRemoved(user: "ada"))
            }
            stage.pass(until: time + 3000)
            let told = stage.events.map { $0 == .memberAdded(user: "ada") }
            #expect(told.enumerated().allSatisfy { $1 == ($0 % 2 == 0) } && (told.last ?? false) == isIn, "seed \(seed)")
        }
    }

    @Test("what is told needs its counterpart to be reported")
    func counterparts() {
        #expect(ChannelFact.Kinds.vacated.withCounterparts == [.vacated, .occupied])
        #expect(ChannelFact.Kinds.memberAdded.withCounterparts == [.memberAdded, .memberRemoved])
        #expect(ChannelFact.Kinds([.clientEvent, .cacheMiss]).withCounterparts == [.clientEvent, .cacheMiss])
    }
}
