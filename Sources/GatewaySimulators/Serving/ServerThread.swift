import Glibc
import Synchronization

/// The only access to a server's thread from outside: a command list and a wake-up pipe.
final class ServerDoor: Sendable {
    enum Command: Sendable {
        case announce(streamsMax: Int)
        case goAway(reason: String)
        case freezeConnections
        case closeConnections
    }

    private struct State {
        var commands: [Command] = []
        var isStopping = false
    }

    /// Readable while commands wait.
    let readingEnd: Int32
    private let writingEnd: Int32
    private let state = Mutex(State())

    init() throws(GatewayError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0,
            ends.allSatisfy({ fcntl($0, F_SETFL, O_NONBLOCK) == 0 && fcntl($0, F_SETFD, FD_CLOEXEC) == 0 })
        else {
            throw GatewayError("cannot make a wake-up pipe: raise the limit of open files")
        }
        readingEnd = ends[0]
        writingEnd = ends[1]
    }

    deinit {
        Glibc.close(readingEnd)
        Glibc.close(writingEnd)
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    func send(_ command: Command) {
        state.withLock { $0.commands.append(command) }
        wake()
    }

    func stop() {
        state.withLock { $0.isStopping = true }
        wake()
    }

    /// For the server's thread: takes all commands and resets the wake-up.
    func takeCommands() -> [Command] {
        var rings = [UInt8](repeating: 0, count: 64)
        while unsafe read(readingEnd, &rings, rings.count) == rings.count {}
        return state.withLock { state in
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    private func wake() {
        var ring: UInt8 = 1
        // Fails only if the pipe is full, and then the thread wakes anyway.
        unsafe write(writingEnd, &ring, 1)
    }
}

/// A served port: its thread, and the means to stop it.
final class ServerThread: Sendable {
    let port: UInt16
    let door: ServerDoor
    private let thread: Mutex<pthread_t?>

    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Listens on the address, then serves it.
    /// - Parameter name: for errors: the port's purpose and the option that changes it.
    convenience init(
        host: String, port: UInt16, name: String, serve: @escaping @Sendable (_ listener: Listener, _ door: ServerDoor) -> Void
    ) throws(GatewayError) {
        try self.init(listener: try Listener(host: host, port: port, purpose: name), name: name, serve: serve)
    }

    /// Serves a listener, which the thread closes at the end.
    /// - Parameter serve: runs on the new thread and creates the loop there, because a loop belongs to one thread.
    init(
        listener: Listener, name: String,
        serve: @escaping @Sendable (_ listener: Listener, _ door: ServerDoor) -> Void
    ) throws(GatewayError) {
        port = listener.port
        door = try ServerDoor()
        let work = Work { [door] in serve(listener, door) }
        var started = pthread_t()
        let status = unsafe pthread_create(
            &started, nil,
            { context in
                ServerThread.blockSignals()
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(work).toOpaque())
        guard status == 0 else {
            listener.close()
            throw GatewayError("cannot start the thread of \(name): raise the limit of threads")
        }
        thread = Mutex(started)
    }

    /// Ends all connections and waits for the thread. Idempotent. Never call it on the thread itself.
    func stop() {
        door.stop()
        thread.withLock { thread in
            if let running = thread { pthread_join(running, nil) }
            thread = nil
        }
    }

    /// Blocks all signals: SIGPIPE would end the process when OpenSSL writes to a closed socket, and the rest belong to the main thread.
    private static func blockSignals() {
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
    }
}
