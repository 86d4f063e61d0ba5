import Foundation
import Synchronization

/// A way to a server that a test makes fail: bytes pass, wait, or the connections end. `losesCommits` ends a connection in place of the
/// server's word that a transaction is committed. One thread, loopback only.
final class FaultyWay: Sendable {
    enum Mode: Sendable { case passes, hangs, ends, losesCommits }

    let port: UInt16
    private let listener: Int32
    private let target: UInt16
    private let mode = Mutex(Mode.passes)
    private let isOver = Mutex(false)

    /// - Parameter target: the server's port on 127.0.0.1.
    init(to target: UInt16) throws {
        self.target = target
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = Self.address(0)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 && listen(listener, 64) == 0 }
        }
        var length = size
        let isNamed = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) == 0 }
        }
        guard isBound, isNamed else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread { self.run() }.start()
    }

    func set(_ mode: Mode) { self.mode.withLock { $0 = mode } }

    func close() { isOver.withLock { $0 = true } }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private func run() {
        var pairs: [(client: Int32, server: Int32)] = []
        defer {
            for pair in pairs { end(pair) }
            Glibc.close(listener)
        }
        while !isOver.withLock({ $0 }) {
            let mode = mode.withLock { $0 }
            if mode == .ends {
                for pair in pairs { end(pair) }
                pairs = []
            }
            if mode == .hangs {
                usleep(5_000)
                continue
            }
            var entries = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
            for pair in pairs {
                for socket in [pair.client, pair.server] { entries.append(pollfd(fd: socket, events: Int16(POLLIN), revents: 0)) }
            }
            guard poll(&entries, nfds_t(entries.count), 20) > 0 else { continue }
            if entries[0].revents != 0 {
                let client = accept(listener, nil, nil)
                if mode != .ends, let server = connected() { pairs.append((client, server)) } else { Glibc.close(client) }
            }
            var dead: [Int] = []
            for index in pairs.indices where 2 * index + 2 < entries.count {
                for (place, from, to) in [(1, pairs[index].client, pairs[index].server), (2, pairs[index].server, pairs[index].client)]
                where entries[2 * index + place].revents != 0 {
                    if !pass(from, to, isAnswer: place == 2), dead.last != index { dead.append(index) }
                }
            }
            for index in dead.reversed() { end(pairs.remove(at: index)) }
        }
    }

    private func connected() -> Int32? {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(target)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server, $0, size) == 0 }
        }
        if isConnected { return server }
        Glibc.close(server)
        return nil
    }

    /// The server's word that a transaction is committed, without the message's length.
    private static let tag = Array("COMMIT\0".utf8)

    private func pass(_ from: Int32, _ to: Int32, isAnswer: Bool) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(from, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        if isAnswer, mode.withLock({ $0 }) == .losesCommits, Self.tag.indices.count <= count,
            (0...count - Self.tag.count).contains(where: { buffer[$0..<$0 + Self.tag.count].elementsEqual(Self.tag) })
        {
            return false
        }
        var sent = 0
        while sent < count {
            let step = buffer[sent..<count].withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard step > 0 else { return false }
            sent += step
        }
        return true
    }

    private func end(_ pair: (client: Int32, server: Int32)) {
        Glibc.close(pair.client)
        Glibc.close(pair.server)
    }
}
