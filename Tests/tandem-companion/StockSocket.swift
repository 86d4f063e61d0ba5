import Foundation
import Glibc

/// A WebSocket on 127.0.0.1 as a stock client's: it answers PINGs and passes texts on.
struct StockSocket: Sendable {
    private let descriptor: Int32

    /// Connects, upgrades, and reads on a thread of its own.
    /// - Parameters:
    ///   - received: gets each text, on that thread.
    ///   - lost: called once, when the connection has ended.
    init?(port: UInt16, path: String, received: @escaping @Sendable (String) -> Void, lost: @escaping @Sendable () -> Void) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        let socket = Reader(descriptor: descriptor)
        let upgrade =
            "GET \(path) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        guard code == 0, write(Array(upgrade.utf8)), socket.head()?.hasPrefix("HTTP/1.1 101 ") == true else {
            close(descriptor)
            return nil
        }
        Thread.detachNewThread { [self] in
            while let (opcode, payload) = socket.frame() {
                if opcode == 1 { received(String(decoding: payload, as: UTF8.self)) }
                if opcode == 9 { send(opcode: 10, payload) }
                if opcode == 8 { break }
            }
            close(descriptor)
            lost()
        }
    }

    func send(_ text: String) { send(opcode: 1, Array(text.utf8)) }

    /// Ends the TCP connection without a close frame, as a phone that loses its network.
    func drop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// A masked frame; the mask is zero.
    private func send(opcode: UInt8, _ payload: [UInt8]) {
        let count = payload.count
        let length = count < 126 ? [UInt8(count)] : [126, UInt8(count >> 8), UInt8(count & 255)]
        _ = write([0x80 | opcode, 0x80 | length[0]] + length.dropFirst() + [0, 0, 0, 0] + payload)
    }

    private func write(_ bytes: [UInt8]) -> Bool {
        Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Reads what the hub sends.
    private final class Reader: @unchecked Sendable {
        // Used by the initialiser until the thread starts, and by the thread then.
        private let descriptor: Int32
        private var input: [UInt8] = []

        init(descriptor: Int32) { self.descriptor = descriptor }

        func head() -> String? {
            var head: [UInt8] = []
            while head.suffix(4) != Array("\r\n\r\n".utf8) {
                guard let byte = take(1) else { return nil }
                head += byte
            }
            return String(decoding: head, as: UTF8.self)
        }

        func frame() -> (opcode: UInt8, payload: [UInt8])? {
            guard let start = take(2) else { return nil }
            var count = Int(start[1] & 0x7F)
            if count > 125 {
                guard let length = take(count == 126 ? 2 : 8) else { return nil }
                count = length.reduce(0) { $0 << 8 | Int($1) }
            }
            return take(count).map { (start[0] & 15, $0) }
        }

        private func take(_ count: Int) -> [UInt8]? {
            while input.count < count {
                var chunk = [UInt8](repeating: 0, count: 4096)
                let read = recv(descriptor, &chunk, chunk.count, 0)
                if read <= 0 { return nil }
                input += chunk.prefix(read)
            }
            defer { input.removeFirst(count) }
            return Array(input.prefix(count))
        }
    }
}
