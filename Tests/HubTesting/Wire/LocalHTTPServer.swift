import Foundation
import Synchronization

/// A small HTTP/1.1 server on 127.0.0.1 for tests: one thread per connection, ended by `stop`.
package final class LocalHTTPServer: Sendable {
    package struct Request: Sendable {
        package var method: String
        package var path: String
        /// Names in lower case.
        package var headers: [String: String]
        package var body: [UInt8]
        /// Number of its connection, from 1.
        package var connection: Int

        /// The body as text.
        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    package enum Reply: Sendable {
        case answer(Int, headers: [(String, String)] = [], body: String = "")
        /// Reads the request and never answers; `stop` ends the connection.
        case silence
        /// Closes the connection without an answer.
        case close
    }

    package let port: UInt16
    private let listener: Int32
    private let handler: @Sendable (Request) -> Reply
    private let open = Mutex<(descriptors: Set<Int32>, connections: Int, requests: [Request], stopped: Bool)>(([], 0, [], false))

    /// Starts the server on a free port.
    /// - Parameter handler: called on the connection's thread for every request.
    package init(_ handler: @escaping @Sendable (Request) -> Reply) throws {
        self.handler = handler
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, generic, &length) == 0
            }
        }
        guard code else { throw POSIXError(.EADDRINUSE) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept() }
    }

    package var url: String { "http://127.0.0.1:\(port)" }
    /// All requests so far.
    package var requests: [Request] { open.withLock { $0.requests } }
    /// Number of connections so far.
    package var connections: Int { open.withLock { $0.connections } }

    /// Closes the port and all connections. Another call does nothing.
    ///
    /// Under the lock that guards each close: a number that is closed already may be another server's.
    package func stop() {
        open.withLock { open in
            if !open.stopped { shutdown(listener, Int32(SHUT_RDWR)) }
            open.stopped = true
            for descriptor in open.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private func accept() {
        while true {
            let descriptor = Foundation.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            let number: Int? = open.withLock { open in
                guard !open.stopped else { return nil }
                open.descriptors.insert(descriptor)
                open.connections += 1
                return open.connections
            }
            guard let number else {
                close(descriptor)
                break
            }
            Thread.detachNewThread { [self] in serve(descriptor, number) }
        }
        open.withLock { open in
            open.stopped = true
            close(listener)
        }
    }

    private func serve(_ descriptor: Int32, _ number: Int) {
        defer {
            open.withLock { open in
                open.descriptors.remove(descriptor)
                close(descriptor)
            }
        }
        var buffer: [UInt8] = []
        while let request = readRequest(descriptor, &buffer, number) {
            open.withLock { $0.requests.append(request) }
            switch handler(request) {
            case .close: return
            case .silence:
                var byte: UInt8 = 0
                _ = recv(descriptor, &byte, 1, 0)
                return
            case .answer(let status, let headers, let body):
                var text = "HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n"
                for (name, value) in headers { text += "\(name): \(value)\r\n" }
                let bytes = Array((text + "\r\n" + body).utf8)
                var sent = 0
                while sent < bytes.count {
                    let count = bytes[sent...].withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                    guard count > 0 else { return }
                    sent += count
                }
            }
        }
    }

    private func readRequest(_ descriptor: Int32, _ buffer: inout [UInt8], _ number: Int) -> Request? {
        let end = Array("\r\n\r\n".utf8)
        var headerEnd: Int?
        var total: Int?
        var request = Request(method: "", path: "", headers: [:], body: [], connection: number)
        while true {
            if headerEnd == nil, let range = buffer.firstRange(of: end) {
                headerEnd = range.upperBound
                let lines = String(decoding: buffer[..<range.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
                let parts = lines[0].split(separator: " ")
                guard parts.count == 3 else { return nil }
                request.method = String(parts[0])
                request.path = String(parts[1])
                for line in lines.dropFirst() {
                    let pair = line.split(separator: ":", maxSplits: 1)
                    request.headers[pair[0].lowercased()] = pair.count > 1 ? pair[1].trimmingCharacters(in: .whitespaces) : ""
                }
                total = range.upperBound + (Int(request.headers["content-length"] ?? "0") ?? 0)
            }
            if let total, let headerEnd, buffer.count >= total {
                request.body = Array(buffer[headerEnd..<total])
                buffer.removeFirst(total)
                return request
            }
            var chunk = [UInt8](repeating: 0, count: 16_384)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            buffer += chunk[..<count]
        }
    }
}
