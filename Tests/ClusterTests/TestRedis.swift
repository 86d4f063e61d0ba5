import Foundation
import Glibc
import HubScaleOut
import HubTesting

/// A redis-server of a test: on 127.0.0.1, on a free port, with a password, and without files. It ends with the test, or after minutes.
final class TestRedis: @unchecked Sendable {
    // Guard: a test uses its server on one task.
    let port: UInt16
    /// These tests start servers, which `make test-cluster` installs.
    static let isWanted = ProcessInfo.processInfo.environment["TANDEM_TEST_CLUSTER"] != nil

    private let settings: [String]
    private var program: SpawnedProgram?

    init(_ settings: [String] = []) throws {
        port = try Self.freePort()
        self.settings = settings
        try start()
    }

    deinit { end() }

    /// - Parameter more: settings behind the `?`.
    func address(_ more: String = "prefix=test") throws -> RedisAddress {
        try RedisAddress("redis://:secret@127.0.0.1:\(port)/3?\(more)")
    }

    /// A connection's way to this server.
    func locator() throws -> RedisLocator { RedisLocator(try address()) }

    /// Sends a command as another program would.
    func run(_ name: StaticString, _ words: [String]) async throws -> RedisReply {
        let address = try address()
        let link = RedisLink(name: "test", locate: { _ in (address.hosts[0], address) }, greet: { _ in })
        let reply = try await link.run { _ in [RedisCommand(name, texts: words)] }[0]
        await link.close()
        return reply
    }

    /// Starts the server, empty.
    func start() throws {
        let program = try SpawnedProgram(
            "timeout",
            ["--kill-after=5", "300", "redis-server", "--port", "\(port)", "--bind", "127.0.0.1", "--save", ""]
                + ["--appendonly", "no", "--requirepass", "secret", "--daemonize", "no"] + settings,
            output: .nothing, errors: .nothing)
        self.program = program
        let deadline = ContinuousClock.now + .seconds(20)
        while !Self.answers(port) {
            guard program.isRunning, ContinuousClock.now < deadline else { throw TestFailure("redis-server does not start") }
            usleep(20_000)
        }
    }

    /// Ends the server at once, as a crash does.
    func end() {
        guard let program, program.isRunning else { return }
        for child in Self.children(of: program.pid) { kill(child, SIGKILL) }
        program.send(SIGTERM)
        program.waitForEnd()
        self.program = nil
    }

    /// Stops the server's process, which answers nothing but keeps its connections.
    func freeze() { signal(SIGSTOP) }
    func thaw() { signal(SIGCONT) }

    private func signal(_ signal: CInt) {
        guard let program else { return }
        for child in Self.children(of: program.pid) { kill(child, signal) }
    }

    private static func children(of process: pid_t) -> [pid_t] {
        let text = (try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }

    private static func answers(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(port)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
        }
    }

    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> UInt16? in
                guard bind(descriptor, address, size) == 0, getsockname(descriptor, address, &size) == 0 else { return nil }
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
            }
        }
        guard let port else { throw TestFailure("no port is free") }
        return port
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// Why a test cannot go on.
struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Waits for what comes sooner or later; how long it takes is no matter.
func eventually(_ what: String, _ isTrue: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while !isTrue() {
        if ContinuousClock.now > deadline { throw TestFailure("never: \(what)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}
