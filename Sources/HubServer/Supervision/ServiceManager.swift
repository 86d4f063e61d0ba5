internal import Glibc

/// The program that started this process and waits for its states: systemd's protocol sd_notify(3), without its library.
///
/// States are datagrams to the Unix socket that `NOTIFY_SOCKET` names. Any thread; a call blocks for a second at most.
package final class ServiceManager: Sendable {
    /// A state of the hub.
    package enum State: Sendable, Equatable {
        /// It accepts connections.
        case ready(status: String)
        /// It reads its files again; `ready` ends that.
        case reloading
        /// It closes its connections, and ends.
        case stopping
        /// It still does its work.
        case alive
    }

    /// Most time between two `alive` states; nil: nobody waits for them.
    package let watchdog: Duration?
    private let address: [UInt8]
    /// Open all the time, because the watchdog must not depend on a free descriptor.
    private let descriptor: Int32

    private static let pathBytesMax = 107
    private static let sendSecondsMax = 1

    /// The manager that the environment names; nil if there is none, or its address is unusable.
    package init?(environment: [String: String]) {
        guard let address = Self.address(environment["NOTIFY_SOCKET"] ?? "") else { return nil }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var limit = timeval(tv_sec: Self.sendSecondsMax, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        self.address = address
        self.descriptor = descriptor
        watchdog = Self.watchdog(environment)
    }

    deinit { close(descriptor) }

    /// The bytes of a Unix socket's path; an `@` in front stands for an abstract name. Nil for any other text.
    static func address(_ text: String) -> [UInt8]? {
        var bytes = Array(text.utf8)
        guard let first = bytes.first, bytes.count > 1, bytes.count <= pathBytesMax else { return nil }
        switch first {
        case UInt8(ascii: "/"): return bytes
        case UInt8(ascii: "@"):
            bytes[0] = 0
            return bytes
        default: return nil
        }
    }

    /// The limit of `WATCHDOG_USEC`, if it is meant for this process.
    static func watchdog(_ environment: [String: String], pid: pid_t = getpid()) -> Duration? {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init), microseconds > 0 else { return nil }
        if let wanted = environment["WATCHDOG_PID"], pid_t(wanted) != pid { return nil }
        return .microseconds(microseconds)
    }

    /// Tells a state.
    /// - Returns: whether the manager's socket took it.
    @discardableResult
    package func tell(_ state: State) -> Bool {
        var peer = sockaddr_un()
        peer.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &peer.sun_path) { unsafe $0.copyBytes(from: address) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + address.count)
        let text = Array(Self.text(state).utf8)
        let sent = unsafe withUnsafePointer(to: &peer) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
                unsafe sendto(descriptor, text, text.count, Int32(MSG_NOSIGNAL), peer, length)
            }
        }
        return sent == text.count
    }

    static func text(_ state: State) -> String {
        switch state {
        case .ready(let status): "READY=1\nSTATUS=\(status.split(separator: "\n").joined(separator: " "))"
        case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds)\nSTATUS=Reads its files again"
        case .stopping: "STOPPING=1\nSTATUS=Tells its clients to reconnect"
        case .alive: "WATCHDOG=1"
        }
    }

    private static var monotonicMicroseconds: Int64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
    }

    /// Tells that the hub is alive, twice in the manager's time, until the task is cancelled. Returns at once without a watchdog.
    /// - Parameter proof: returns when every part has done a piece of work. While it does not return, nothing is told.
    package func keepAlive(proof: @Sendable () async -> Void) async {
        guard let watchdog else { return }
        while !Task.isCancelled {
            await proof()
            if Task.isCancelled { return }
            tell(.alive)
            do { try await Task.sleep(for: watchdog / 2) } catch { return }
        }
    }
}
