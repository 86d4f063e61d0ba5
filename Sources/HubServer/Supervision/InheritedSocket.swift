internal import Glibc

/// A listening socket that a service manager bound before it started this process: sd_listen_fds(3), without its library.
package enum InheritedSocket {
    /// The first descriptor that a manager passes.
    private static let first: Int32 = 3

    /// The descriptor of the one socket for this process; nil if there is none.
    /// - Throws: `badConfiguration` for several, because the hub listens on one.
    package static func descriptor(in environment: [String: String]) throws(ServerError) -> Int32? {
        try descriptor(in: environment, pid: getpid())
    }

    static func descriptor(in environment: [String: String], pid: Int32) throws(ServerError) -> Int32? {
        guard let count = environment["LISTEN_FDS"].flatMap(Int.init), count > 0, environment["LISTEN_PID"].flatMap(Int32.init) == pid
        else { return nil }
        guard count == 1 else {
            throw ServerError(
                .badConfiguration, "LISTEN_FDS: the service manager passes \(count) sockets: keep one ListenStream= of the socket unit")
        }
        return first
    }
}
