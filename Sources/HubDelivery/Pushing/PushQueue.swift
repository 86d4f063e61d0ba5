/// Sends committed pushes. Any thread.
package protocol PushQueue: Sendable {
    /// Takes deliveries that the store holds in the state `due`. A closing server takes none; they are sent after the next start.
    func enqueue(_ deliveries: [PushRecord]) async
}
