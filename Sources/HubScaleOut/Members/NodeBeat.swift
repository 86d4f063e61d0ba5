package import HubCore

/// A node's sign of life at one Redis: the answer tells of the other nodes. With it go the calls that follow from what it tells.
package struct NodeBeat: Sendable, Equatable {
    /// Milliseconds from a dead node's last beat until its members are told removed, and further ones in large channels.
    static let removedAfter = 4_500
    static let removedLater = 3_000
    /// Members or channels that one call removes or tells of.
    package static let pieceMax = 1_000

    /// Beats by node, this one's included.
    package let beats: [UInt64: Int64]
    /// Members, counts and early ones that wait for their time.
    package let waiting: Int
    /// Dead nodes that are not swept.
    package let sweeping: [UInt64]
    /// Other nodes whose last probe counts.
    package let othersSeen: Int64
    /// The highest version that all nodes with a beat read.
    package let common: UInt8
    /// The same without this node; 0: there is no other.
    package let othersRead: Int64
    /// Things on the board of the nodes.
    package let onBoard: Int64

    /// - Throws: `RedisFailure.notRedis` for an answer of another shape.
    package init(_ reply: RedisReply) throws(RedisFailure) {
        guard let parts = reply.array, parts.count == 7, let words = parts[0].array, let sweeping = parts[2].array,
            let common = parts[4].integer.flatMap({ UInt8(exactly: $0) }), let othersRead = parts[5].integer
        else {
            throw .notRedis("a beat answers in another shape")
        }
        var beats: [UInt64: Int64] = [:]
        for place in stride(from: 0, to: words.count - 1, by: 2) {
            if let node = words[place].text.flatMap(UInt64.init), let beat = words[place + 1].integer { beats[node] = beat }
        }
        self.beats = beats
        self.sweeping = sweeping.compactMap { $0.text.flatMap(UInt64.init) }
        (self.common, self.othersRead) = (common, othersRead)
        waiting = Int(clamping: parts[1].integer ?? 0)
        (othersSeen, onBoard) = (parts[3].integer ?? 0, parts[6].integer ?? 0)
    }

    /// The beat.
    /// - Parameters:
    ///   - database: identity of the database; empty: not compared.
    ///   - facts: of the node, about itself; empty: none.
    ///   - sinceProbe: milliseconds since something of the node's own came back; nil: nothing has.
    ///   - blindAfter: milliseconds for which a probe counts.
    package static func call(
        _ greeting: NodeGreeting, database: String, facts: [UInt8], sinceProbe: Int64?, blindAfter: Int64, versions: MessageVersions
    ) -> RedisCommand {
        let numbers = ["\(blindAfter)", "\(versions.lowest)", "\(versions.highest)"]
        let words = [Array(database.utf8), facts, Array((sinceProbe.map { "\($0)" } ?? "").utf8)] + numbers.map { Array($0.utf8) }
        return greeting.call(MemberScripts.beat, words)
    }

    /// Declares a node dead, unless its beat has moved. Answers 1 if it did.
    /// - Parameter beat: its last one; nil: it has never beaten in this memory.
    package static func declareDead(_ node: UInt64, beat: Int64?, _ greeting: NodeGreeting) -> RedisCommand {
        greeting.call(MemberScripts.declareDead, ["\(node)", beat.map { "\($0)" } ?? ""].map { Array($0.utf8) })
    }

    /// The last word of a node that stops: it declares itself dead.
    package static func end(_ greeting: NodeGreeting) -> RedisCommand { declareDead(greeting.node, beat: nil, greeting) }

    /// Removes a piece of what a dead node left. Answers 1 if more can be done now.
    package static func sweep(_ node: UInt64, _ greeting: NodeGreeting) -> RedisCommand {
        greeting.call(MemberScripts.sweep, ["\(node)", "\(pieceMax)", "\(removedAfter)", "\(removedLater)"].map { Array($0.utf8) })
    }

    /// Tells of members and counts whose time has come. Answers how many members there were.
    package static func settle(_ greeting: NodeGreeting) -> RedisCommand {
        greeting.call(MemberScripts.settle, [Array("\(pieceMax)".utf8)])
    }
}
