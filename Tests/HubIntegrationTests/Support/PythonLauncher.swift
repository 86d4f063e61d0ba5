import Foundation
import HubCore
import HubTesting

/// Runs scripts in `Python/`: `support/launcher.py` makes each a process that has the third-party packages loaded. Loading alone would
/// take most scripts longer than their work. The launcher ends with the test run.
actor PythonLauncher {
    static let shared = PythonLauncher()
    private var starting: Task<FileHandle, any Error>?

    /// One run of a script.
    struct Run: Sendable {
        let name: String
        fileprivate let files: URL

        var output: String { text("out") }
        var errors: String { text("err") }

        fileprivate func text(_ kind: String) -> String {
            FileManager.default.contents(atPath: files.appendingPathExtension(kind).path).map { String(decoding: $0, as: UTF8.self) } ?? ""
        }

        /// - Returns: the exit code, below 0 for a signal.
        func waitForEnd() async throws -> Int {
            do {
                try await eventually("\(name) to end", within: Patience.script) { !text("end").isEmpty }
            } catch {
                try? await PythonLauncher.shared.end(self)
                throw error
            }
            return Int(text("end")) ?? -1
        }
    }

    /// - Parameters:
    ///   - environment: all of it.
    ///   - folder: where the output goes and the script runs.
    func start(_ script: String, _ scenario: String, environment: [String: String], folder: URL) async throws -> Run {
        let run = Run(name: "\(script) \(scenario)", files: folder.appendingPathComponent("\(scenario)-\(UUID().uuidString.prefix(8))"))
        try await send([
            "script": .string(Place.tests.appendingPathComponent("Python/\(script)").path), "scenario": .string(scenario),
            "folder": .string(folder.path), "environment": .object(environment.mapValues { .string($0) }), "files": .string(run.files.path),
        ])
        return run
    }

    fileprivate func end(_ run: Run) async throws {
        try await send(["end": .string(run.files.path)])
    }

    private func send(_ request: [String: JSONValue]) async throws {
        let task = starting ?? Task { try await Self.launch() }
        starting = task
        try await task.value.write(contentsOf: Data((JSONValue.object(request).text + "\n").utf8))
    }

    private static func launch() async throws -> FileHandle {
        // A launcher that has ended early must not end the tests with a signal.
        signal(SIGPIPE, SIG_IGN)
        let input = Pipe()
        _ = try SpawnedProgram(
            await PythonEnvironment.shared.interpreter().path, [Place.tests.appendingPathComponent("Python/support/launcher.py").path],
            environment: ProcessInfo.processInfo.environment.merging(["PYTHONDONTWRITEBYTECODE": "1"]) { $1 },
            input: .descriptor(input.fileHandleForReading), output: .nothing)
        return input.fileHandleForWriting
    }
}
