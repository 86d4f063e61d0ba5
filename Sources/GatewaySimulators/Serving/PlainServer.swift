package import HubCore

/// A small HTTP/1.1 server on one address: one thread, and the bounds of the simulators. For pages beside them.
///
/// Any thread. `stop()` ends it, as does releasing the last reference.
package final class PlainServer: Sendable {
    /// The port, chosen by the system if 0 was asked for.
    package var port: UInt16 { thread.port }
    private let thread: ServerThread

    /// Listens, and serves from now on.
    /// - Parameters:
    ///   - purpose: for errors: the port's purpose and the option that changes it.
    ///   - answer: runs on the server's thread, one request after the other, so it must be quick.
    package init(
        host: String, port: UInt16, purpose: String, answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse
    ) throws(GatewayError) {
        thread = try ServerThread(host: host, port: port, name: purpose) { listener, door in
            ServerLoop(listener: listener, door: door, service: Service(answer: answer)) { number, descriptor, now in
                Connection(number: number, descriptor: descriptor, transport: .plain, now: now) { _ in HTTP1Session(connection: number) }
            }.run()
        }
    }

    deinit { stop() }

    /// Ends every connection and the thread. On return the port is free. Idempotent.
    package func stop() { thread.stop() }

    private final class Service: GatewayService {
        private let answer: @Sendable (HTTPRequest) -> HTTPResponse

        init(answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) { self.answer = answer }

        func reply(to request: ReceivedRequest, from peer: PeerState) -> Reply {
            guard request.body.count == request.bodyBytes else { return .respond(.error(413, "the body is too large")) }
            return .respond(
                answer(
                    HTTPRequest(
                        method: request.method, path: "/" + request.pathSegments.joined(separator: "/"), query: request.query,
                        headers: Dictionary(request.headers) { first, _ in first }, body: request.body)))
        }
    }
}
