internal import Glibc

/// Outgoing TCP connections within this machine.
enum LoopbackSocket {
    /// A connected, non-blocking socket; nil if nobody listens there. Loopback answers at once, so this does not wait.
    static func connect(to port: UInt16) -> Int32? {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let status = unsafe withUnsafeBytes(of: &address) { bytes in
            unsafe bytes.baseAddress.map {
                unsafe Glibc.connect(socket, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
        }
        var yes: Int32 = 1
        guard status == 0, fcntl(socket, F_SETFL, O_NONBLOCK) == 0,
            unsafe setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size)) == 0
        else {
            Glibc.close(socket)
            return nil
        }
        return socket
    }
}
