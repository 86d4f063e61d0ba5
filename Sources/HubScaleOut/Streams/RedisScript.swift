internal import HubCrypto

/// A Lua script that Redis carries out as one step.
package struct RedisScript: Sendable {
    /// The text of the script.
    package let body: String
    private let digest: [UInt8]

    init(_ body: String) {
        self.body = body
        digest = Array(Hex.encode(Digest.sha1(Array(body.utf8))).utf8)
    }

    /// A call of the script, which the link's greeting has loaded.
    package func call(keys: [String], _ arguments: [[UInt8]]) -> RedisCommand {
        RedisCommand("EVALSHA", [digest, Array(String(keys.count).utf8)] + keys.map { Array($0.utf8) } + arguments)
    }

    /// The command that loads the script.
    package var load: RedisCommand { RedisCommand("SCRIPT LOAD", texts: [body]) }
}

/// First words of the errors that scripts answer with.
package enum ScriptRefusal {
    /// Redis' memory was lost since the link was greeted.
    package static let epoch = "TANDEMEPOCH"
    /// A later link of the node is open, or the node was declared dead.
    package static let link = "TANDEMLINK"
    /// The node was declared dead, and everything of it is gone.
    package static let dead = "TANDEMDEAD"
    /// Nodes with another database use the prefix.
    package static let database = "TANDEMDATABASE"
    /// A living node has no version of messages in common with this one. The rest of the error is that node's versions.
    package static let version = "TANDEMVERSION"
}
