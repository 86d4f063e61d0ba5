package import GatewaySimulators
internal import Glibc
internal import HubCore

/// The networks of the phones: one listening port of loopback for each, and one thread that carries bytes to the hub and back.
///
/// Any thread. All that a phone's app sends goes this way: its WebSocket, its authorizations and its beacons. A mode is in force when
/// `set` returns.
package final class Relay: Sendable {
    private struct State {
        var modes: [RelayMode]
        /// Lines whose connections end.
        var cuts: Set<Int> = []
        var hubPort: UInt16 = 0
        var isStopping = false
    }

    /// The ports, in the order of the phones.
    package let ports: [UInt16]
    private let listeners: [Listener]
    private let bell: PipeEnds
    private let state: Guarded<State>
    private let thread = Guarded<pthread_t?>(nil)

    /// Connections of one phone, lost ones included; beyond them the oldest ends.
    private static let pairsMax = 48
    private static let sweepMilliseconds: Int32 = 500

    /// Listens on loopback for so many phones.
    package init(phones: Int) throws(GatewayError) {
        var listeners: [Listener] = []
        do throws(GatewayError) {
            for _ in 0..<phones { listeners.append(try Listener(host: "127.0.0.1", port: 0, purpose: "a phone's network")) }
        } catch {
            for listener in listeners { listener.close() }
            throw error
        }
        guard let bell = PipeEnds(isBlocking: false) else {
            for listener in listeners { listener.close() }
            throw GatewayError("cannot make a wake-up pipe: raise the limit of open files")
        }
        self.bell = bell
        self.listeners = listeners
        ports = listeners.map(\.port)
        state = Guarded(State(modes: listeners.map { _ in .open }))
        start()
    }

    /// Ends every connection and waits for the thread. Idempotent.
    package func stop() {
        change { $0.isStopping = true }
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let running else { return }
        pthread_join(running, nil)
        for listener in listeners { listener.close() }
        bell.close()
    }

    /// The hub serves at this port from now on.
    package func lead(to port: UInt16) { change { $0.hubPort = port } }

    /// The mode of a phone's network from now on.
    package func set(_ mode: RelayMode, line: Int) { change { $0.modes[line] = mode } }

    /// The mode of a phone's network.
    package func mode(line: Int) -> RelayMode { state.withLock { $0.modes[line] } }

    /// Ends the connections of an app that was closed: both sides end without a close frame, as the system ends a process's sockets.
    package func cut(line: Int) { change { $0.cuts.insert(line) } }

    private func change(_ body: (inout State) -> Void) {
        let isRunning = state.withLock { state in
            let wasStopping = state.isStopping
            body(&state)
            return !wasStopping
        }
        var ring: UInt8 = 1
        // Fails only if the pipe is full, and then the thread wakes anyway.
        if isRunning { unsafe write(bell.writing, &ring, 1) }
    }

    private func start() {
        var started = pthread_t()
        let status = unsafe pthread_create(
            &started, nil,
            { context in
                var all = sigset_t()
                unsafe sigfillset(&all)
                unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<Relay>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        precondition(status == 0, "the system refuses a thread (\(status))")
        thread.withLock { [started] in $0 = started }
    }

    // MARK: The thread

    private func run() {
        var lines = listeners.map { _ in RelayLine() }
        while true {
            let state = state.withLock { state in
                defer { state.cuts = [] }
                return state
            }
            if state.isStopping { break }
            for index in lines.indices {
                if state.cuts.contains(index) { lines[index].end() }
                lines[index].enter(state.modes[index])
            }
            wait(for: lines)
            // The hub may have moved meanwhile.
            let hubPort = self.state.withLock { $0.hubPort }
            for index in lines.indices {
                // A mode that came meanwhile is obeyed before any byte moves.
                guard self.mode(line: index) == lines[index].mode else { continue }
                if lines[index].mode == .open { accept(at: index, to: hubPort, &lines[index]) }
                lines[index].turn()
            }
        }
        for index in lines.indices { lines[index].endAll() }
    }

    private func wait(for lines: [RelayLine]) {
        var waits = [pollfd(fd: bell.reading, events: Int16(POLLIN), revents: 0)]
        for (listener, line) in zip(listeners, lines) where line.mode == .open {
            waits.append(pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0))
            for pair in line.pairs where !pair.isLost {
                let interest = pair.interest
                waits.append(pollfd(fd: pair.app, events: Int16(interest.app), revents: 0))
                waits.append(pollfd(fd: pair.hub, events: Int16(interest.hub), revents: 0))
            }
        }
        unsafe poll(&waits, nfds_t(waits.count), Self.sweepMilliseconds)
        var rings = [UInt8](repeating: 0, count: 64)
        while unsafe read(bell.reading, &rings, rings.count) == rings.count {}
    }

    private func accept(at index: Int, to hubPort: UInt16, _ line: inout RelayLine) {
        while case .connected(let app) = listeners[index].accept() {
            guard let hub = LoopbackSocket.connect(to: hubPort) else {
                // As a server that is down.
                Glibc.close(app)
                continue
            }
            if line.pairs.count >= Self.pairsMax {
                line.pairs[0].close()
                line.pairs.removeFirst()
            }
            line.pairs.append(RelayPair(app: app, hub: hub))
        }
    }
}
