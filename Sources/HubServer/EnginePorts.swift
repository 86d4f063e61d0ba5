internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubTransport

/// A message to a loop.
enum LoopMessage: Sendable {
    case engine(EngineMessage)
    case respond(HTTPReply, HTTPResponse)
    /// Read the waiting bytes of all sockets and report to delivery; then answer with the number of newcomers that wait to be let in.
    case report(@Sendable (_ newcomers: Int) -> Void)
    /// Close at most so many connections, so that their clients connect again.
    case drain(count: Int)
    /// Hand over a copy of all numbers, for metrics.
    case measure(@Sendable (LoopReading) -> Void)
}

/// The mailboxes of all loops, by index. Callable from any thread.
final class EnginePorts: AnswerPort {
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
    func answer(_ reply: HTTPReply, _ response: HTTPResponse) { post(.respond(reply, response), to: reply.loop) }
}
