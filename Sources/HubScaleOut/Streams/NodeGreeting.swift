internal import HubCore
internal import HubCrypto

/// Result of a connection's first calls: the epoch of Redis' memory, and the number of a link that writes.
struct NodeGreeting: Sendable {
    let keys: ScaleOutKeys
    let node: UInt64
    /// Counts the node's links of this epoch; calls of older ones are refused. 0: a link that only reads.
    let link: Int64

    /// Milliseconds after a node's last beat for which other builds have to have a version of messages in common with it.
    static let versionMilliseconds = 5_000

    /// First arguments of every script that writes.
    var credentials: [[UInt8]] { [keys.epoch, String(node), String(link)].map { Array($0.utf8) } }

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
        let words = [server.process, Hex.encode(SecureRandom.bytes(8)), prefix, String(node), database].map { Array($0.utf8) }
        let script = writes ? ScaleOutScripts.open : ScaleOutScripts.hello
        let reply: RedisReply
        do throws(RedisFailure) {
            reply = try greeter.run([
                script.call(keys: [ScaleOutKeys.epochKey(prefix), ScaleOutKeys.databaseKey(prefix)], words)
            ])[0]
        } catch .refused(ScriptRefusal.database, _) {
            throw .unfit(Self.otherDatabase(prefix))
        }
        guard let epoch = reply.array?.first?.text, let link = reply.array?.last?.integer else { throw .notRedis("it has no epoch") }
        let keys = ScaleOutKeys(prefix: prefix, epoch: epoch)
        return NodeGreeting(keys: keys, node: node, link: link)
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
