internal import HubChannels
internal import HubCore
internal import HubTransport

/// What reaches a loop's engine from outside.
enum LoopMessage: Sendable {
    case engine(EngineMessage)
    case respond(HTTPReply, HTTPResponse)
    /// Read what lies on the sockets and report it to delivery; then say so, with how many newcomers wait to be let in.
    case report(@Sendable (_ newcomers: Int) -> Void)
    /// Say goodbye to at most so many connections.
    case drain(count: Int)
    /// For metrics: hand over a copy of all numbers.
    case measure(@Sendable (LoopReading) -> Void)
}

/// The doors into all loops, by index. Any thread.
final class EnginePorts: Sendable {
    private let mailboxes: [Mailbox<LoopMessage>]

    convenience init(_ handles: [LoopHandle]) {
        self.init(handles.map { Mailbox(waker: $0.waker) })
    }

    init(_ mailboxes: [Mailbox<LoopMessage>]) {
        self.mailboxes = mailboxes
    }

    var count: Int { mailboxes.count }
    func mailbox(_ loop: Int) -> Mailbox<LoopMessage> { mailboxes[loop] }
    func post(_ message: EngineMessage, to loop: Int) { mailboxes[loop].post(.engine(message)) }
    func post(_ message: LoopMessage, to loop: Int) { mailboxes[loop].post(message) }
}
