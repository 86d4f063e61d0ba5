/// The protocol of one kind of server, as far as a comparison of servers needs it.
///
/// A mark in an event's data (`EventMark`) identifies the event on arrival, whatever surrounds it. Receiving, which has to be fast, is
/// therefore the same for every server. A dialect is used only while connecting and publishing.
package protocol Dialect: Sendable {
    /// Name in `--dialect` and in reports.
    var name: String { get }
    /// Path and query of the WebSocket upgrade for a connection that will subscribe to `channel`.
    func path(channel: String) -> String
    /// The sub-protocol to offer; nil: none.
    var subprotocol: String? { get }
    /// Whether the client sends binary frames instead of text.
    var isBinary: Bool { get }
    /// Whether the server may join several events into one message.
    var joinsEvents: Bool { get }
    /// Steps after the upgrade until events arrive, in order; empty if the upgrade itself subscribes.
    func opening(channel: String) -> [OpeningStep]
    /// The steps for a connection that publishes by `PublishAction.webSocket`; `opening` by default.
    func publisherOpening(channel: String) -> [OpeningStep]
    /// The same towards another node, whose address a publish names.
    func towards(_ target: Target) -> any Dialect
    /// Encodes one publish. `data` is the text of a JSON object that contains the mark.
    func publish(channel: String, data: String) -> PublishAction
}

extension Dialect {
    package var joinsEvents: Bool { false }
    package func towards(_ target: Target) -> any Dialect { self }
    package func publisherOpening(channel: String) -> [OpeningStep] { opening(channel: channel) }

    /// Whether a publish is a request with an answer.
    var answersPublishes: Bool { if case .http = publish(channel: "channel", data: "{}") { true } else { false } }
}

/// Waits for a message that contains `awaited` (nil: does not wait), then sends the result of `reply` (nil: nothing).
package struct OpeningStep: Sendable {
    package var awaited: String?
    /// Takes the whole awaited message, or an empty one.
    package var reply: (@Sendable (String) -> String)?

    package init(awaiting awaited: String?, reply: (@Sendable (String) -> String)? = nil) {
        self.awaited = awaited
        self.reply = reply
    }
}

/// One publish as bytes for a publishing connection, which stays open for the next.
package enum PublishAction: Sendable {
    /// A whole HTTP/1.1 request; the answer's status tells whether the server accepted it.
    case http([UInt8])
    /// A message on a WebSocket after its `opening`; it has no answer.
    case webSocket(String)
}
