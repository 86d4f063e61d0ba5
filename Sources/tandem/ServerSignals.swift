import Dispatch
import Glibc
import Synchronization

/// What signals ask of a running hub. SIGHUP: to read its files again. SIGTERM and SIGINT: to end in order, and at once when
/// one of them comes again.
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
    /// SIGHUP is also what a program gets when its terminal is closed, and then means the end, unless it was started to outlive
    /// that (`nohup`).
    private let endsWithTerminal: Bool

    /// From here on these signals are handled here.
    init() {
        // One wake is enough: what it is about stands in `state`.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        wakes = stream
        signal(SIGPIPE, SIG_IGN)
        var former = sigaction()
        unsafe sigaction(SIGHUP, nil, &former)
        let survivesHangup = unsafe unsafeBitCast(former.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
        endsWithTerminal = !survivesHangup && Self.hasTerminal
        let queue = DispatchQueue(label: "tandem.signals")
        for number in [SIGTERM, SIGINT, SIGHUP] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                self.received(number)
                continuation.yield()
                // The handler keeps its source, which lives as long as the process.
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

    /// The next request; several for a reload that came meanwhile are one. Ask in one task, and no more after `stop`.
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
