/// How a kind of server is spoken to: all that a comparison of servers needs of the protocol.
///
/// Events are recognised on arrival by a mark in their data (`EventMark`), whatever stands around it; so receiving, the part that has
/// to be fast, is the same for every server, and a dialect is asked only while connecting and publishing.
package protocol Dialect: Sendable {
    /// As in `--dialect` and in reports.
    var name: String { get }
    /// Path and query of the WebSocket upgrade for a connection that will subscribe to `channel`.
    func path(channel: String) -> String
    /// The sub-protocol to offer; nil: none.
    var subprotocol: String? { get }
    /// Messages of the client are binary frames instead of text.
    var isBinary: Bool { get }
    /// The server puts several events into one message when they go out together.
    var joinsEvents: Bool { get }
    /// What is said after the upgrade until events arrive, in order; empty where the upgrade itself subscribes.
    func opening(channel: String) -> [OpeningStep]
    /// The same for a connection that publishes by `PublishAction.webSocket`; as `opening` unless a dialect says otherwise.
    func publisherOpening(channel: String) -> [OpeningStep]
    /// How one event goes out. `data` is a JSON object's text that holds the mark.
    func publish(channel: String, data: String) -> PublishAction
}

extension Dialect {
    package var joinsEvents: Bool { false }
    package func publisherOpening(channel: String) -> [OpeningStep] { opening(channel: channel) }
}

/// Waits for a message that contains `awaited` (nil: does not wait), then sends what `reply` makes of it (nil: nothing).
package struct OpeningStep: Sendable {
    package var awaited: String?
    /// Gets the whole awaited message, or an empty one.
    package var reply: (@Sendable (String) -> String)?

    package init(awaiting awaited: String?, reply: (@Sendable (String) -> String)? = nil) {
        self.awaited = awaited
        self.reply = reply
    }
}

/// One publish as bytes on a connection of its own, which is kept open for the next.
package enum PublishAction: Sendable {
    /// A whole HTTP/1.1 request; its answer's status tells whether it was taken.
    case http([UInt8])
    /// A message on a WebSocket that went through `opening`; there is no answer.
    case webSocket(String)
}
