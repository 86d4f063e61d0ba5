internal import HubCrypto

/// Result of a connection's first calls: the epoch of Redis' memory, and the number of a link that writes.
struct NodeGreeting: Sendable {
    let keys: ScaleOutKeys
    let node: UInt64
    /// Counts the node's links of this epoch; calls of older ones are refused. 0: a link that only reads.
    let link: Int64

    /// First arguments of every script that writes.
    var credentials: [[UInt8]] { [keys.epoch, String(node), String(link)].map { Array($0.utf8) } }

    /// Greets a server.
    /// - Parameter writes: whether the link gets a number, with which all older links of the node are over.
    /// - Throws: `RedisFailure.refused` with a sentence when the server is unfit.
    static func greet(_ greeter: RedisGreeter, prefix: String, node: UInt64, writes: Bool) throws(RedisFailure) -> NodeGreeting {
        // Two round trips: over a slow link the first call has to be in time as well.
        let scripts = writes ? ScaleOutScripts.all : [ScaleOutScripts.hello]
        let replies = try greeter.run(ServerFacts.questions + scripts.map(\.load))
        let server = ServerFacts(replies.prefix(ServerFacts.questions.count))
        if let problem = server.problem { throw .refused(code: "TANDEM", message: problem) }
        let words = [server.process, Hex.encode(SecureRandom.bytes(8)), prefix, String(node)].map { Array($0.utf8) }
        let script = writes ? ScaleOutScripts.open : ScaleOutScripts.hello
        let reply = try greeter.run([script.call(keys: [ScaleOutKeys.epochKey(prefix)], words)])[0]
        guard let epoch = reply.array?.first?.text, let link = reply.array?.last?.integer else { throw .notRedis("it has no epoch") }
        let keys = ScaleOutKeys(prefix: prefix, epoch: epoch)
        return NodeGreeting(keys: keys, node: node, link: link)
    }
}

/// Facts about a server, from `INFO`.
struct ServerFacts: Sendable {
    private var facts: [Substring: Substring] = [:]

    /// Commands whose replies tell them.
    static let questions = ["server", "memory", "replication", "cluster"].map { RedisCommand("INFO", texts: [$0]) }

    /// - Parameter replies: to the questions.
    init(_ replies: some Collection<RedisReply>) { self.init(replies.compactMap(\.text).joined(separator: "\n")) }

    /// - Parameter text: as `INFO` answers.
    init(_ text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2 { facts[pair[0]] = pair[1] }
        }
    }

    /// Distinguishes this run of the server from all others.
    var process: String { facts["run_id"].map(String.init) ?? "" }
    var version: String { facts["redis_version"].map(String.init) ?? "" }

    /// Why the server cannot be the backplane, with what to do; nil: it can.
    var problem: String? {
        guard let major = version.split(separator: ".").first.flatMap({ Int($0) }) else {
            return "does not tell its version; the backplane needs Redis 7.0 or later"
        }
        if major < 7 { return "is version \(version); the backplane needs Redis 7.0 or later" }
        if process.isEmpty { return "does not tell its run_id; the backplane needs INFO" }
        if let policy = facts["maxmemory_policy"], policy != "noeviction" {
            return "drops keys when its memory is full (maxmemory-policy \(policy)); set maxmemory-policy noeviction"
        }
        if facts["role"] == "slave" { return "is a replica, which takes no writes; name the master, or the sentinels with ?sentinel=NAME" }
        if facts["cluster_enabled"] == "1" { return "is part of a Redis Cluster; use servers of their own, or sentinels" }
        return nil
    }
}
