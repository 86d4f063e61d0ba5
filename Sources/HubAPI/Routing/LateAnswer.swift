package import HubCore

/// Answers a request that is not answered at once. Any thread. Through a port, calls after the first do nothing.
///
/// A value, because a closure would need memory on the heap for each request, and nearly all are answered at once.
package struct LateAnswer: Sendable {
    private enum Way {
        case port(any AnswerPort, HTTPReply)
        case closure(@Sendable (HTTPResponse) -> Void)
    }

    private let way: Way

    /// Answers through a port.
    package init(_ reply: HTTPReply, through port: any AnswerPort) { way = .port(port, reply) }

    /// Answers by a call.
    package init(_ answer: @escaping @Sendable (HTTPResponse) -> Void) { way = .closure(answer) }

    /// Answers with what `change` makes of the response.
    func changed(by change: @escaping @Sendable (HTTPResponse) -> HTTPResponse) -> LateAnswer {
        LateAnswer { self(change($0)) }
    }

    /// Answers the request.
    package func callAsFunction(_ response: HTTPResponse) {
        switch way {
        case .port(let port, let reply): port.answer(reply, response)
        case .closure(let answer): answer(response)
        }
    }
}

/// Takes answers to their loops. Any thread.
package protocol AnswerPort: AnyObject, Sendable {
    /// Answers the request, unless its connection is gone.
    func answer(_ reply: HTTPReply, _ response: HTTPResponse)
}
