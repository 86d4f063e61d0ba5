import HubScaleOut
import RedisModel
import Testing

@Suite("Scripts in the modelled Redis")
struct ScriptTests {
    private let redis = RedisModel()

    private func run(_ body: String, keys: [String] = [], _ arguments: [String] = []) -> RedisReply {
        let digest = redis.perform(RedisCommand("SCRIPT LOAD", texts: [body])).text ?? ""
        return redis.perform(RedisCommand("EVALSHA", texts: [digest, "\(keys.count)"] + keys + arguments))
    }

    private func get(_ key: String) -> String? { redis.perform(RedisCommand("GET", texts: [key])).text }

    @Test("what a script returns is converted as Redis does it")
    func returned() {
        #expect(run("return 3.99") == .integer(3))
        #expect(run("return -3.99") == .integer(-3))
        #expect(run("return '3.99'").bytes == Array("3.99".utf8))
        #expect(run("return true") == .integer(1))
        #expect(run("return false") == .null)
        #expect(run("local a = 1") == .null)
        #expect(run("return {1, false, {'a', {}}, nil, 5}") == .array([.integer(1), .null, .array([.bytes([97]), .array([])])]))
        #expect(run("return {ok = 'FINE'}").text == "FINE")
        #expect(run("return redis.error_reply('CODE some text')") == .error(.refused(code: "CODE", message: "some text")))
        #expect(run("return {1, {err = 'CODE text'}}").array?.last == .error(.refused(code: "CODE", message: "text")))
    }

    @Test("what a command answers is converted as Redis does it")
    func called() {
        #expect(run("return redis.call('SET', 'a', 'b').ok").text == "OK")
        #expect(run("return redis.call('SET', 'a', 'c', 'NX') == false and 1 or 0") == .integer(1))
        #expect(run("return type(redis.call('HGET', 'h', 'x'))").text == "boolean")
        #expect(run("return redis.call('HSET', 'h', 'x', 1) + 1") == .integer(2))
        #expect(run("return #redis.call('HGETALL', 'h')") == .integer(2))
        #expect(run("return redis.call('XREVRANGE', 'none', '+', '-', 'COUNT', 1)[1] and 1 or 0") == .integer(0))
    }

    @Test("numbers keep all their digits, and strings all their bytes")
    func arguments() {
        _ = run("redis.call('SET', 'n', 1700000000123 + 0.0)")
        #expect(get("n") == "1700000000123")
        _ = run("redis.call('SET', 'n', 0.5)")
        #expect(get("n") == "0.5")
        #expect(run("return redis.call('SET', KEYS[1], ARGV[1])", keys: ["a\0k"], ["b\0v"]).text == "OK")
        #expect(get("a\0k") == "b\0v")
        #expect(run("return string.match(ARGV[1], '^(.-)%z(.*)$')", ["one\0two"]).text == "one")
        #expect(run("return #ARGV[1]", [""]) == .integer(0))
        #expect(run("return #KEYS .. ' ' .. #ARGV").text == "0 0", "those of the call before are gone")
    }

    @Test("a script that fails keeps what it wrote")
    func failed() {
        let body = "redis.call('SET', 'a', 'written'); redis.call('HSET', 'a', 'x', 1); redis.call('SET', 'b', 'not')"
        #expect(run(body).error == "WRONGTYPE")
        #expect(get("a") == "written")
        #expect(get("b") == nil)
        #expect(run("return nil + 1").error == "ERR")
        #expect(run("return nothing").error == "ERR")
        #expect(run("something = 1").error == "ERR")
        #expect(run("return redis.call('SET', 'a', {})").error == "ERR")
        #expect(redis.perform(RedisCommand("SCRIPT LOAD", texts: ["return ("])).error == "ERR")
        #expect(run("return 1") == .integer(1))
    }

    @Test("a new process knows no script, and has what it is given")
    func lost() {
        _ = run("redis.call('SET', 'a', '1')")
        let (copy, script) = (redis.memory, ScaleOutScripts.hello)
        _ = redis.perform(script.load)
        _ = run("redis.call('SET', 'a', '2')")
        redis.lose(process: "second", keeping: copy)
        #expect(get("a") == "1")
        #expect(redis.perform(script.call(keys: [], [])).error == "NOSCRIPT")
        redis.lose(process: "third")
        #expect(get("a") == nil)
        #expect(redis.memory.keys.isEmpty)
    }
}
