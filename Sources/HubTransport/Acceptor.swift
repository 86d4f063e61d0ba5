internal import CLibWebSockets
internal import Glibc
internal import Synchronization

/// The listening socket and its thread: accepts, admits, and hands each descriptor to the loop that holds fewest.
///
/// Accepting here and not in the loops balances them exactly, refuses before TLS costs anything, and is necessary: contexts
/// of Debian's libwebsockets cannot share a port.
package final class Acceptor: Sendable {
    /// The port in use; the system's choice when 0 was asked for.
    package let port: Int
    private let listener: Int32
    private let wakeWrite: Int32
    private let thread: Mutex<ServiceThread?>

    /// Connections the kernel keeps for us until they are accepted.
    static let backlog: Int32 = 4096
    /// How long accepting pauses when the process is out of descriptors, in milliseconds.
    static let exhaustedPauseMilliseconds: Int32 = 100

    /// Binds, listens and starts accepting.
    /// - Parameters:
    ///   - host: an IPv4 or IPv6 address, or `localhost`.
    ///   - port: 0 for any free port.
    package init(host: String, port: Int, loops: [LoopHandle]) throws(TransportError) {
        let (listener, boundPort) = try Self.listen(host: host, port: port)
        var pipe: [Int32] = [0, 0]
        guard unsafe Glibc.pipe(&pipe) == 0 else {
            let error = Self.systemError("cannot make a pipe")
            Glibc.close(listener)
            throw error
        }
        let wakeRead = pipe[0]
        self.listener = listener
        self.port = boundPort
        wakeWrite = pipe[1]
        do {
            thread = Mutex(
                try ServiceThread(name: "acceptor") {
                    Self.run(listener: listener, wake: wakeRead, loops: loops)
                    Glibc.close(wakeRead)
                })
        } catch {
            for descriptor in [listener] + pipe { Glibc.close(descriptor) }
            throw error
        }
    }

    /// Stops accepting and closes the listening socket; connections already handed over are not touched. Safe to call again.
    package func stop() {
        guard let thread = thread.withLock({ thread in
            defer { thread = nil }
            return thread
        }) else { return }
        var byte: UInt8 = 0
        _ = unsafe write(wakeWrite, &byte, 1)
        thread.join()
        Glibc.close(listener)
        Glibc.close(wakeWrite)
    }

    private static func run(listener: Int32, wake: Int32, loops: [LoopHandle]) {
        // Given up for a moment when descriptors run out, so that the waiting peer can be accepted and told to go.
        var spare = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        while true {
            var watched = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0), pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
            if unsafe poll(&watched, 2, -1) < 0 { continue }
            if watched[1].revents != 0 { break }
            accepting: while true {
                let descriptor = tandem_accept(listener)
                if descriptor >= 0 {
                    var on: Int32 = 1
                    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
                    leastLoaded(loops).hand(over: descriptor)
                    continue
                }
                switch errno {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    Glibc.close(spare)
                    let refused = accept(listener, nil, nil)
                    if refused >= 0 { Glibc.close(refused) }
                    unsafe spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
                    _ = poll(nil, 0, exhaustedPauseMilliseconds)
                    break accepting
                case EINTR, ECONNABORTED: continue
                default: break accepting
                }
            }
        }
        Glibc.close(spare)
    }

    private static func leastLoaded(_ loops: [LoopHandle]) -> LoopHandle {
        var best = loops[0]
        for loop in loops where loop.load < best.load { best = loop }
        return best
    }

    private static func listen(host: String, port: Int) throws(TransportError) -> (descriptor: Int32, port: Int) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_PASSIVE
        var found: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &found)
        guard code == 0, let address = unsafe found else {
            throw TransportError("cannot listen on \(host): \(unsafe String(cString: gai_strerror(code))); check listen.host")
        }
        defer { unsafe freeaddrinfo(address) }
        let descriptor = unsafe socket(address.pointee.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw systemError("cannot make a socket for \(host)") }
        var on: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        guard unsafe bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0, Glibc.listen(descriptor, backlog) == 0
        else {
            let inUse = errno == EADDRINUSE
            let error = systemError("cannot listen on \(host):\(port)")
            Glibc.close(descriptor)
            throw inUse
                ? TransportError("cannot listen on \(host):\(port): the port is in use; choose another with --port, or stop the program that has it")
                : error
        }
        return (descriptor, boundPort(descriptor))
    }

    private static func boundPort(_ descriptor: Int32) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &length) }
        }
        guard code == 0 else { return 0 }
        // The port stands at the same place, in network order, in both address families.
        return unsafe withUnsafeBytes(of: &storage) { bytes in
            unsafe Int(bytes[2]) << 8 | Int(bytes[3])
        }
    }

    private static func systemError(_ what: String) -> TransportError {
        TransportError("\(what): \(unsafe String(cString: strerror(errno)))")
    }
}
