internal import CLibWebSockets
internal import Glibc
internal import HubCore
internal import Synchronization

/// A bound and listening port, on which no connection is accepted yet. The port is taken before any step that a second
/// process must not repeat.
///
/// A peer that connects meanwhile waits in the kernel's backlog until an `Acceptor` starts.
package final class ListeningSocket: Sendable {
    /// The port in use; chosen by the system for port 0.
    package let port: Int
    let descriptor: Int32
    private let isClosed = Atomic<Bool>(false)

    /// The length of the kernel's backlog. The kernel caps it at `net.core.somaxconn`, which the operator may raise.
    static let backlog: Int32 = 65_535

    /// Binds and listens.
    /// - Parameters:
    ///   - host: an IPv4 or IPv6 address, or `localhost`.
    ///   - port: 0 for any free port.
    package init(host: String, port: Int) throws(TransportError) {
        (descriptor, self.port) = try Self.listen(host: host, port: port)
        setUp()
    }

    /// Takes over a socket that another process bound. It belongs to this object from now on, unless this throws.
    /// - Throws: if the descriptor is no listening TCP socket.
    package init(inherited descriptor: Int32) throws(TransportError) {
        func option(_ name: Int32) -> Int32? {
            var (value, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            return unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
        }
        guard option(SO_TYPE) == Int32(SOCK_STREAM.rawValue), option(SO_ACCEPTCONN) == 1,
            let family = option(SO_DOMAIN), family == AF_INET || family == AF_INET6
        else {
            throw TransportError(
                "descriptor \(descriptor), which the service manager passes, is no listening TCP socket: "
                    + "write ListenStream=ADDRESS:PORT and Accept=no into the socket unit")
        }
        guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
        else { throw TransportError(system: "cannot set up the socket that the service manager passes") }
        self.descriptor = descriptor
        port = Self.boundPort(descriptor)
        setUp()
    }

    /// Sets the options that connections inherit, and how the kernel hands them out (Linux, tcp(7)).
    private func setUp() {
        // Connections send at once, without waiting for further bytes.
        set(TCP_NODELAY, 1)
        // A peer speaks first. Until it does, or a second has passed, its connection costs neither a descriptor nor a wake-up.
        set(TCP_DEFER_ACCEPT, 1)
    }

    private func set(_ option: Int32, _ value: Int32) {
        var value = value
        let code = unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
        assert(code == 0, "the kernel refuses option \(option) of a listening socket")
    }

    deinit { close() }

    /// Whether only this machine can connect.
    package var isLoopback: Bool {
        let address = Self.boundAddress(descriptor)
        // Port and family come first. An IPv6 address follows the flow, an IPv4 address directly.
        let isIPv6 = unsafe address.withUnsafeBytes { unsafe $0.loadUnaligned(as: sa_family_t.self) } == sa_family_t(AF_INET6)
        let bytes = isIPv6 ? address[8..<24] : address[4..<8]
        return IPAddress(bytes: bytes)?.isLoopback ?? false
    }

    /// Closes the socket and resets connections that were not accepted. Safe to call again.
    package func close() {
        if !isClosed.exchange(true, ordering: .acquiringAndReleasing) { Descriptor.close(descriptor) }
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
        let descriptor = unsafe socket(
            address.pointee.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TransportError(system: "cannot make a socket for \(host)") }
        var on: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        guard unsafe bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0, Glibc.listen(descriptor, backlog) == 0
        else {
            let inUse = errno == EADDRINUSE
            let error = TransportError(system: "cannot listen on \(host):\(port)")
            Descriptor.close(descriptor)
            throw inUse
                ? TransportError(
                    "cannot listen on \(host):\(port): the port is in use; choose another with --port, or stop the program that has it")
                : error
        }
        return (descriptor, boundPort(descriptor))
    }

    private static func boundPort(_ descriptor: Int32) -> Int {
        // The port stands at the same place, in network order, in both address families.
        let address = boundAddress(descriptor)
        return Int(address[2]) << 8 | Int(address[3])
    }

    /// The bytes of the socket's `sockaddr`; zeros if it has none.
    private static func boundAddress(_ descriptor: Int32) -> [UInt8] {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        _ = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &length) }
        }
        return unsafe withUnsafeBytes(of: &storage) { unsafe Array($0) }
    }
}

extension TransportError {
    /// The error of the system's last call.
    init(system what: String) {
        self.init("\(what): \(unsafe String(cString: strerror(errno)))")
    }
}
