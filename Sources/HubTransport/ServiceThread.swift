internal import CLibWebSockets
internal import Glibc

/// A named operating-system thread that can be joined. Loops and the acceptor block in system calls, which threads of the
/// shared pools must not.
final class ServiceThread: @unchecked Sendable {
    // Guard: `thread` is written before `init` returns and only read by `join`, which its one owner calls once.
    private var thread = pthread_t()

    init(name: String, body: @escaping @Sendable () -> Void) throws(TransportError) {
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body))
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                // The kernel keeps 15 bytes of a thread's name.
                unsafe tandem_name_thread(String(start.name.prefix(15)))
                start.body()
                return nil
            }, start.toOpaque())
        if code != 0 {
            unsafe start.release()
            throw TransportError("cannot start thread \(name): \(unsafe String(cString: strerror(code)))")
        }
    }

    func join() {
        assert(pthread_equal(thread, pthread_self()) == 0, "a thread waits for itself")
        let code = pthread_join(thread, nil)
        assert(code == 0, "a thread was joined already (\(code))")
    }

    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
