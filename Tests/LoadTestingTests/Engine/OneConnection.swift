import Glibc
import Testing

/// A listening socket of the test, and the one connection that it takes.
final class OneConnection {
    let port: UInt16
    private let listener: Int32
    private var connection: Int32 = -1

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        try #require(bound)
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        if connection >= 0 { close(connection) }
        close(listener)
    }

    /// Takes the connection, and reads up to the end of its request.
    func accept() -> String {
        connection = Glibc.accept(listener, nil, nil)
        var on: Int32 = 1
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
        var request: [UInt8] = []
        while !request.suffix(4).elementsEqual("\r\n\r\n".utf8), let byte = read(1)?.first { request.append(byte) }
        return String(decoding: request, as: UTF8.self)
    }

    func write(_ bytes: some Collection<UInt8>) { _ = Array(bytes).withUnsafeBytes { send(connection, $0.baseAddress, $0.count, 0) } }

    /// Nil: it ended before.
    func read(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }
}
