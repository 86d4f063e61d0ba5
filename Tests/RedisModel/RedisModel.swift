internal import HubCore
internal import HubCrypto
package import HubScaleOut

/// A Redis in memory that carries out the commands of nodes, and the shipped scripts in Lua. One thread.
///
/// Same calls at the same times give the same replies. Hashes and sets have the order in which they were filled. A command that nodes do
/// not send ends the program.
package final class RedisModel {
    /// Milliseconds since 1970 by the machine's clock, which may step backwards. It stands still while a command is carried out.
    package var now: Int64 = 0
    /// The `run_id`, which tells this process of Redis from all others.
    package var process: String
    /// All that the server has. A copy of it is what a replica would have.
    package var memory = RedisMemory()
    /// Digests of the scripts that this process knows.
    private var loaded: Set<[UInt8]> = []
    private var engine: ScriptEngine!

    /// A server with an empty memory.
    package init(process: String = "first") {
        self.process = process
        engine = ScriptEngine { [unowned self] words in memory.perform(words, now: now) }
    }

    /// Carries out a command. XREAD never waits.
    package func perform(_ command: RedisCommand) -> RedisReply {
        let words = command.words
        switch String(decoding: words[0], as: UTF8.self) {
        case "EVALSHA":
            guard loaded.contains(words[1]) else {
                return .error(.refused(code: "NOSCRIPT", message: "No matching script. Please use EVAL."))
            }
            guard let count = integer(words[2]).flatMap({ Int(exactly: $0) }), (0...words.count - 3).contains(count) else {
                return .error(.refused(code: "ERR", message: "value is not an integer or out of range"))
            }
            memory.expire(at: now)
            return engine.run(words[1], keys: words[3..<(3 + count)], arguments: words[(3 + count)...])
        case "SCRIPT":
            precondition(words[1] == Array("LOAD".utf8), "the model of Redis only loads scripts")
            let digest = Hex.digits(of: Digest.sha1(words[2]))
            if let failure = engine.load(words[2], digest) { return .error(failure) }
            loaded.insert(digest)
            return .bytes(digest)
        case "INFO":
            let facts = ["redis_version:7.0.15", "run_id:\(process)", "maxmemory_policy:noeviction", "role:master", "cluster_enabled:0"]
            return .bytes(Array(facts.map { $0 + "\r\n" }.joined().utf8))
        default:
            memory.expire(at: now)
            return memory.perform(words, now: now)
        }
    }

    /// Loads a script under the digest of another one, whose calls it gets from now on.
    package func load(_ body: String, as script: RedisScript) {
        let digest = Hex.digits(of: Digest.sha1(Array(script.body.utf8)))
        if let failure = engine.load(Array(body.utf8), digest) { preconditionFailure(failure.sentence) }
        loaded.insert(digest)
    }

    /// The process ends, and another one takes its place, which knows no script.
    /// - Parameters:
    ///   - process: `run_id` of the new one.
    ///   - memory: of the new one: empty after a restart, an earlier copy where a replica takes over.
    package func lose(process: String, keeping memory: RedisMemory = RedisMemory()) {
        self.process = process
        self.memory = memory
        loaded = []
    }
}

/// The number that an argument or a value spells.
func integer(_ word: [UInt8]) -> Int64? { Int64(String(decoding: word, as: UTF8.self)) }
