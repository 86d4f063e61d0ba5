import Foundation
import HubConfiguration
import HubCore
import HubDefinitions
import HubServer
import HubTesting
import HubTransport
import HubYAML
import Logging
import PusherProtocol

/// Requests, upgrades and WebSocket frames as bytes over loopback, against a running hub. The first byte of an input selects the number of
/// pieces.
enum SocketTarget {
    @Sendable static func make() throws -> FuzzTarget {
        let hub = try FuzzedHub()
        let tokens = [
            "\r\n", "\r\n\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n",
            "Upgrade: websocket\r\n", " HTTP/1.1\r\n", "GET ", "POST ", "%00", "%zz",
            "?", "&", ";", "Expect: 100-continue\r\n", "Host: x\r\n", "0\r\n\r\n", "Sec-WebSocket-Protocol: pusher-channels-protocol-7\r\n",
            "X: \(String(repeating: "y", count: 300))\r\n",
        ]
        let source = InputSource("sockets", tokens: tokens) { random in
            [UInt8(random.below(256))] + (random.chance(1, in: 2) ? requests(&random) : socket(&random))
        }
        var target = FuzzTarget(input: source.draw, check: hub.check)
        target.finish = hub.finish
        return target
    }

    private static func requests(_ random: inout SeededRandom) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0...random.below(3) {
            let method = random.element(of: ["GET", "POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "get"])
            let path = random.element(of: [
                "/apps/1/events", "/apps/1/batch_events", "/apps/1/channels", "/apps/1/channels/presence-a",
                "/apps/1/channels/presence-a/users", "/health", "/", "/x%20y;z", "/games/join",
                "/pusher/auth", "/me", "/apps/1/sessions/s", "/apps/1/users/u/devices/d", "/app/app-key", "/%2e%2e/%00",
            ])
            let body = method == "GET" ? [] : Array(random.json().utf8)
            var query = RequestAuth.signedQuery(
                method: method, path: path, body: body, key: "app-key", secret: "app-secret",
                nowSeconds: Int64(Date().timeIntervalSince1970))
            if random.chance(1, in: 4) { query.append(("info", random.element(of: ["user_count", "a;b", "%", ""]))) }
            var head = "\(method) \(path)?\(query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            if random.chance(1, in: 3) { head += "Content-Type: application/json\r\n" }
            if random.chance(1, in: 4), !body.isEmpty {
                let size = String(body.count, radix: 16)
                bytes += "\(head)Transfer-Encoding: chunked\r\n\r\n\(size)\r\n".utf8 + body + "\r\n0\r\n\r\n".utf8
            } else {
                bytes += "\(head)Content-Length: \(body.count)\r\n\r\n".utf8 + body
            }
        }
        return bytes
    }

    private static func socket(_ random: inout SeededRandom) -> [UInt8] {
        let path = random.element(of: [
            "/app/app-key?protocol=7&client=js&version=8.6.0", "/app/app-key", "/app/nobody", "/", "/app/app-key?protocol=x",
            "/app/app-key/",
        ])
        var head =
            "GET \(path) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        if random.chance(1, in: 4) { head += "Sec-WebSocket-Protocol: \(random.element(of: ["pusher-channels-protocol-7", "x", ""]))\r\n" }
        if random.chance(1, in: 5) { head += "Sec-WebSocket-Extensions: permessage-deflate\r\nOrigin: http://x\r\n" }
        var bytes = Array((head + "\r\n").utf8)
        for _ in 0..<random.below(6) {
            let text = random.element(of: [
                "{\"event\":\"pusher:ping\",\"data\":{}}", "{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"a\"}}",
                "{\"event\":\"pusher:unsubscribe\",\"data\":{\"channel\":\"a\"}}",
                "{\"event\":\"client-x\",\"channel\":\"a\",\"data\":1}", random.json(), String(repeating: "x", count: random.below(70_000)),
            ])
            let opcode: UInt8 = random.element(of: [1, 1, 1, 1, 2, 0, 8, 9, 10, 3, 11])
            bytes += frame(
                opcode | (random.chance(1, in: 6) ? 0 : 0x80) | (random.chance(1, in: 30) ? 0x40 : 0), Array(text.utf8),
                isMasked: !random.chance(1, in: 20))
        }
        return bytes
    }

    private static func frame(_ first: UInt8, _ payload: [UInt8], isMasked: Bool) -> [UInt8] {
        let mask: UInt8 = isMasked ? 0x80 : 0
        var bytes = [first]
        switch payload.count {
        case 0..<126: bytes.append(mask | UInt8(payload.count))
        case 126...0xFFFF: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes.append(mask | 127)
            for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
        }
        guard isMasked else { return bytes + payload }
        let key: [UInt8] = [0xA1, 0x5B, 0x00, 0x7F]
        return bytes + key + payload.enumerated().map { $0.element ^ key[$0.offset & 3] }
    }
}

/// A hub in this process, with a folder of its own.
private final class FuzzedHub {
    private let server: Server
    private let folder: URL
    private var count = 0

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-fuzz-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let configuration = try ConfigurationParser.parse(
            file: (
                name: "f.yaml", text: "listen: { port: 0, loops: 2 }\nstore: sqlite:\(folder.path)/t.db\nlimits: { request_timeout: 2s }"
            ))
        // Silences the log, which has a message for most inputs.
        TransportLog.start { _ in }
        server = try waiting {
            try await Server(configuration, definitions: .empty, logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
        }
    }

    func check(_ bytes: [UInt8]) -> String? {
        guard let first = bytes.first else { return nil }
        count += 1
        let body = Array(bytes.dropFirst())
        let pieces = 1 + Int(first) % 3
        guard let socket = LoopbackSocket(port: server.port) else { return "the hub takes no connections" }
        defer { socket.close() }
        for piece in 0..<pieces {
            let part = body[body.count * piece / pieces..<body.count * (piece + 1) / pieces]
            guard socket.send(Array(part)) else { break }
        }
        let answer = socket.receive(withinMilliseconds: 3)
        if !answer.isEmpty, !answer.starts(with: "HTTP/1.".utf8) { return "the answer begins with \(answer.prefix(20))" }
        return count % 32 == 0 ? health() : nil
    }

    /// Checks that the hub still answers other connections.
    private func health() -> String? {
        guard let socket = LoopbackSocket(port: server.port) else { return "the hub takes no connections" }
        defer { socket.close() }
        _ = socket.send(Array("GET /health HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        let answer = socket.receive(withinMilliseconds: 20_000)
        return answer.starts(with: "HTTP/1.1 200".utf8) ? nil : "/health answers \(String(decoding: answer.prefix(200), as: UTF8.self))"
    }

    func finish() -> String? {
        let reason = health()
        waiting { [server] in await server.stop() }
        do { try FileManager.default.removeItem(at: folder) } catch { return "left behind: \(folder.path)" }
        return reason
    }
}

/// Runs asynchronous work for a synchronous caller.
private func waiting<Result: Sendable>(_ work: @escaping @Sendable () async throws -> Result) throws -> Result {
    let done = DispatchSemaphore(value: 0)
    let box = ResultBox<Result>()
    Task.detached {
        do { box.value = .success(try await work()) } catch { box.value = .failure(error) }
        done.signal()
    }
    done.wait()
    guard let result = box.value else { throw CancellationError() }
    return try result.get()
}

private func waiting(_ work: @escaping @Sendable () async -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        await work()
        done.signal()
    }
    done.wait()
}

private final class ResultBox<Value: Sendable>: @unchecked Sendable {
    // Guard: the semaphore orders the one write before the one read.
    var value: Swift.Result<Value, any Error>?
}
