import HubChannels
import HubCore
import HubScaleOut
import HubTesting
import Testing

/// A node of the tests that has members: what was announced, and what was answered.
private final class Node: Sendable {
    let redis: RedisNode
    /// With whether webhooks hear of it; nil where an epoch began.
    private let told: Guarded<[(announcement: Announcement, isNews: Bool)?]>
    private let answers: Guarded<[MemberAnswer]>
    private let death = Guarded(false)
    private let earlier = Guarded<[Announcement]>([])

    init(_ server: TestRedis, _ node: UInt64, former: Node? = nil) throws {
        let (told, answers, death) = (Guarded<[(announcement: Announcement, isNews: Bool)?]>([]), Guarded<[MemberAnswer]>([]), death)
        let (changes, earlier) = (Guarded(ToldChanges()), earlier)
        (self.told, self.answers) = (told, answers)
        redis = RedisNode(
            try server.locator(), prefix: "test", node: node, former: former?.redis,
            take: { news, _ in
                told.withLock { told in
                    for news in news {
                        if case .announcement(let announcement) = news {
                            told.append((announcement, changes.withLock { $0.isNews(announcement) }))
                        }
                        if case .newEpoch = news { told.append(nil) }
                        if case .earlier(let announcement) = news { earlier.withLock { $0.append(announcement) } }
                    }
                }
            }, answer: { batch in answers.withLock { $0 += batch } }, onDeath: { death.withLock { $0 = true } })
    }

    /// Announcements from before its start.
    var heardLate: [Announcement.Event] { earlier.withLock { $0.map(\.event) } }
    var isDead: Bool { death.withLock { $0 } }

    /// `+user`, `-user` and other events of a channel in the present epoch, in order.
    /// - Parameter isNew: as webhooks hear of it.
    func events(_ channel: String, isNew: Bool = false) -> [String] {
        events(channel) { isNew ? $0.isNews : $0.announcement.standing != .confirmed }
    }

    func events(_ channel: String, _ isMeant: ((announcement: Announcement, isNews: Bool)) -> Bool) -> [String] {
        let all = told.withLock { $0 }
        return all[(all.lastIndex { $0 == nil }.map { $0 + 1 } ?? 0)...].compactMap(\.self)
            .filter { $0.announcement.place?.channel == channel && isMeant($0) }
            .compactMap { told in
                switch told.announcement.event {
                case .added(let user, _): "+\(user)"
                case .removed(let user): "-\(user)"
                case .occupied: "occupied"
                case .vacated: "vacated"
                case .count(let count): "\(count)"
                case .dead, .info: nil
                }
            }
    }

    func knows(dead node: UInt64) -> Bool { told.withLock { $0.contains { $0?.announcement.event == .dead(node: node) } } }

    var allAnswers: [MemberAnswer] { answers.withLock { $0 } }

    func join(_ channel: String, _ user: String, info: String? = nil, max: Int = 100, wantsList: Bool = false) {
        redis.members.join(Self.place(channel), user: user, info: info.map { Array($0.utf8) }, membersMax: max, ticket: 0)
        if wantsList { redis.members.list(Self.place(channel), ticket: 0) }
        redis.members.flush()
    }

    func ask(_ channel: String) {
        redis.members.list(Self.place(channel), ticket: 0)
        redis.members.flush()
    }

    func leave(_ channel: String, _ user: String, linger: Int = 0, always: Bool = false) {
        redis.members.leave(Self.place(channel), user: user, lingerMilliseconds: linger, lingersAlways: always)
        redis.members.flush()
    }

    func subscribers(_ channel: String, _ count: Int) {
        redis.members.setSubscribers(Self.place(channel), count, tells: [.occupancy, .counts])
        redis.members.flush()
    }

    static func place(_ channel: String) -> MemberPlace { MemberPlace(app: "1", channel: channel) }

    /// Users of the last list that was answered for the channel.
    func list(_ channel: String) -> [String]? {
        allAnswers.reversed().lazy.compactMap { answer -> [String]? in
            if case .list(Self.place(channel), _, _, let list) = answer { list.map(\.user).sorted() } else { nil }
        }.first
    }
}

@Suite("Members of several nodes", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct SharedMembersTests {
    /// Runs `body` with started nodes. A node whose place is in `stopped` never beats again after its start.
    private func with(
        _ server: TestRedis, _ count: Int, stopped: Set<Int> = [], _ body: ([Node]) async throws -> Void
    ) async throws {
        let nodes = try (1...count).map { try Node(server, UInt64($0)) }
        for node in nodes { try await node.redis.start() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, node) in nodes.enumerated() where !stopped.contains(place) { group.addTask { await node.redis.run() } }
            try await body(nodes)
            group.cancelAll()
        }
        for node in nodes { await node.redis.close() }
    }

    @Test("a user on several nodes is added once and removed once")
    func once() async throws {
        try await with(try TestRedis(), 3) { nodes in
            for node in nodes { node.join("presence-a", "ann", info: "{}") }
            try await eventually("all are admitted") { nodes.allSatisfy { !$0.allAnswers.isEmpty } }
            nodes[1].join("presence-a", "bob", wantsList: true)
            try await eventually("bob is admitted") { nodes[1].list("presence-a") == ["ann", "bob"] }
            for node in nodes { node.leave("presence-a", "ann") }
            nodes[0].join("presence-a", "last")
            for node in nodes {
                try await eventually("the last one is told") { node.events("presence-a").contains("+last") }
                try await eventually("ann is gone") { node.events("presence-a").contains("-ann") }
                #expect(node.events("presence-a").filter { $0 != "+last" } == ["+ann", "+bob", "-ann"])
                #expect(node.events("presence-a", isNew: true) == node.events("presence-a"), "the first memory is no lost one")
            }
        }
    }

    @Test("subscribers are counted over all nodes, with one first and one last")
    func counted() async throws {
        try await with(try TestRedis(), 2) { nodes in
            nodes[0].subscribers("a", 2)
            try await eventually("2") { nodes[1].events("a") == ["occupied", "2"] }
            nodes[1].subscribers("a", 3)
            try await eventually("5") { nodes[0].events("a").last == "5" }
            nodes[0].subscribers("a", 0)
            try await eventually("3") { nodes[1].events("a").last == "3" }
            nodes[1].subscribers("a", 0)
            try await eventually("none") { nodes[0].events("a") == ["occupied", "2", "5", "3", "vacated", "0"] }
        }
    }

    @Test("the last place of a channel has one taker, whoever asks")
    func full() async throws {
        try await with(try TestRedis(), 3) { nodes in
            nodes[0].join("presence-a", "first", max: 2)
            try await eventually("the first one is there") { nodes[2].events("presence-a") == ["+first"] }
            for (place, node) in nodes.enumerated() { node.join("presence-a", "user-\(place)", max: 2) }
            try await eventually("all are answered") { nodes.reduce(0) { $0 + $1.allAnswers.count } == 4 }
            let refused = nodes.flatMap(\.allAnswers).count { if case .full = $0 { true } else { false } }
            #expect(refused == 2)
            // A member's further node needs no place.
            nodes[2].join("presence-a", "first", max: 2)
            try await eventually("the member is admitted again") {
                nodes[2].allAnswers.contains { if case .admitted(_, "first", _, _) = $0 { true } else { false } }
            }
        }
    }

    @Test("random comings and goings end as the nodes wish, and every user comes and goes in turn, also over an emptied Redis")
    func storm() async throws {
        let server = try TestRedis()
        try await with(server, 3) { nodes in
            var random = SeededRandom(state: 42)
            var present: [Set<String>] = [[], [], []]
            for step in 0..<3_000 {
                let place = Int(random.next() % 3)
                let user = "user-\(random.next() % 20)"
                if present[place].remove(user) != nil {
                    nodes[place].leave("presence-a", user)
                } else {
                    present[place].insert(user)
                    nodes[place].join("presence-a", user)
                }
                if step == 1_500 {
                    server.end()
                    try server.start()
                }
                if step % 10 == 0 { try await Task.sleep(for: .milliseconds(1)) }
            }
            let expected = Set(present.joined())
            // The list is as all nodes wish once their wishes have arrived.
            try await eventually("the list is as wished") {
                nodes[0].ask("presence-a")
                return nodes[0].list("presence-a").map(Set.init) == expected
            }
            nodes[0].join("presence-b", "end")
            for node in nodes {
                try await eventually("the end is told") { node.events("presence-b") == ["+end"] }
                // A user from before Redis was emptied may go without having come.
                var (there, known): (Set<String>, Set<String>) = ([], [])
                for event in node.events("presence-a") {
                    let user = String(event.dropFirst())
                    if event.hasPrefix("+") {
                        #expect(there.insert(user).inserted, "\(event)")
                    } else {
                        #expect(there.remove(user) != nil || !known.contains(user), "\(event)")
                    }
                    known.insert(user)
                }
                #expect(there == expected)
            }
        }
    }

    @Test("a node that stands still is declared dead: its members are removed once, but for those who are elsewhere or come back")
    func dead() async throws {
        let server = try TestRedis()
        try await with(server, 3, stopped: [2]) { nodes in
            for user in ["here", "back", "gone"] { nodes[2].join("presence-a", user) }
            nodes[0].join("presence-a", "here")
            nodes[2].subscribers("a", 7)
            nodes[0].subscribers("a", 1)
            nodes[2].subscribers("presence-b", 1)
            nodes[2].join("presence-b", "alone")
            try await eventually("all are there") { nodes[1].events("presence-a").count == 3 && nodes[1].events("a").last == "8" }
            try await eventually("the node is declared dead") { nodes[1].knows(dead: nodes[2].redis.node) }
            nodes[1].join("presence-a", "back")
            try await eventually("gone is told") { nodes[1].events("presence-a").contains("-gone") }
            nodes[1].join("presence-a", "end")
            try await eventually("the end is told") { nodes[0].events("presence-a").contains("+end") }
            #expect(Set(nodes[0].events("presence-a")) == ["+here", "+back", "+gone", "-gone", "+end"])
            #expect(nodes[0].events("presence-a").count == 5)
            try await eventually("its subscribers are gone") { nodes[1].events("a").last == "1" }
            // A channel is vacated after its last member was told removed, as everywhere.
            try await eventually("a channel of its own is vacated") { nodes[1].events("presence-b").contains("vacated") }
            try await eventually("the count is told") { nodes[1].events("presence-b").last == "0" }
            #expect(nodes[1].events("presence-b") == ["occupied", "1", "+alone", "-alone", "vacated", "0"])
            #expect(nodes[0].redis.figures.declaredDead + nodes[1].redis.figures.declaredDead == 1)
            // The dead node wakes up and learns of it.
            let woken = Task { await nodes[2].redis.run() }
            try await eventually("the node knows that it is dead") { nodes[2].isDead }
            await woken.value
            nodes[2].join("presence-a", "ghost")
            // A user who joins a run that is over is a member of the next one.
            let reborn = try Node(server, 4, former: nodes[2])
            nodes[2].leave("presence-a", "ghost")
            nodes[2].join("presence-c", "between")
            nodes[2].redis.members.list(Node.place("presence-c"), ticket: 0)
            try await reborn.redis.start()
            reborn.redis.members.flush()
            try await eventually("the new run is answered") { reborn.list("presence-c") == ["between"] }
            await reborn.redis.close()
            nodes[1].join("presence-c", "end")
            try await eventually("the end is told again") { nodes[0].events("presence-c") == ["+between", "+end"] }
            #expect(!nodes[0].events("presence-a").contains("+ghost"))
        }
    }

    @Test("a node that starts reads what the others were told in the seconds before, apart from its own news")
    func startsLate() async throws {
        let server = try TestRedis()
        try await with(server, 2) { nodes in
            nodes[0].join("presence-a", "ann")
            nodes[0].leave("presence-a", "ann")
            nodes[0].join("presence-a", "bob")
            // Both wishes about ann may travel as one.
            let either = [["+bob"], ["+ann", "+bob", "-ann"]]
            try await eventually("all of it is told") { either.contains(nodes[1].events("presence-a").sorted()) }
            let before = nodes[1].events("presence-a")
            let late = try Node(server, 3)
            try await late.redis.start()
            nodes[0].join("presence-a", "carl")
            try await eventually("the newcomer is told") { late.events("presence-a") == ["+carl"] }
            #expect(late.heardLate.count == before.count && late.heardLate.contains(.added(user: "bob", info: nil)))
            await late.redis.close()
        }
    }

    @Test("an emptied Redis hears of everybody again, and what happened meanwhile is new, once")
    func emptied() async throws {
        let server = try TestRedis()
        try await with(server, 3) { nodes in
            for user in ["stays", "both", "leaves"] { nodes[0].join("presence-a", user) }
            for user in ["leaves", "both"] { nodes[1].join("presence-a", user) }
            for node in nodes.prefix(2) { node.subscribers("presence-a", 3) }
            nodes[0].subscribers("b", 1)
            try await eventually("all are there") {
                nodes[2].events("presence-a").count == 6 && nodes[2].events("presence-a").last == "6" && !nodes[2].events("b").isEmpty
            }
            server.end()
            try await Task.sleep(for: .milliseconds(600))
            for node in nodes.prefix(2) { node.leave("presence-a", "leaves") }
            nodes[1].leave("presence-a", "both")
            nodes[0].subscribers("b", 0)
            nodes[2].join("presence-a", "comes")
            try server.start()
            try await eventually("the end of a channel is told") { nodes[2].events("b", isNew: true) == ["vacated"] }
            try await eventually("the leaver is told") { nodes[2].events("presence-a", isNew: true).contains("-leaves") }
            nodes[0].join("presence-b", "end")
            for node in nodes {
                try await eventually("the end is told") { node.events("presence-b") == ["+end"] }
                try await eventually("who came is told") { node.events("presence-a", isNew: true).sorted() == ["+comes", "-leaves"] }
                #expect(Set(node.events("presence-a")).isSuperset(of: ["+stays", "+both", "occupied"]))
            }
            nodes[2].ask("presence-a")
            try await eventually("the list is right") { nodes[2].list("presence-a") == ["both", "comes", "stays"] }
        }
    }

    @Test("who moves to another node over an emptied Redis is no news, and who left just before it is told once")
    func moved() async throws {
        let server = try TestRedis()
        try await with(server, 3) { nodes in
            for user in ["moves", "left", "lingers"] { nodes[0].join("presence-a", user) }
            nodes[0].subscribers("b", 1)
            try await eventually("all are there") { nodes[2].events("presence-a").count == 3 }
            nodes[0].leave("presence-a", "left")
            nodes[0].leave("presence-a", "lingers", linger: 3_000, always: true)
            nodes[0].join("presence-c", "before")
            try await eventually("all of it is told") { nodes[2].events("presence-c") == ["+before"] }
            #expect(nodes[2].events("presence-a").filter { !$0.hasPrefix("+") } == ["-left"])
            server.end()
            nodes[0].leave("presence-a", "moves")
            nodes[0].subscribers("b", 0)
            try server.start()
            nodes[1].join("presence-a", "moves")
            nodes[1].subscribers("b", 1)
            nodes[1].join("presence-a", "comes")
            nodes[1].subscribers("d", 1)
            for node in nodes {
                try await eventually("a channel that is new is told") { node.events("d", isNew: true) == ["1", "occupied"] }
                try await eventually("who came is told") { node.events("presence-a", isNew: true).contains("+comes") }
                #expect(node.events("presence-a", isNew: true) == ["-lingers", "+comes"])
                #expect(node.events("presence-a") { $0.announcement.standing == .late }.sorted() == ["-left", "-lingers"])
                #expect(!node.events("b", isNew: true).contains { ["occupied", "vacated"].contains($0) })
            }
            nodes[2].ask("presence-a")
            try await eventually("the list is right") { nodes[2].list("presence-a") == ["comes", "moves"] }
        }
    }

    @Test("who was told gone with a dead node is new when she comes back to that node over an emptied Redis")
    func backAfterDeath() async throws {
        let server = try TestRedis()
        try await with(server, 2) { nodes in
            // Its own run ends before it can say that ann has left.
            let dying = try Node(server, 3)
            try await dying.redis.start()
            dying.join("presence-a", "ann")
            try await eventually("ann is there") { nodes[0].events("presence-a") == ["+ann"] }
            await dying.redis.close()
            dying.leave("presence-a", "ann")
            try await eventually("ann is told gone") { nodes[0].events("presence-a") == ["+ann", "-ann"] }
            let reborn = try Node(server, 4, former: dying)
            try await reborn.redis.start()
            reborn.ask("presence-a")
            try await eventually("the new run is answered, after it has said it") { reborn.list("presence-a") == [] }
            let running = Task { await reborn.redis.run() }
            server.end()
            try server.start()
            reborn.join("presence-a", "ann")
            try await eventually("ann is told as new") { nodes[0].events("presence-a", isNew: true) == ["+ann"] }
            await reborn.redis.close()
            await running.value
        }
    }

    @Test("a node hears of everybody who comes after its list, also of those who came before it began to read")
    func heardSinceList() async throws {
        let server = try TestRedis()
        try await with(server, 1) { _ in
            let late = try Node(server, 2)
            late.ask("presence-a")
            // Time for an answer to who does not read yet.
            try await Task.sleep(for: .milliseconds(300))
            late.join("presence-a", "ann")
            try await Task.sleep(for: .milliseconds(300))
            try await late.redis.start()
            try await eventually("ann is admitted") { late.allAnswers.count == 2 }
            try await eventually("ann is known") {
                late.list("presence-a") == ["ann"] || late.events("presence-a") == ["+ann"]
            }
            await late.redis.close()
        }
    }

    @Test("who lingers in a large channel and comes back is told to nobody")
    func lingering() async throws {
        try await with(try TestRedis(), 2) { nodes in
            for number in 0...SharedMembers.promptMembersMax { nodes[0].join("presence-a", "user-\(number)", max: 1_000) }
            try await eventually("all are there") { nodes[1].events("presence-a").count == SharedMembers.promptMembersMax + 1 }
            nodes[0].leave("presence-a", "user-1", linger: 600_000)
            nodes[0].leave("presence-a", "user-2", linger: 1)
            try await eventually("the second is told") { nodes[1].events("presence-a").last == "-user-2" }
            nodes[1].join("presence-a", "user-1", max: 1_000, wantsList: true)
            try await eventually("the first is back") { nodes[1].list("presence-a")?.contains("user-1") == true }
            #expect(nodes[1].events("presence-a").count == SharedMembers.promptMembersMax + 2)
        }
    }

    @Test("a member whom a stopping node sends away lingers in a small channel, too")
    func sentAway() async throws {
        try await with(try TestRedis(), 2) { nodes in
            for user in ["back", "gone", "leaver"] { nodes[0].join("presence-a", user) }
            try await eventually("all are there") { nodes[1].events("presence-a").count == 3 }
            nodes[0].leave("presence-a", "back", linger: 600_000, always: true)
            nodes[0].leave("presence-a", "gone", linger: 1, always: true)
            nodes[0].leave("presence-a", "leaver", linger: 600_000)
            try await eventually("the leaver is told at once, and the other one soon") { nodes[1].events("presence-a").count == 5 }
            nodes[1].join("presence-a", "back")
            nodes[1].join("presence-a", "end")
            try await eventually("the end is told") { nodes[0].events("presence-a").last == "+end" }
            #expect(nodes[0].events("presence-a").suffix(3) == ["-leaver", "-gone", "+end"])
        }
    }
}
