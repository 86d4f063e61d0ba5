import Dispatch
import Glibc
import Synchronization

/// Requests by signal to a running hub. SIGHUP reloads its files. SIGTERM and SIGINT shut it down in order, and at once if repeated.
final class ServerSignals: Sendable {
    enum Request {
        case reload, stop
    }

    private struct State {
        var stopCount = 0
        var wantsReload = false
    }

    private let state = Mutex(State())
    private let wakes: AsyncStream<Void>
    /// Closing a terminal sends SIGHUP as well, which then means shutdown. A process started with `nohup` ignores it.
    private let endsWithTerminal: Bool

    /// Installs the handlers of these signals.
    init() {
        // One buffered wake suffices, because `state` holds the requests.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        wakes = stream
        signal(SIGPIPE, SIG_IGN)
        var former = sigaction()
        unsafe sigaction(SIGHUP, nil, &former)
        let survivesHangup =
            unsafe unsafeBitCast(former.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
        endsWithTerminal = !survivesHangup && Self.hasTerminal
        let queue = DispatchQueue(label: "tandem.signals")
        for number in [SIGTERM, SIGINT, SIGHUP] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                self.received(number)
                continuation.yield()
                // The handler keeps its source alive for the process's lifetime.
                withExtendedLifetime(source) {}
            }
            source.resume()
        }
    }

    private func received(_ number: Int32) {
        let isReload = number == SIGHUP && !(endsWithTerminal && !Self.hasTerminal)
        let isRepeated = state.withLock { state in
            if isReload { state.wantsReload = true } else { state.stopCount += 1 }
            return state.stopCount > 1
        }
        if isRepeated { _exit(1) }
    }

    private static var hasTerminal: Bool {
        let descriptor = unsafe open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }

    /// The next request; several pending reloads count as one. Call from one task, and not after `stop`.
    func next() async -> Request {
        for await _ in wakes {
            let request = state.withLock { state -> Request? in
                if state.stopCount > 0 { return .stop }
                defer { state.wantsReload = false }
                return state.wantsReload ? .reload : nil
            }
            if let request { return request }
        }
        return .stop
    }
}
