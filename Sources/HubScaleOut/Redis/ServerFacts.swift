/// Facts about a server, from `INFO`.
struct ServerFacts: Sendable {
    private var facts: [Substring: Substring] = [:]

    /// Commands whose replies tell them.
    static let questions = ["server", "memory", "replication", "cluster"].map { RedisCommand("INFO", texts: [$0]) }

    /// - Parameter replies: to the questions.
    init(_ replies: some Collection<RedisReply>) { self.init(replies.compactMap(\.text).joined(separator: "\n")) }

    init(_ greeter: RedisGreeter) throws(RedisFailure) { self.init(try greeter.run(Self.questions)) }

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

    /// Replicas that follow the server.
    var replicas: Int { facts["connected_slaves"].flatMap { Int($0) } ?? 0 }

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
