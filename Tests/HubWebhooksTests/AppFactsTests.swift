import HubCore
import HubDelivery
import HubTesting
import HubWebhooks
import PusherProtocol
import Testing

/// Two nodes that read the same facts: one owns the app's webhooks, and the other goes on from its mark.
@Suite("AppFacts")
struct AppFactsTests {
    private var second: UInt64 { secondNanoseconds }

    private func facts() -> AppFacts { AppFacts(app: "1", heldMax: 100, recentBytesMax: 1 << 20) }

    private func id(_ milliseconds: UInt64) -> StreamID { StreamID(milliseconds: milliseconds) }

    private func names(_ facts: [ChannelFact]) -> [String] {
        facts.map {
            switch $0.event {
            case .memberAdded(let user): "+\(user)"
            case .memberRemoved(let user): "-\(user)"
            case .occupied: "occupied"
            case .vacated: "vacated"
            case .clientEvent: "client"
            case .cacheMiss: "miss"
            case .subscriptionCount(let count): "\(count)"
            }
        }
    }

    private func added(_ user: String, at position: UInt64) throws -> ChannelFact {
        try .fact("presence-a", .memberAdded(user: user), at: position)
    }

    private func removed(_ user: String, at position: UInt64) throws -> ChannelFact {
        try .fact("presence-a", .memberRemoved(user: user), at: position)
    }

    @Test("a node that does not own the app tells nothing, and keeps everything")
    func keeps() throws {
        var other = facts()
        let fact = try added("ada", at: 1)
        #expect(other.take(fact, now: second).isEmpty && other.settle(now: 10 * second).isEmpty)
        #expect(other.recentCount == 1 && other.mark == nil && other.nextDue == nil)
    }

    @Test("the next owner tells everything where the former one stored nothing")
    func nothingStored() throws {
        var other = facts()
        _ = other.take(try added("ada", at: 1), now: second)
        _ = other.take(try removed("ada", at: 2), now: 2 * second)
        #expect(names(other.begin(after: nil, now: 3 * second)) == ["+ada"])
        #expect(names(other.settle(now: 5 * second)) == ["-ada"])
        #expect(other.mark == WebhookMark(app: "1", told: id(2), settled: id(2)))
    }

    @Test("what the mark covers is not told again, and a removal that waited still comes")
    func goesOn() throws {
        let all = [try added("ada", at: 1), try added("bob", at: 2), try removed("ada", at: 3), try removed("bob", at: 4)]
        var (owner, other) = (facts(), facts())
        _ = owner.begin(after: nil, now: 0)
        var told = all.enumerated().flatMap { owner.take($1, now: UInt64($0) * second) }
        for (place, fact) in all.enumerated() { _ = other.take(fact, now: UInt64(place) * second) }
        // Ada's removal is certain, and Bob's is not.
        told += owner.settle(now: 5 * second)
        #expect(names(told) == ["+ada", "+bob", "-ada"])
        let mark = try #require(owner.mark)
        #expect(mark == WebhookMark(app: "1", told: id(4), settled: id(3)))
        #expect(other.begin(after: mark, now: 5 * second).isEmpty)
        #expect(names(other.settle(now: 6 * second)) == ["-bob"])
    }

    @Test("a return that the former owner took cancels its removal, however late the next owner comes")
    func cancelled() throws {
        var other = facts()
        _ = other.take(try removed("ada", at: 3), now: second)
        _ = other.take(try added("ada", at: 4), now: 4 * second)
        _ = other.take(try added("bob", at: 5), now: 5 * second)
        let mark = WebhookMark(app: "1", told: id(4), settled: .zero)
        #expect(names(other.begin(after: mark, now: 60 * second)) == ["+bob"])
        #expect(other.settle(now: 90 * second).isEmpty)
    }

    @Test("a return after the mark cancels a removal that waited, and not one that was told")
    func returns() throws {
        let mark = WebhookMark(app: "1", told: id(3), settled: .zero)
        var waited = facts()
        _ = waited.take(try removed("ada", at: 3), now: second)
        _ = waited.take(try added("ada", at: 4), now: 2 * second)
        #expect(waited.begin(after: mark, now: 3 * second).isEmpty && waited.settle(now: 9 * second).isEmpty)
        var told = facts()
        _ = told.take(try removed("ada", at: 3), now: second)
        _ = told.take(try added("ada", at: 4), now: 2 * second)
        #expect(names(told.begin(after: WebhookMark(app: "1", told: id(3), settled: id(3)), now: 3 * second)) == ["+ada"])
    }

    @Test("an owner that reads late tells nothing that the former one has told, and cancels what waited") func readsLate() throws {
        let mark = WebhookMark(app: "1", told: id(4), settled: id(2))
        var late = facts()
        #expect(late.begin(after: mark, now: second).isEmpty)
        let all = [
            try added("ada", at: 1), try removed("ada", at: 2), try removed("bob", at: 3), try removed("cy", at: 4), try added("cy", at: 5),
            try added("di", at: 6),
        ]
        #expect(names(all.flatMap { late.take($0, now: 2 * second) }) == ["+di"])
        #expect(names(late.settle(now: 6 * second)) == ["-bob"])
        #expect(late.mark == WebhookMark(app: "1", told: id(6), settled: id(3)))
        // A memory that was lost begins to count anew.
        #expect(names(late.take(try added("ed", at: 2), now: 7 * second)) == ["+ed"])
    }

    @Test("a cache miss of the former owner keeps the next one quiet")
    func misses() throws {
        var other = facts()
        _ = other.take(try .fact("cache-a", .cacheMiss, at: 1), now: second)
        _ = other.take(try .fact("cache-a", .cacheMiss, at: 2), now: 2 * second)
        _ = other.take(try .fact("cache-a", .cacheMiss, at: 3), now: 5 * second)
        #expect(names(other.begin(after: WebhookMark(app: "1", told: id(1), settled: .zero), now: 6 * second)) == ["miss"])
    }

    @Test("an app that comes back begins with the mark, not with what waited before")
    func comesBack() throws {
        var owner = facts()
        _ = owner.begin(after: nil, now: 0)
        _ = owner.take(try removed("ada", at: 1), now: second)
        owner.end()
        let next = try added("bob", at: 2)
        #expect(owner.settle(now: 9 * second).isEmpty && owner.take(next, now: 9 * second).isEmpty)
        // Meanwhile another node told both.
        #expect(owner.begin(after: WebhookMark(app: "1", told: id(2), settled: id(1)), now: 10 * second).isEmpty)
        #expect(owner.settle(now: 20 * second).isEmpty)
    }

    @Test("facts are kept up to a size and an age")
    func bounds() throws {
        var small = AppFacts(app: "1", heldMax: 100, recentBytesMax: 1000)
        for place in 1...100 { _ = small.take(try .fact("a", .occupied, at: UInt64(place)), now: second) }
        #expect(small.recentCount == 7)
        _ = small.take(try .fact("a", .occupied, at: 101), now: 302 * second)
        #expect(small.recentCount == 1)
    }

    @Test("any owner at any moment: each fact is told once, as one owner alone tells it", arguments: 0..<200)
    func anyOwner(seed: UInt64) throws {
        var random = SeededRandom(state: seed)
        // One owner, all the time.
        var alone = facts()
        _ = alone.begin(after: nil, now: 0)
        var nodes = [facts(), facts(), facts()]
        var owner = 0
        _ = nodes[0].begin(after: nil, now: 0)
        var (expected, told, stored): ([String], [String], WebhookMark?) = ([], [], nil)
        var unstored: [String] = []
        var present: Set<String> = []
        for step in 1...200 {
            let now = UInt64(step) * second / 2
            if Int.random(in: 0..<3, using: &random) > 0 {
                let user = ["ada", "bob", "eve"].randomElement(using: &random) ?? "ada"
                let fact = present.remove(user) != nil ? try removed(user, at: UInt64(step)) : try added(user, at: UInt64(step))
                if case .memberAdded = fact.event { present.insert(user) }
                expected += names(alone.take(fact, now: now))
                for node in nodes.indices { unstored += names(nodes[node].take(fact, now: now)) }
            }
            expected += names(alone.settle(now: now))
            unstored += names(nodes[owner].settle(now: now))
            if Int.random(in: 0..<3, using: &random) == 0, !unstored.isEmpty {
                told += unstored
                (unstored, stored) = ([], nodes[owner].mark)
            }
            if Int.random(in: 0..<10, using: &random) == 0 {
                // A crash, or another share: what was not stored is forgotten.
                nodes[owner].end()
                owner = Int.random(in: 0..<3, using: &random)
                unstored = names(nodes[owner].begin(after: stored, now: now))
            }
        }
        expected += names(alone.settle(now: 200 * second))
        told += unstored + names(nodes[owner].settle(now: 200 * second))
        // Between two people a late removal may take another place.
        for user in ["ada", "bob", "eve"] { #expect(told.filter { $0.hasSuffix(user) } == expected.filter { $0.hasSuffix(user) }) }
    }
}
