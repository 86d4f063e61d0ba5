/// Names of the keys in Redis. All but two contain the epoch, so that nothing of an earlier memory is taken for today's.
package struct ScaleOutKeys: Sendable, Equatable {
    let prefix: String
    /// Value of the key `epoch`: a random word, and the id of the Redis process that it was written to.
    package let epoch: String

    /// - Parameter epoch: value of the key of that name.
    package init(prefix: String, epoch: String) { (self.prefix, self.epoch) = (prefix, epoch) }

    private var word: Substring { epoch.prefix { $0 != " " } }

    static func epochKey(_ prefix: String) -> String { "\(prefix):epoch" }
    var epochKey: String { Self.epochKey(prefix) }
    /// Identity of the database that the nodes share, while some of them live.
    static func databaseKey(_ prefix: String) -> String { "\(prefix):database" }
    var databaseKey: String { Self.databaseKey(prefix) }
    /// Hash of the nodes: the number of each one's newest link.
    var nodes: String { key("nodes") }
    /// Nodes that were declared dead, by time.
    var dead: String { key("dead") }
    /// Hash of the nodes: the last number of each one's entries.
    var numbers: String { key("numbers") }
    /// Stream that all nodes read.
    package var events: String { key("events") }
    /// Stream that one node reads.
    func to(_ node: UInt64) -> String { key("to:\(node)") }
    /// Hash of the nodes: a number that grows while the node lives.
    var beats: String { key("beats") }
    /// Hash of the nodes: versions of messages that each one reads. Nodes whose build tells none are not in it.
    var versions: String { key("versions") }
    /// The nodes by the time of their last beat, in milliseconds of Redis' clock.
    var lastBeats: String { key("last-beats") }
    /// Members that are gone, by the time at which the others are told: app, channel and user.
    var leaving: String { key("leaving") }
    /// First part of the keys that scripts put together, with a colon.
    var base: String { "\(prefix):\(word):" }

    private func key(_ name: String) -> String { "\(prefix):\(word):\(name)" }
}
