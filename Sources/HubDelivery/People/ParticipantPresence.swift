/// Summary of a participant's connections to a channel.
package struct ParticipantPresence: Sendable, Equatable {
    /// One of the connections.
    package struct Socket: Sendable, Equatable {
        /// Name of the node that has it; nil: there is one node.
        package var node: String?
        /// Index of the event loop on its node.
        package var loop: Int
        /// The connection's device; nil if unknown.
        package var device: String?
        package var state: AppState
        /// Milliseconds since its last receipt; nil: none has come since the channel's owner knows the connection.
        package var receiptAge: Int64?

        package init(node: String? = nil, loop: Int, device: String?, state: AppState, receiptAge: Int64?) {
            self.node = node
            self.loop = loop
            self.device = device
            self.state = state
            self.receiptAge = receiptAge
        }
    }

    /// Most connections that are named; of more, the newest are.
    package static let socketsMax = 5

    /// Connections subscribed to the channel.
    package var connections: Int
    package var state: AppState
    /// The newest of the connections first, at most `socketsMax`.
    package var sockets: [Socket]
    /// Recent changes, the oldest first. Only an answer about one person has them.
    package var changes: [PresenceChange]

    package init(connections: Int, state: AppState, sockets: [Socket] = [], changes: [PresenceChange] = []) {
        self.connections = connections
        self.state = state
        self.sockets = sockets
        self.changes = changes
    }
}
