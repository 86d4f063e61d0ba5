internal import Foundation
internal import Glibc
internal import HubCore

/// The hub as the demo's child process. Any thread; starts come one after the other.
final class HubProcess: Sendable {
    private let folder: String
    private let environment: [String]
    private let lifeline: Int32
    /// 0: none runs.
    private let pid = Guarded<pid_t>(0)

    private static let readySeconds = 20

    /// - Parameters:
    ///   - folder: the demo's folder, with `hub.yaml` and `channels/` in it.
    ///   - environment: all of the hub's.
    ///   - lifeline: the end of a pipe that the hub watches: it closes when the demo dies.
    init(folder: String, environment: [String], lifeline: Int32) {
        self.folder = folder
        self.environment = environment
        self.lifeline = lifeline
    }

    /// Whether the hub runs; collects it if it has ended by itself.
    var isRunning: Bool {
        pid.withLock { pid in
            guard pid > 0 else { return false }
            guard waitpid(pid, nil, WNOHANG) == pid else { return true }
            pid = 0
            return false
        }
    }

    /// Starts the hub and waits until it serves.
    /// - Returns: its port, a free one that the system chose.
    /// - Throws: with the hub's own words when it does not start.
    func start() async throws(DemoError) -> UInt16 {
        let output = "\(folder)/hub.out"
        let started = ProgramStart.startSelf(["demo", "hub", folder], environment: environment, input: lifeline, output: output)
        guard let started else { throw DemoError("cannot start the hub: raise the limit of processes") }
        pid.withLock { $0 = started }
        let end = ContinuousClock.now + .seconds(Self.readySeconds)
        while ContinuousClock.now < end {
            let text = String(decoding: FileManager.default.contents(atPath: output) ?? Data(), as: UTF8.self)
            if let match = text.firstMatch(of: /Tandem is ready at http:\/\/127\.0\.0\.1:([0-9]+)\n/), let port = UInt16(match.1) {
                return port
            }
            guard isRunning else { throw DemoError("the hub has ended at its start: \(text.split(separator: "\n").last ?? "no word")") }
            // A cancelled sleep means that the demo ends.
            guard (try? await Task.sleep(for: .milliseconds(10))) != nil else { break }
        }
        throw DemoError("the hub is not ready after \(Self.readySeconds) s: is the machine very busy?")
    }

    /// Kills the hub as `kill -9` does, and waits until it is gone. Nothing happens when it does not run.
    func kill() {
        let ended = pid.withLock { pid in
            defer { pid = 0 }
            return pid
        }
        guard ended > 0 else { return }
        Glibc.kill(ended, SIGKILL)
        waitpid(ended, nil, 0)
    }
}
