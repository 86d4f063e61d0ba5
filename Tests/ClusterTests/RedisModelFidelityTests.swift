import HubScaleOut
import HubTesting
import RedisModel
import Testing

/// Nodes that call the shipped scripts at random.
private final class Callers {
    private var random: SeededRandom
    private let twins: RedisTwins
    /// Names of the nodes with the epoch and the link of each. A node that was declared dead has another name later.
    private var nodes: [(name: String, credentials: [String])] = []
    private var lastName = 0
    private var process = "p1"
    private var leaves = 0

    init(_ seed: UInt64, _ twins: RedisTwins) {
        random = SeededRandom(state: seed)
        self.twins = twins
    }

    private static let databaseKey = "t:database"

    private func pick<Item>(_ items: [Item]) -> Item { items.randomElement(using: &random)! }
    private func isChosen(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    private func flag(_ percent: Int) -> String { isChosen(percent) ? "1" : "0" }

    /// Begins, with more members in one channel than are told promptly.
    func start() async throws {
        try await twins.load()
        for place in 0..<4 {
            nodes.append(("", []))
            try await open(place)
        }
        for number in 0..<120 {
            try await call("join", MemberScripts.join, ["1 presence-big", "u\(number)", "{}", "1000", "0"], node: number % 4)
        }
    }

    /// A new link of a node.
    private func open(_ place: Int) async throws {
        if nodes[place].name.isEmpty {
            lastName += 1
            nodes[place].name = "\(lastName)"
        }
        let name = nodes[place].name
        let keys = ["t:epoch", Self.databaseKey]
        let words = [process, "e\(random.next() % 1_000_000)", "t", name, pick(["db", "db", "", isChosen(20) ? "other" : "db"])]
        let isHello = isChosen(10)
        let script = isHello ? ScaleOutScripts.hello : ScaleOutScripts.open
        let reply = try await twins.perform("\(isHello ? "hello" : "open") \(words)", script.call(keys: keys, words.map { Array($0.utf8) }))
        if case .error(.refused(let code, _)) = reply, code == ScriptRefusal.dead { nodes[place] = ("", []) }
        guard !isHello, let epoch = reply.array?.first?.text, let link = reply.array?.last?.integer else { return }
        nodes[place].credentials = [epoch, name, "\(link)"]
        let base = "t:\(epoch.prefix { $0 != " " }):"
        if base != twins.base {
            twins.enter(base)
            // As a node does that knew the memory before.
            try await twins.perform("recovering", RedisCommand("SET", texts: [base + "recovering", "1", "PX", "2000", "NX"]))
        }
    }

    @discardableResult
    private func call(
        _ what: String, _ script: RedisScript, _ words: [String], node place: Int? = nil, _ order: RedisTwins.Order = .all
    ) async throws -> RedisReply {
        let place = place ?? Int.random(in: 0..<4, using: &random)
        while nodes[place].credentials.isEmpty { try await open(place) }
        var credentials = nodes[place].credentials
        if isChosen(2) { credentials[2] = "99" }
        let base = "t:\(credentials[0].prefix { $0 != " " }):"
        let isAppend = what == "append"
        let keys = ["t:epoch", base + "nodes", isAppend ? base + "numbers" : base, base + "events", Self.databaseKey]
        let command = script.call(keys: keys, (credentials + words).map { Array($0.utf8) })
        let reply = try await twins.perform("\(what) \(credentials + words)", command, order)
        if case .error(.refused(let code, _)) = reply, [ScriptRefusal.epoch, ScriptRefusal.link].contains(code) {
            try await open(place)
        }
        return reply
    }

    func step() async throws {
        let place = pick(["1 presence-a", "1 presence-b", "1 presence-big", "1 ", "2 c"])
        let user = place == "1 presence-big" ? "u\(Int.random(in: 0..<120, using: &random))" : pick(["ann", "bob", "x\0y", "é", "dan"])
        let names = nodes.map(\.name).filter { !$0.isEmpty }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<28:
            let most = place == "1 presence-a" ? "3" : "1000"
            try await call(
                "join", MemberScripts.join, [place, user, pick(["{}", "{\"a\":1}", ""]), most, pick(["0", "0", "0", "1", "2"])])
        case 28..<46:
            leaves += 1
            let linger = pick(["0", "0", "\(400 + leaves % 50 * 10)", "600000"])
            try await call("leave", MemberScripts.leave, [place, user, linger, flag(20), flag(50)])
        case 46..<60:
            let parts = place.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            let words = [place] + parts + [pick(["0", "0", "1", "2", "60", "150"]), flag(80), flag(80), flag(20)]
            try await call("subscribers", MemberScripts.subscribers, words)
        case 60..<66: try await call("list", MemberScripts.list, [place], .list)
        case 66..<68: try await call("known", MemberScripts.known, [place, user])
        case 68..<70: try await call("online", MemberScripts.online, [place, user, "nobody", "ann"])
        case 70..<76:
            let has = Int.random(in: 0..<4, using: &random)
            try await call("quota", MemberScripts.quota, [pick(["1", "2"]), "\(has)", "\(has + pick([0, 0, 1, 3]))", pick(["0", "6"])])
        case 76..<83:
            let versions = isChosen(10) ? ["3", "4"] : pick([["1", "2"], ["2", "2"], ["1", "3"]])
            let words = [pick(["db", "", "other"]), pick(["", "facts"]), pick(["", "10"]), "600000"] + versions
            try await call("beat", MemberScripts.beat, words, .beat)
        case 83..<87: try await call("settle", MemberScripts.settle, ["1000"])
        case 87..<89:
            let other = pick(names)
            let beat = twins.model.perform(RedisCommand("HGET", texts: [twins.base + "beats", other])).text
            try await call("declareDead", MemberScripts.declareDead, [other, isChosen(80) ? beat ?? "" : "77"])
        case 89..<93:
            let sweeping = twins.model.perform(RedisCommand("SMEMBERS", texts: [twins.base + "sweeping"])).array?.compactMap(\.text)
            let other = pick((sweeping ?? []) + [pick(names)])
            try await call("sweep", MemberScripts.sweep, [other, "1000", pick(["0", "0", "600000"]), pick(["0", "600000"])])
        case 93..<96:
            let first = Int.random(in: 1..<9, using: &random)
            try await call(
                "append", ScaleOutScripts.append, ["\(first)"] + ["a\0b", "", "é"].prefix(Int.random(in: 1...3, using: &random)))
        case 96..<98: try await open(Int.random(in: 0..<4, using: &random))
        case 98 where isChosen(30):
            if isChosen(50) { process = pick(["p1", "p2", "p3"]) } else { try await twins.lose() }
            try await open(0)
        default: try await Task.sleep(for: .milliseconds(Int.random(in: 1...300, using: &random)))
        }
    }
}

@Suite("The modelled Redis beside a real one", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct RedisModelFidelityTests {
    @Test("every script gives the same replies, announcements and keys", arguments: 1...3 as ClosedRange<UInt64>)
    func same(seed: UInt64) async throws {
        let server = try TestRedis()
        let twins = try RedisTwins(server)
        let callers = Callers(seed, twins)
        try await callers.start()
        for step in 1...1_500 where twins.differences.isEmpty && !twins.wasHeldUp {
            try await callers.step()
            if step % 100 == 0 { try await twins.compareContents() }
        }
        #expect(twins.differences.isEmpty, "seed \(seed): \(twins.differences.joined(separator: "\n"))")
        await twins.close()
        server.end()
    }
}
