internal import CLibWebSockets
internal import Glibc
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
    }

    deinit { close() }

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
}

extension TransportError {
    /// The error of the system's last call.
    init(system what: String) {
        self.init("\(what): \(unsafe String(cString: strerror(errno)))")
    }
}
