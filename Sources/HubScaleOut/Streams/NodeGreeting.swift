internal import HubCore
internal import HubCrypto

/// Result of a connection's first calls: the epoch of Redis' memory, and the number of a link that writes.
package struct NodeGreeting: Sendable {
    package let keys: ScaleOutKeys
    let node: UInt64
    /// Counts the node's links of this epoch; calls of older ones are refused. 0: a link that only reads.
    let link: Int64

    /// Milliseconds after a node's last beat for which other builds have to have a version of messages in common with it.
    static let versionMilliseconds = 5_000

    /// - Parameter reply: to `call`.
    /// - Throws: `RedisFailure.notRedis` for an answer of another shape, and the refusal of a node that was declared dead.
    package init(_ reply: RedisReply, prefix: String, node: UInt64) throws(RedisFailure) {
        let reply = try reply.value()
        guard let epoch = reply.array?.first?.text, let link = reply.array?.last?.integer else { throw .notRedis("it has no epoch") }
        keys = ScaleOutKeys(prefix: prefix, epoch: epoch)
        (self.node, self.link) = (node, link)
    }

    /// First arguments of every script that writes.
    var credentials: [[UInt8]] { [keys.epoch, String(node), String(link)].map { Array($0.utf8) } }

    /// A call of a script about members and nodes.
    func call(_ script: RedisScript, _ words: [[UInt8]]) -> RedisCommand {
        script.call(keys: [keys.epochKey, keys.nodes, keys.base, keys.events, keys.databaseKey], credentials + words)
    }

    /// The call that a greeting ends with.
    /// - Parameters:
    ///   - process: id of Redis' process.
    ///   - candidate: word that names the memory, if it is a new one.
    ///   - writes: as of `greet`.
    package static func call(
        process: String, candidate: String, prefix: String, database: String, node: UInt64, writes: Bool
    ) -> RedisCommand {
        let words = [process, candidate, prefix, String(node), database].map { Array($0.utf8) }
        let script = writes ? ScaleOutScripts.open : ScaleOutScripts.hello
        return script.call(keys: [ScaleOutKeys.epochKey(prefix), ScaleOutKeys.databaseKey(prefix)], words)
    }

    /// Greets a server.
    /// - Parameters:
    ///   - database: identity of the database that the nodes share; empty: not compared.
    ///   - writes: whether the link gets a number, with which all older links of the node are over.
    /// - Throws: `RedisFailure.unfit` when the server cannot be the backplane, or is that of other nodes.
    static func greet(
        _ greeter: RedisGreeter, prefix: String, database: String, node: UInt64, writes: Bool
    ) throws(RedisFailure) -> NodeGreeting {
        // Two round trips: over a slow link the first call has to be in time as well.
        let scripts = writes ? ScaleOutScripts.all : [ScaleOutScripts.hello]
        let replies = try greeter.run(ServerFacts.questions + scripts.map(\.load))
        let server = ServerFacts(replies.prefix(ServerFacts.questions.count))
        if let problem = server.problem { throw .unfit(problem) }
        let candidate = Hex.encode(SecureRandom.bytes(8))
        do throws(RedisFailure) {
            let reply = try greeter.run([
                call(process: server.process, candidate: candidate, prefix: prefix, database: database, node: node, writes: writes)
            ])[0]
            return try NodeGreeting(reply, prefix: prefix, node: node)
        } catch .refused(ScriptRefusal.database, _) {
            throw .unfit(Self.otherDatabase(prefix))
        }
    }

    /// The mistake of nodes with another database under one prefix, as the end of a sentence about Redis.
    static func otherDatabase(_ prefix: String) -> String {
        "already joins hubs of another database under the prefix '\(prefix)'; give these hubs a prefix of their own "
            + "(redis://HOST/?prefix=NAME), or, if all of them have moved to this database, wait a minute after the last one stopped"
    }

    /// The mistake of a build that skips one, as the end of a sentence about Redis.
    /// - Parameter theirs: versions of messages that a living node reads.
    static func otherVersions(_ theirs: String, _ own: MessageVersions, _ prefix: String) -> String {
        "joins hubs under the prefix '\(prefix)' whose messages have the versions \(theirs), and this Tandem reads \(own); "
            + "upgrade through the releases between, one at a time, or stop all hubs and wait five seconds"
    }
}
