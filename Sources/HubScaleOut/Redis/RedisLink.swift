internal import Dispatch
internal import HubCore
internal import Synchronization

/// One connection to Redis with a thread of its own, made when it is needed, and made again when it was lost. Any thread.
///
/// Calls that wait together travel together, in order. While Redis does not answer, calls fail at once, and one of them tries again every
/// 250 ms. `Greeting` is what the connection's beginning told, and what commands are made with.
package final class RedisLink<Greeting: Sendable>: Sendable {
    /// Commands, made once it is known on which connection they travel, with the taker of their replies.
    private struct Call: Sendable {
        let make: @Sendable (Greeting) -> [RedisCommand]
        let done: @Sendable (Result<[RedisReply], RedisFailure>) -> Void
    }

    private struct State {
        var open: (connection: RedisConnection, greeting: Greeting)?
        var nextTryAt: ContinuousClock.Instant?
        var failure: RedisFailure?
    }

    private let locate: @Sendable (ContinuousClock.Instant) throws(RedisFailure) -> (RedisAddress.Host, RedisAddress)
    private let greet: @Sendable (RedisGreeter) throws(RedisFailure) -> Greeting
    private let queue: DispatchQueue
    private let mailbox: Mailbox<Call>
    /// Used on `queue` only; the lock is never waited for.
    private let state = Mutex(State())
    private let connections = Atomic(0)

    /// - Parameters:
    ///   - locate: finds the server anew for each connection.
    ///   - greet: runs first on each new connection.
    package init(
        name: String, locate: @escaping @Sendable (ContinuousClock.Instant) throws(RedisFailure) -> (RedisAddress.Host, RedisAddress),
        greet: @escaping @Sendable (RedisGreeter) throws(RedisFailure) -> Greeting
    ) {
        self.locate = locate
        self.greet = greet
        let queue = DispatchQueue(label: "tandem.redis.\(name)")
        self.queue = queue
        let work = LinkWork()
        mailbox = Mailbox { queue.async { work.run?() } }
        queue.sync { work.run = { [weak self] in self?.workOff() } }
    }

    /// Connections made so far.
    package var connectionCount: Int { connections.load(ordering: .relaxed) }

    /// Sends commands; `done` gets a reply for each, errors included, on the link's thread.
    /// - Parameters:
    ///   - make: makes the commands, on the link's thread. It must be short, as `done`.
    package func send(
        _ make: @escaping @Sendable (Greeting) -> [RedisCommand], _ done: @escaping @Sendable (Result<[RedisReply], RedisFailure>) -> Void
    ) {
        if !mailbox.offer(Call(make: make, done: done), limit: RedisLinkLimits.waitingMax).isTaken {
            done(.failure(.lost("too many calls wait for it")))
        }
    }

    /// Sends commands and waits for their replies.
    /// - Returns: a reply for each command.
    /// - Throws: the first error among the replies, too.
    package func run(_ make: @escaping @Sendable (Greeting) -> [RedisCommand]) async throws(RedisFailure) -> [RedisReply] {
        let result = await withCheckedContinuation { continuation in send(make) { continuation.resume(returning: $0) } }
        let replies = try result.get()
        for reply in replies { _ = try reply.value() }
        return replies
    }

    /// Greets anew before the next call.
    package func renew() { queue.async { self.state.withLock { $0.open = nil } } }

    /// Ends the connection, after all calls before, and takes no more.
    package func close() async {
        mailbox.close()
        await withCheckedContinuation { continuation in
            queue.async {
                self.workOff()
                self.state.withLock { $0.open = nil }
                continuation.resume()
            }
        }
    }

    private func workOff() {
        var calls: [Call] = []
        mailbox.drain(into: &calls)
        if calls.isEmpty { return }
        var counts: [Int] = []
        let result = Result { () throws(RedisFailure) in
            try replies { greeting in
                calls.flatMap { call in
                    let commands = call.make(greeting)
                    counts.append(commands.count)
                    return commands
                }
            }
        }
        switch result {
        case .failure(let failure): for call in calls { call.done(.failure(failure)) }
        case .success(let replies):
            var rest = replies[...]
            for (call, count) in zip(calls, counts) {
                call.done(.success(Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
        }
    }

    private func replies(_ make: (Greeting) -> [RedisCommand]) throws(RedisFailure) -> [RedisReply] {
        try state.withLock { state throws(RedisFailure) in
            let (now, deadline) = (ContinuousClock.now, ContinuousClock.now + RedisLinkLimits.callMax)
            if let next = state.nextTryAt, now < next, let failure = state.failure { throw failure }
            do throws(RedisFailure) {
                if state.open?.connection.isIdle == false { state.open = nil }
                if state.open == nil {
                    let (host, address) = try locate(deadline)
                    let connection = try RedisConnection(host, address, deadline: deadline)
                    state.open = (connection, try greet(RedisGreeter(connection, deadline)))
                    connections.add(1, ordering: .relaxed)
                }
                guard let (connection, greeting) = state.open else { preconditionFailure("a link has made its connection") }
                let replies = try connection.run(make(greeting), deadline: deadline)
                (state.nextTryAt, state.failure) = (nil, nil)
                // Such a connection was greeted by a server, or in a time, that is over.
                if replies.contains(where: \.endsGreeting) { state.open = nil }
                return replies
            } catch {
                (state.open, state.nextTryAt, state.failure) = (nil, .now + RedisLinkLimits.retryEvery, error)
                throw error
            }
        }
    }
}

/// Bounds of every link.
package enum RedisLinkLimits {
    /// Time for a batch of calls, the connecting included.
    package static let callMax: Duration = .milliseconds(900)
    /// Time between two tries to connect.
    package static let retryEvery: Duration = .milliseconds(250)
    /// Calls that may wait.
    package static let waitingMax = 65_536
}

/// Set once on the link's queue, before the first post.
private final class LinkWork: @unchecked Sendable {
    // Guard: written and read on the link's queue only.
    var run: (() -> Void)?
}

extension RedisReply {
    /// Whether the next calls need a new greeting: scripts are gone, the server takes no writes any more, or the greeting is outdated.
    fileprivate var endsGreeting: Bool {
        guard case .error(.refused(let code, _)) = self else { return false }
        return ["NOSCRIPT", "READONLY", "LOADING", "MASTERDOWN", ScriptRefusal.epoch, ScriptRefusal.link].contains(code)
    }
}

/// A new connection, as a greeting sees it. Valid only inside the greeting.
package final class RedisGreeter {
    private let connection: RedisConnection
    private let deadline: ContinuousClock.Instant

    init(_ connection: RedisConnection, _ deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.deadline = deadline
    }

    /// A reply for each command.
    /// - Throws: the first error among the replies, too.
    package func run(_ commands: [RedisCommand]) throws(RedisFailure) -> [RedisReply] {
        let replies = try connection.run(commands, deadline: deadline)
        for reply in replies { _ = try reply.value() }
        return replies
    }
}

@available(*, unavailable)
extension RedisGreeter: Sendable {}
