import HubScaleOut
import RedisModel
import Testing

@Suite("Commands of the modelled Redis")
struct CommandTests {
    private let redis = RedisModel()

    private func run(_ name: StaticString, _ words: String...) -> RedisReply { redis.perform(RedisCommand(name, texts: words)) }

    private func texts(_ reply: RedisReply) -> [String]? { reply.array?.compactMap(\.text) }

    @Test("a key goes with its last member, and refuses commands of another kind")
    func kinds() {
        #expect(run("HSET", "h", "a", "1", "b", "2") == .integer(2))
        #expect(run("HINCRBY", "h", "a", "-3") == .integer(-2))
        #expect(run("HINCRBY", "h", "c", "x") == .error(.refused(code: "ERR", message: "value is not an integer or out of range")))
        #expect(run("SADD", "h", "a").error == "WRONGTYPE")
        #expect(run("GET", "h").error == "WRONGTYPE")
        #expect(texts(run("HGETALL", "h")) == ["a", "-2", "b", "2"])
        #expect(run("HDEL", "h", "a", "b", "c") == .integer(2))
        #expect(run("EXISTS", "h") == .integer(0))
        #expect(run("SADD", "h", "a") == .integer(1))
    }

    @Test("a table keeps its order, whatever is removed")
    func order() {
        for number in 0..<100 { _ = run("SADD", "s", "\(number)") }
        for number in 0..<100 where number % 9 != 0 { _ = run("SREM", "s", "\(number)") }
        _ = run("SADD", "s", "1", "9")
        #expect(texts(run("SMEMBERS", "s")) == stride(from: 0, to: 100, by: 9).map { "\($0)" } + ["1"])
        #expect(texts(run("SRANDMEMBER", "s", "2")) == ["0", "9"])
        #expect(run("SISMEMBER", "s", "2") == .integer(0))
    }

    @Test("what expires is gone at its time, and a new value lives on")
    func expiry() {
        redis.now = 1_000
        _ = run("SET", "a", "1", "PX", "500")
        _ = run("SET", "b", "1", "EX", "1")
        #expect(run("SET", "a", "2", "PX", "900", "NX") == .null)
        _ = run("SADD", "s", "x")
        #expect(run("EXPIRE", "s", "2") == .integer(1))
        redis.now = 1_499
        #expect(run("PTTL", "a") == .integer(1))
        redis.now = 1_500
        #expect(run("GET", "a") == .null)
        #expect(run("PTTL", "a") == .integer(-2))
        _ = run("SET", "b", "2")
        redis.now = 9_000
        #expect(run("GET", "b").text == "2")
        #expect(run("PTTL", "b") == .integer(-1))
        #expect(run("EXISTS", "s", "b", "b") == .integer(2))
    }

    @Test("a sorted set has members by score, and by name where it is the same")
    func sorted() {
        #expect(run("ZADD", "z", "2", "b", "1", "c", "2", "a") == .integer(3))
        #expect(run("ZADD", "z", "NX", "9", "b") == .integer(0))
        #expect(run("ZADD", "z", "1.5", "b") == .integer(0))
        #expect(texts(run("ZRANGE", "z", "0", "-1", "WITHSCORES")) == ["c", "1", "b", "1.5", "a", "2"])
        #expect(texts(run("ZRANGEBYSCORE", "z", "-inf", "2", "LIMIT", "1", "1")) == ["b"])
        #expect(run("ZREMRANGEBYSCORE", "z", "-inf", "1.5") == .integer(2))
        #expect(run("ZSCORE", "z", "a").text == "2")
        #expect(run("ZREM", "z", "a") == .integer(1))
        #expect(run("ZCARD", "z") == .integer(0))
    }

    @Test("ids of a stream grow when the clock does not")
    func stream() {
        redis.now = 2_000
        #expect(run("XADD", "e", "*", "n", "1").text == "2000-0")
        redis.now = 1_000
        #expect(run("XADD", "e", "*", "n", "2").text == "2000-1")
        redis.now = 3_000
        #expect(run("XADD", "e", "*", "n", "3").text == "3000-0")
        let second = RedisReply.array([.bytes(Array("2000-1".utf8)), .array([.bytes([110]), .bytes([50])])])
        #expect(run("XREAD COUNT 1 BLOCK 1000 STREAMS", "none", "e", "0-0", "2000-0").array == [.array([.bytes([101]), .array([second])])])
        #expect(run("XREAD COUNT 1 BLOCK 1000 STREAMS", "e", "3000-0") == .null)
        #expect(run("XTRIM", "e", "MINID", "~", "2000-1") == .integer(1))
        #expect(run("XREVRANGE", "e", "+", "-").array?.last == second)
        #expect(run("XREVRANGE", "e", "+", "-", "COUNT", "1").array?.first?.array?.first?.text == "3000-0")
    }
}

extension RedisReply {
    /// First word of an error.
    var error: String? { if case .error(.refused(let code, _)) = self { code } else { nil } }
}
