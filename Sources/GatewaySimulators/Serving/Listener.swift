import Glibc

/// A listening, non-blocking TCP socket on one address; its owner closes it.
package struct Listener: Sendable {
    /// The socket.
    package let descriptor: Int32
    /// The port, chosen by the system if 0 was asked for.
    package let port: UInt16

    /// - Parameters:
    ///   - host: an IPv4 or IPv6 address, or `localhost`.
    ///   - port: 0 lets the system choose one.
    ///   - purpose: for errors: the port's purpose and the option that changes it.
    package init(host: String, port: UInt16, purpose: String) throws(GatewayError) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(host, String(port), &hints, &found)
        guard status == 0, let address = unsafe found?.pointee else {
            throw GatewayError("cannot listen on \(host): no such address; give an address of this machine with --host")
        }
        defer { unsafe freeaddrinfo(found) }
        let socket = unsafe Glibc.socket(
            address.ai_family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var yes: Int32 = 1
        guard socket >= 0,
            unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size)) == 0,
            unsafe bind(socket, address.ai_addr, address.ai_addrlen) == 0,
            listen(socket, SimulatorLimits.listenBacklog) == 0,
            let bound = Self.port(of: socket)
        else {
            let reason = unsafe String(cString: strerror(errno))
            if socket >= 0 { Glibc.close(socket) }
            throw GatewayError("cannot listen on \(host) port \(port) for \(purpose): \(reason); choose another port")
        }
        descriptor = socket
        self.port = bound
    }

    /// The find of `accept`.
    package enum Acceptance {
        /// A connected, non-blocking socket that the caller owns.
        case connected(Int32)
        case noneWaiting
        /// A connection waits, but the process has no descriptor left. Trying again at once would be a busy loop.
        case outOfDescriptors
    }

    /// Takes one waiting connection; never waits for one.
    package func accept() -> Acceptance {
        let accepted = Glibc.accept(descriptor, nil, nil)
        guard accepted >= 0 else { return errno == EMFILE || errno == ENFILE ? .outOfDescriptors : .noneWaiting }
        guard fcntl(accepted, F_SETFL, O_NONBLOCK) == 0, fcntl(accepted, F_SETFD, FD_CLOEXEC) == 0 else {
            Glibc.close(accepted)
            return .noneWaiting
        }
        var yes: Int32 = 1
        // Answers are a few hundred bytes, which Nagle's algorithm would only delay.
        unsafe setsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        return .connected(accepted)
    }

    /// Stops listening.
    package func close() {
        Glibc.close(descriptor)
    }

    private static func port(of socket: Int32) -> UInt16? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = unsafe withUnsafeMutableBytes(of: &storage) { bytes in
            unsafe bytes.baseAddress.map {
                unsafe getsockname(socket, $0.assumingMemoryBound(to: sockaddr.self), &length)
            }
        }
        guard status == 0 else { return nil }
        // The port has the same offset in the IPv4 and the IPv6 form.
        return unsafe withUnsafeBytes(of: &storage) { bytes in
            UInt16(bigEndian: unsafe bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }
}
