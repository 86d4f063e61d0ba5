internal import HubCore

/// Things that nodes leave for each other in Redis: live tails' listeners and facts, the console's numbers, and sessions that were
/// signed out.
///
/// The stream carries none of it. Everything goes over the connection for questions, so it keeps no event waiting.
///
/// Keys, after the epoch:
/// - `live`, a hash, has what each listener wants, with a number that its node counts on;
/// - `live:LISTENER`, a list, has what other nodes noted for the listener, until its node takes it;
/// - `numbers-wanted` is there while somebody looks at the numbers of all nodes;
/// - `numbers`, a hash, has these by the nodes' names;
/// - `signed-out`, a sorted set, has the sessions that are over, by the time at which they would have expired.
package struct NodeBoard: Sendable {
    private let link: RedisLink<NodeGreeting>

    /// Pieces that wait for one listener. If exceeded, the oldest are dropped.
    static let piecesMax = 64
    /// Seconds after which pieces that nobody takes are gone, and everything else whose nodes are.
    private static let pieceSeconds = 10
    private static let lifeSeconds = 60
    /// Seconds without a sign-out after which all are forgotten: longer than a session lasts.
    private static let sessionLifeSeconds = 86_400
    /// Sessions that are remembered. If exceeded, those that expire first are forgotten.
    package static let sessionsMax = 1_000

    init(_ link: RedisLink<NodeGreeting>) { self.link = link }

    /// Keys that are there while somebody listens, looks at numbers or was signed out lately, as far as the nodes have told. The answer to
    /// each beat says whether one of them is (`RedisNode.hasBoard`).
    static let names = ["live", "numbers-wanted", "signed-out"]

    // MARK: Live tails

    /// Tells who listens here, and who listens no more.
    /// - Returns: what the listeners of all nodes want.
    package func listeners(own: [String: [UInt8]], gone: [String]) async throws(RedisFailure) -> [String: [UInt8]] {
        let replies = try await link.run { greeting in
            let key = Array((greeting.keys.base + "live").utf8)
            var commands: [RedisCommand] = []
            if !gone.isEmpty { commands.append(RedisCommand("HDEL", [key] + gone.map { Array($0.utf8) })) }
            if !own.isEmpty {
                commands.append(RedisCommand("HSET", [key] + own.flatMap { [Array($0.key.utf8), $0.value] }))
                commands.append(RedisCommand("EXPIRE", [key, Array("\(Self.lifeSeconds)".utf8)]))
            }
            return commands + [RedisCommand("HGETALL", [key])]
        }
        guard let words = replies.last?.array else { throw Self.shape }
        return stride(from: 0, to: words.count - 1, by: 2).reduce(into: [:]) { found, place in
            if let name = words[place].text, let wanted = words[place + 1].bytes { found[name] = wanted }
        }
    }

    /// Leaves a piece for each of these listeners of other nodes.
    package func put(_ pieces: [String: [UInt8]]) async throws(RedisFailure) {
        if pieces.isEmpty { return }
        _ = try await link.run { greeting in
            pieces.flatMap { listener, piece in
                let key = Array("\(greeting.keys.base)live:\(listener)".utf8)
                return [
                    RedisCommand("RPUSH", [key, piece]), RedisCommand("LTRIM", [key, Array("-\(Self.piecesMax)".utf8), Array("-1".utf8)]),
                    RedisCommand("EXPIRE", [key, Array("\(Self.pieceSeconds)".utf8)]),
                ]
            }
        }
    }

    /// Takes what other nodes have left for these listeners.
    package func take(_ listeners: [String]) async throws(RedisFailure) -> [String: [[UInt8]]] {
        if listeners.isEmpty { return [:] }
        let replies = try await link.run { greeting in
            listeners.map { RedisCommand("LPOP", texts: ["\(greeting.keys.base)live:\($0)", "\(Self.piecesMax)"]) }
        }
        var taken: [String: [[UInt8]]] = [:]
        for (listener, reply) in zip(listeners, replies) { taken[listener] = (reply.array ?? []).compactMap(\.bytes) }
        return taken
    }

    // MARK: Numbers

    /// Milliseconds for which numbers, and the wish for them, stand.
    private static let numbersMilliseconds = 6_000

    /// Leaves a node's numbers, and takes those of all nodes.
    /// - Parameters:
    ///   - node: the node's name.
    ///   - own: its numbers; nil: nobody looks.
    ///   - isWanted: whether somebody looks at this node.
    /// - Returns: whether somebody looks at any node, and the numbers by the nodes' names if somebody looks here. Nodes among them may be
    ///   gone.
    package func numbers(
        of node: String, _ own: [UInt8]?, isWanted: Bool
    ) async throws(RedisFailure) -> (isWanted: Bool, all: [String: [UInt8]]) {
        let replies = try await link.run { greeting in
            let (numbers, wanted) = (greeting.keys.base + "numbers", greeting.keys.base + "numbers-wanted")
            let life = "\(Self.numbersMilliseconds)"
            var commands = [RedisCommand("EXISTS", texts: [wanted])]
            if isWanted {
                commands = [RedisCommand("SET", texts: [wanted, "1", "PX", life]), RedisCommand("HGETALL", texts: [numbers])] + commands
            }
            if let own {
                commands.append(RedisCommand("HSET", [Array(numbers.utf8), Array(node.utf8), own]))
                commands.append(RedisCommand("PEXPIRE", texts: [numbers, life]))
            }
            return commands
        }
        let words = isWanted ? replies.dropFirst().first?.array ?? [] : []
        var all: [String: [UInt8]] = [:]
        for place in stride(from: 0, to: words.count - 1, by: 2) {
            if let name = words[place].text, let numbers = words[place + 1].bytes { all[name] = numbers }
        }
        return (replies.dropFirst(isWanted ? 2 : 0).first?.integer == 1, all)
    }

    // MARK: Sessions of the console

    /// Adds sessions that were signed out, and forgets those that have expired.
    /// - Parameters:
    ///   - sessions: with the seconds since 1970 at which they would have expired.
    ///   - now: seconds since 1970.
    /// - Returns: the sessions that any node has signed out.
    package func signedOut(_ sessions: [String: Int64], now: Int64) async throws(RedisFailure) -> [String] {
        let replies = try await link.run { greeting in
            let key = greeting.keys.base + "signed-out"
            var commands: [RedisCommand] = []
            if !sessions.isEmpty {
                commands.append(RedisCommand("ZADD", texts: [key] + sessions.flatMap { ["\($0.value)", $0.key] }))
                commands.append(RedisCommand("ZREMRANGEBYRANK", texts: [key, "0", "-\(Self.sessionsMax + 1)"]))
                commands.append(RedisCommand("EXPIRE", texts: [key, "\(Self.sessionLifeSeconds)"]))
            }
            commands.append(RedisCommand("ZREMRANGEBYSCORE", texts: [key, "-inf", "\(now)"]))
            return commands + [RedisCommand("ZRANGE", texts: [key, "0", "-1"])]
        }
        guard let words = replies.last?.array else { throw Self.shape }
        return words.compactMap(\.text)
    }

    private static let shape = RedisFailure.notRedis("a question about the board is answered in another shape")
}
