/// Summary of a participant's connections.
package struct ParticipantPresence: Sendable, Equatable {
    /// Connections subscribed to the session's channel.
    package var connections: Int
    package var state: AppState

    package init(connections: Int, state: AppState) {
        self.connections = connections
        self.state = state
    }
}
