import Foundation
import Glibc

/// A service manager's end of sd_notify(3): a bound datagram socket that keeps what it is told until it is read.
package final class NotifySocket: Sendable {
    /// The value of `NOTIFY_SOCKET`.
    package let name: String
    private let descriptor: Int32

    private struct NotBound: Error {}

    /// Binds a socket of its own.
    /// - Parameter isAbstract: has no file.
    package init(isAbstract: Bool = true) throws {
        let text = "tandem-\(UUID().uuidString)"
        name = isAbstract ? "@\(text)" : FileManager.default.temporaryDirectory.appendingPathComponent(text).path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = isAbstract ? [0] + Array(text.utf8) : Array(name.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard code == 0 else { throw NotBound() }
    }

    deinit {
        close(descriptor)
        if name.hasPrefix("/") { unlink(name) }
    }

    /// The next message; nil if there is none yet.
    package func next() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
