import HubScaleOut
import RedisModel
import Testing

@Suite("The shipped scripts in the modelled Redis")
struct ShippedScriptTests {
    private let redis = RedisModel()

    init() {
        redis.now = 1_700_000_000_000
        load()
    }

    private func load() { for script in ScaleOutScripts.all { #expect(redis.perform(script.load).error == nil) } }

    private func bytes(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

    private func open(_ node: Int, candidate: String = "e1") -> [String] {
        let words = bytes([redis.process, candidate, "t", "\(node)", "db"])
        let reply = redis.perform(ScaleOutScripts.open.call(keys: ["t:epoch", "t:database"], words))
        return [reply.array?.first?.text ?? "", "\(node)", "\(reply.array?.last?.integer ?? 0)"]
    }

    private func run(_ script: RedisScript, _ credentials: [String], _ words: String...) -> RedisReply {
        let base = "t:\(credentials[0].prefix { $0 != " " }):"
        let keys = ["t:epoch", base + "nodes", base, base + "events", "t:database"]
        return redis.perform(script.call(keys: keys, bytes(credentials + words)))
    }

    /// Kinds and users of all announcements of an epoch.
    private func told(_ epoch: String = "e1") -> [String] {
        let reply = redis.perform(RedisCommand("XREAD COUNT 1000 BLOCK 1000 STREAMS", texts: ["t:\(epoch):events", "0-0"]))
        return (reply.array?.first?.array?.last?.array ?? []).map { entry in
            let fields = (entry.array?.last?.array ?? []).compactMap(\.text)
            return fields.count > 5 ? "\(fields[1]) \(fields[5])" : fields[1]
        }
    }

    @Test("a user on two nodes is announced once")
    func once() {
        let (first, second) = (open(1), open(2))
        let coming = RedisReply.array([.bytes(Array("1700000000000-0".utf8)), .integer(1)])
        #expect(run(MemberScripts.join, first, "1 presence-a", "ann", "{}", "100", "0") == coming)
        redis.now += 5
        let further = RedisReply.array([.bytes(Array("1700000000000-0".utf8)), .integer(0)])
        #expect(run(MemberScripts.join, second, "1 presence-a", "ann", "{}", "100", "0") == further)
        #expect(run(MemberScripts.join, second, "1 presence-a", "bob", "{}", "1", "0").text == "full")
        let list = RedisReply.array([.bytes(Array("ann".utf8)), .bytes(Array("{}".utf8))])
        #expect(run(MemberScripts.list, second, "1 presence-a").array?.last == list)
        #expect(run(MemberScripts.leave, first, "1 presence-a", "ann", "0", "0", "0") == .integer(1))
        #expect(told() == ["added ann"])
        #expect(run(MemberScripts.leave, second, "1 presence-a", "ann", "500", "0", "1") == .integer(1))
        #expect(run(MemberScripts.settle, first, "10") == .integer(0))
        redis.now += 500
        #expect(run(MemberScripts.settle, first, "10") == .integer(1))
        #expect(told() == ["added ann", "removed ann"])
    }

    @Test("a later link of the node refuses the one before")
    func fence() {
        let old = open(1)
        let new = open(1)
        #expect(run(MemberScripts.settle, old, "10").error == ScriptRefusal.link)
        #expect(run(MemberScripts.settle, new, "10") == .integer(0))
    }

    @Test("a lost memory has another epoch, and members come again as what they were")
    func lost() {
        let old = open(1)
        _ = run(MemberScripts.join, old, "1 presence-a", "ann", "{}", "100", "0")
        redis.lose(process: "second")
        load()
        #expect(run(MemberScripts.settle, old, "10").error == ScriptRefusal.epoch)
        let new = open(1, candidate: "e2")
        #expect(new == ["e2 second", "1", "1"])
        #expect(told("e2").isEmpty)
        _ = redis.perform(RedisCommand("SET", texts: ["t:e2:recovering", "1", "PX", "9000", "NX"]))
        _ = run(MemberScripts.join, new, "1 presence-a", "bob", "{}", "100", "0")
        redis.now += 9_000
        _ = run(MemberScripts.settle, new, "10")
        #expect(told("e2") == ["added bob", "added 1"], "bob is confirmed when nobody says that he was there")
    }

    @Test("a dead node's members go")
    func dead() {
        let (first, second) = (open(1), open(2))
        _ = run(MemberScripts.join, second, "1 presence-a", "ann", "{}", "100", "0")
        for link in [first, second] {
            #expect(run(MemberScripts.beat, link, "db", "", "", "3000", "1", "1").array?.count == 7)
        }
        #expect(run(MemberScripts.declareDead, first, "2", "1") == .integer(1))
        #expect(run(MemberScripts.settle, second, "10").error == ScriptRefusal.link)
        redis.now += 10
        #expect(run(MemberScripts.sweep, first, "2", "100", "0", "0") == .integer(1))
        #expect(run(MemberScripts.sweep, first, "2", "100", "0", "0") == .integer(0))
        #expect(told() == ["added ann", "node", "removed ann"])
    }

    @Test("a node that has never beaten in a memory is declared dead, and one that has is not")
    func absent() {
        let (first, second) = (open(1), open(2))
        _ = run(MemberScripts.beat, first, "db", "", "", "3000", "1", "1")
        #expect(run(MemberScripts.declareDead, second, "1", "") == .integer(0))
        #expect(run(MemberScripts.declareDead, first, "2", "") == .integer(1))
        #expect(run(MemberScripts.settle, first, "10").error == nil)
        #expect(run(MemberScripts.settle, second, "10").error == ScriptRefusal.link)
        #expect(told() == ["node"])
    }

    @Test("a node that stops declares itself dead, and its members linger until their time after its last beat")
    func ends() {
        let (first, second) = (open(1), open(2))
        _ = run(MemberScripts.join, second, "1 presence-a", "ann", "{}", "100", "0")
        for link in [first, second] { _ = run(MemberScripts.beat, link, "db", "", "", "3000", "1", "1") }
        #expect(run(MemberScripts.declareDead, second, "1", "") == .integer(0), "the other one beats")
        #expect(run(MemberScripts.declareDead, second, "2", "") == .integer(1))
        #expect(run(MemberScripts.settle, second, "10").error == ScriptRefusal.link)
        _ = run(MemberScripts.sweep, first, "2", "100", "4500", "0")
        redis.now += 4_000
        _ = run(MemberScripts.settle, first, "10")
        #expect(told() == ["added ann", "node"])
        redis.now += 501
        _ = run(MemberScripts.settle, first, "10")
        #expect(told() == ["added ann", "node", "removed ann"])
    }
}
