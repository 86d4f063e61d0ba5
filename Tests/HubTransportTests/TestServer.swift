import Foundation
import Glibc
import HubCore
import HubTesting
import Synchronization

@testable import HubTransport

/// Calls that the delegates of a test's loops got.
enum Seen: Equatable, Sendable {
    case opened(ConnectionID, path: String, origin: String?)
    case text(ConnectionID, [UInt8])
    case binary(ConnectionID, [UInt8])
    case frame(ConnectionID)
    case tooMuch(ConnectionID)
    case silent(ConnectionID)
    case slow(ConnectionID)
    case pong(ConnectionID, [UInt8])
    case closed(ConnectionID)
    case ended(ConnectionID, ConnectionEnd)
    case request(HTTPReply)
}

/// Behaviour of a test's server; the defaults echo text messages and describe requests.
struct Behaviour: Sendable {
    var opened: @Sendable (Loop, ConnectionID, [(name: String, value: String)]) -> Void = { _, _, _ in }
    var text: @Sendable (Loop, ConnectionID, [UInt8]) -> Void = { loop, connection, text in loop.send(Frame.text(text), to: connection) }
    var binary: @Sendable (Loop, ConnectionID, [UInt8]) -> Void = { _, _, _ in }
    var tooMuch: @Sendable (Loop, ConnectionID) -> Void = { $0.close($1, code: 1009, reason: "too big") }
    var silent: @Sendable (Loop, ConnectionID) -> Void = { $0.close($1, code: 4201, reason: "no pong") }
    var closed: @Sendable (Loop, ConnectionID) -> Void = { _, _ in }
    var request: @Sendable (Loop, HTTPRequest, HTTPReply) -> HTTPResponse? = { _, request, _ in .describing(request) }
    var woken: @Sendable () -> Void = {}
    var hasFewWrites: @Sendable (Loop) -> Bool = { _ in false }
    var wroteAhead: @Sendable (Loop) -> Void = { _ in }
    var turnEnded: @Sendable (Loop) -> Void = { _ in }
    var bodyLimit: @Sendable (HTTPRequest) -> BodyLimit = { _ in .bytes(.max) }
    var admits: @Sendable (String) -> Bool = { _ in true }
    var left: @Sendable (String) -> Void = { _ in }
    var upgraded: @Sendable (Loop, ConnectionID, UpgradeRequest) -> Void = { _, _, _ in }
}

extension HTTPResponse {
    /// The request as the transport understood it.
    static func describing(_ request: HTTPRequest) -> HTTPResponse {
        .json([
            "method": .string(request.method), "path": .string(request.path),
            "query": .array(request.query.map { .array([.string($0.name), .string($0.value)]) }),
            "headers": .object(request.headers.mapValues { .string($0) }),
            "body": .string(String(decoding: request.body, as: UTF8.self)),
        ])
    }
}

private final class TestDelegate: LoopDelegate {
    private unowned let loop: Loop
    private let behaviour: Behaviour
    private let seen: Recorder<Seen>
    private let commands: Mailbox<@Sendable (Loop) -> Void>
    private var taken: [@Sendable (Loop) -> Void] = []

    init(loop: Loop, behaviour: Behaviour, seen: Recorder<Seen>, commands: Mailbox<@Sendable (Loop) -> Void>) {
        self.loop = loop
        self.behaviour = behaviour
        self.seen = seen
        self.commands = commands
    }

    func connectionOpened(_ connection: ConnectionID, request: UpgradeRequest) {
        seen.append(.opened(connection, path: request.path, origin: request.origin))
        behaviour.opened(loop, connection, Array(request.query))
        behaviour.upgraded(loop, connection, request)
    }

    func connection(_ connection: ConnectionID, received text: UnsafeRawBufferPointer) {
        seen.append(.text(connection, Array(text)))
        behaviour.text(loop, connection, Array(text))
    }

    func connection(_ connection: ConnectionID, receivedBinary bytes: UnsafeRawBufferPointer) {
        seen.append(.binary(connection, Array(bytes)))
        behaviour.binary(loop, connection, Array(bytes))
    }

    func connectionReceivedFrame(_ connection: ConnectionID) { seen.append(.frame(connection)) }

    func connectionReceivedTooMuch(_ connection: ConnectionID) {
        seen.append(.tooMuch(connection))
        behaviour.tooMuch(loop, connection)
    }

    func connectionIsSilent(_ connection: ConnectionID) {
        seen.append(.silent(connection))
        behaviour.silent(loop, connection)
    }

    func connectionIsSlow(_ connection: ConnectionID) {
        seen.append(.slow(connection))
    }

    func connection(_ connection: ConnectionID, receivedPong payload: UnsafeRawBufferPointer) {
        seen.append(.pong(connection, Array(payload)))
    }

    func connectionClosed(_ connection: ConnectionID, end: ConnectionEnd) {
        behaviour.closed(loop, connection)
        seen.append(.ended(connection, end))
        seen.append(.closed(connection))
    }

    func request(_ request: HTTPRequest, reply: HTTPReply) -> HTTPResponse? {
        seen.append(.request(reply))
        return behaviour.request(loop, request, reply)
    }

    func loopWoken() {
        commands.drain(into: &taken)
        for command in taken { command(loop) }
        behaviour.woken()
    }

    var hasFewWrites: Bool { behaviour.hasFewWrites(loop) }
    func writeAhead() { behaviour.wroteAhead(loop) }
    func loopTurnEnds() { behaviour.turnEnded(loop) }
    func bodyLimit(of head: HTTPRequest) -> BodyLimit { behaviour.bodyLimit(head) }
    func admitsConnection(from address: String) -> Bool { behaviour.admits(address) }
    func connectionLeft(_ address: String) { behaviour.left(address) }
}

/// Loops and an acceptor on a port of 127.0.0.1, driven by closures that run on the loops.
final class TestServer: Sendable {
    let group: LoopGroup
    let acceptor: Acceptor
    let counts = Acceptor.Counts()
    let seen = Recorder<Seen>()
    private let commands: [Mailbox<@Sendable (Loop) -> Void>]

    var port: Int { acceptor.port }

    init(
        loops: Int = 1, options: LoopOptions = LoopOptions(), socket: ListeningSocket? = nil, proxy: ProxyDoor? = nil,
        _ behaviour: Behaviour = Behaviour()
    ) throws {
        group = try LoopGroup(count: loops, options: options)
        commands = group.handles.map { Mailbox(waker: $0.waker) }
        let (commands, seen) = (commands, seen)
        try group.start { loop in
            TestDelegate(loop: loop, behaviour: behaviour, seen: seen, commands: commands[loop.index])
        }
        do {
            acceptor = try Acceptor(
                socket ?? ListeningSocket(host: "127.0.0.1", port: 0), loops: group.handles, quietSeconds: options.requestTimeoutSeconds,
                proxy: proxy, counts: counts)
        } catch {
            group.stop()
            throw error
        }
    }

    func stop() {
        acceptor.stop()
        group.stop()
    }

    /// Runs `body` on a loop's thread and returns what it returned.
    func on<Result: Sendable>(_ loop: Int = 0, _ body: @escaping @Sendable (Loop) -> Result) throws -> Result {
        let results = Recorder<Result>()
        commands[loop].post { results.append(body($0)) }
        guard results.wait({ !$0.isEmpty }), let result = results.all.first else { throw StreamError("loop \(loop) did not answer") }
        return result
    }

    /// Ids of the connections opened so far, in order.
    var opened: [ConnectionID] {
        seen.all.compactMap { if case .opened(let connection, _, _) = $0 { connection } else { nil } }
    }

    func waitOpened(_ count: Int) throws -> [ConnectionID] {
        guard seen.wait({ $0.count { if case .opened = $0 { true } else { false } } >= count }) else {
            throw StreamError("\(opened.count) of \(count) connections opened")
        }
        return opened
    }

    func client(path: String = "/app/key", headers: [String] = []) throws -> TestPeer {
        try TestPeer.upgraded(RawSocket(port: port), path: path, headers: headers)
    }

    func plain() throws -> TestPeer {
        try TestPeer(RawSocket(port: port))
    }
}

/// Starts a server, hands it to `body`, and ends it whatever happens.
func withServer<Result>(
    loops: Int = 1, options: LoopOptions = LoopOptions(), proxy: ProxyDoor? = nil, _ behaviour: Behaviour = Behaviour(),
    _ body: (TestServer) throws -> Result
) throws -> Result {
    let server = try TestServer(loops: loops, options: options, proxy: proxy, behaviour)
    defer { server.stop() }
    return try body(server)
}

/// Waits until `isMet`, asking again and again; false when it is not in `seconds`.
func eventually(seconds: Double = Double(120 * SlowBuild.factor), _ isMet: () throws -> Bool) rethrows -> Bool {
    let end = Date(timeIntervalSinceNow: seconds)
    while Date() < end {
        if try isMet() { return true }
        _ = poll(nil, 0, 2)
    }
    return try isMet()
}
