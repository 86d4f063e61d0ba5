import Foundation
import HubTesting
import Testing

/// A hub below a service manager: the states that it tells, and the socket that it takes over.
@Suite struct SupervisionTests {
    /// Waits for a message that begins so. Signs of life may come before it.
    private func heard(_ start: String, by end: NotifySocket) async throws {
        try await eventually("the manager to hear \(start)") {
            while let message = end.next() {
                if message.hasPrefix(start) { return true }
                #expect(message == "WATCHDOG=1" || start == "READY=1", "\(message) before \(start)")
            }
            return false
        }
    }

    @Test("a manager hears of readiness, reloads, signs of life and the end")
    func states() async throws {
        try await Stage.run { stage in
            let end = try NotifySocket(isAbstract: false)
            let hub = try await stage.hub(environment: ["NOTIFY_SOCKET": end.name, "WATCHDOG_USEC": "200000"])
            try await heard("READY=1\nSTATUS=Serves port \(hub.port)", by: end)
            for _ in 0..<3 { try await heard("WATCHDOG=1", by: end) }
            hub.process.send(SIGHUP)
            try await heard("RELOADING=1\nMONOTONIC_USEC=", by: end)
            try await heard("READY=1", by: end)
            hub.process.send(SIGTERM)
            try await heard("STOPPING=1", by: end)
            #expect(try await hub.process.waitForEnd().code == 0)
        }
    }

    /// Binds a socket, and becomes the hub as a service manager would.
    private static let manager = """
        import os, socket, sys
        listener = socket.socket()
        listener.bind((sys.argv[1], 0))
        listener.listen()
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        print(listener.getsockname()[1], flush=True)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execv(sys.argv[2], sys.argv[2:])
        """

    private func serve(_ stage: Stage, on address: String) throws -> ChildProcess {
        try stage.start(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["python3", "-c", Self.manager, address, Place.tandem.path, "serve", "--data", "data", "--channels", Place.channels])
    }

    @Test("a socket of the manager is served on its port, whatever the configuration's is")
    func inheritedSocket() async throws {
        try await Stage.run { stage in
            let process = try serve(stage, on: "127.0.0.1")
            try await eventually("the hub to be ready") {
                if !process.isRunning { throw Timeout(description: process.errors) }
                return process.output.contains("Tandem is ready")
            }
            let port = try #require(process.output.split(separator: "\n").first)
            #expect(process.output.contains("Tandem is ready at http://127.0.0.1:\(port)\n"))
            #expect(process.output.contains("  build: debug"), "a build that is slow to publish says so")
            let health = try stage.start(Place.tandem, ["health", "--ready", "--url", "http://127.0.0.1:\(port)"])
            #expect(try await health.waitForEnd().code == 0, "\(health.errors)")
        }
    }

    @Test("a socket that others can reach is refused while the secrets are those of a hub for this machine")
    func inheritedPublicSocket() async throws {
        try await Stage.run { stage in
            let process = try serve(stage, on: "0.0.0.0")
            #expect(try await process.waitForEnd().code == 78)
            #expect(process.errors.contains("listen.host 127.0.0.1 is for this machine only"), "\(process.errors)")
        }
    }
}
