import Foundation

/// A TCP connection of this process, as the kernel sees it.
struct OpenSocket {
    /// TCP_USER_TIMEOUT in milliseconds; 0: the system's.
    let userTimeout: UInt32

    /// Those whose other end has this port of 127.0.0.1.
    static func all(peerPort: UInt16) -> [OpenSocket] {
        let descriptors = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).compactMap { Int32($0) }
        return descriptors.compactMap { (descriptor: Int32) -> OpenSocket? in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
            }
            guard code == 0, address.sin_family == sa_family_t(AF_INET), UInt16(bigEndian: address.sin_port) == peerPort else { return nil }
            var milliseconds: UInt32 = 0
            length = socklen_t(MemoryLayout<UInt32>.size)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, &length) == 0 else { return nil }
            return OpenSocket(userTimeout: milliseconds)
        }
    }
}
