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
        let server = try ServerFacts(greeter)
        if let problem = server.problem { throw .refused(code: "TANDEM", message: problem) }
        let candidate = Hex.encode(SecureRandom.bytes(8))
        let scripts = writes ? ScaleOutScripts.all : [ScaleOutScripts.hello]
        _ = try greeter.run(scripts.map(\.load))
        let reply = try greeter.run([
            ScaleOutScripts.hello.call(keys: [ScaleOutKeys.epochKey(prefix)], [Array(server.process.utf8), Array(candidate.utf8)])
        ])[0]
        guard let epoch = reply.text else { throw .notRedis("it has no epoch") }
        let keys = ScaleOutKeys(prefix: prefix, epoch: epoch)
        guard writes else { return NodeGreeting(keys: keys, node: node, link: 0) }
        let number = try greeter.run([
            ScaleOutScripts.open.call(
                keys: [keys.epochKey, keys.nodes, keys.dead], [epoch, String(node)].map { Array($0.utf8) })
        ])[0]
        guard let link = number.integer else { throw .notRedis("a link has no number") }
        return NodeGreeting(keys: keys, node: node, link: link)
    }
}

/// Facts about a server, from `INFO`.
struct ServerFacts: Sendable {
    private var facts: [Substring: Substring] = [:]

    init(_ greeter: RedisGreeter) throws(RedisFailure) {
        let replies = try greeter.run(["server", "memory", "replication", "cluster"].map { RedisCommand("INFO", texts: [$0]) })
        self.init(replies.compactMap(\.text).joined(separator: "\n"))
    }

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
