import Foundation
import HubCore
import HubJSON
import HubTesting
import Testing

/// Runs the checks in `Python/conformance`, each by its name, against one hub for all of them.
///
/// The Python program starts the hub, with an app for every set of settings that a check needs. It runs as many checks at a time as it
/// likes; a test asks for one and waits. Everything ends with the program's standard input.
final class ConformanceRun: Sendable {
    /// The run of the suite around the running test.
    @TaskLocal static var current: ConformanceRun?

    private let process: ChildProcess
    private let input: FileHandle
    private let outcomes = Outcomes()

    private init(process: ChildProcess, input: FileHandle) {
        self.process = process
        self.input = input
    }

    /// Runs a whole suite with the program beside it.
    static func around(_ suite: () async throws -> Void) async throws {
        // A program that has ended early is told of by the tests, and must not end them with a signal.
        signal(SIGPIPE, SIG_IGN)
        try await Stage.run(seconds: 80) { stage in
            let pipe = Pipe()
            let certificate = try TestCertificate(.init(intermediates: 1))
            let process = try stage.start(
                try await PythonEnvironment.shared.interpreter(), [Place.tests.appendingPathComponent("Python/conformance").path, "serve"],
                environment: [
                    "TANDEM": Place.tandem.path, "CHANNELS": Place.channels, "CONFORMANCE_CERT": certificate.certificatePath,
                    "CONFORMANCE_KEY": certificate.keyPath, "CONFORMANCE_CA": certificate.authorityPath,
                ], input: pipe)
            let run = ConformanceRun(process: process, input: pipe.fileHandleForWriting)
            let reading = Task { await run.read() }
            // Its files are deleted with it.
            defer { withExtendedLifetime(certificate) {} }
            try await $current.withValue(run) { try await suite() }
            try pipe.fileHandleForWriting.close()
            let end = try await process.waitForEnd()
            reading.cancel()
            guard end.code == 0 else { throw ScriptFailure(description: "the checks ended with \(end): \(process.errors)") }
        }
    }

    /// The names of all checks.
    func names() async throws -> [String] {
        var names: [String] = []
        try await eventually("the names of the checks") {
            if !process.isRunning { throw ScriptFailure(description: "the program that runs the checks has ended: \(process.errors)") }
            guard let line = process.output.split(separator: "\n").first, let value = try? JSONValue(parsing: String(line)) else {
                return false
            }
            names = value["checks"]?.arrayValue?.compactMap(\.stringValue) ?? []
            return !names.isEmpty
        }
        return names
    }

    /// Runs one check and records what it found.
    func check(_ name: String, sourceLocation: SourceLocation) async throws {
        try input.write(contentsOf: Data("\(name)\n".utf8))
        if let error = try await outcomes.outcome(of: name) {
            Issue.record("\(name): \(error)", sourceLocation: sourceLocation)
        }
    }

    /// Hands each line of the program's output to the test that waits for it.
    private func read() async {
        var seen = 0
        while !Task.isCancelled {
            let lines = process.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            for line in lines.dropFirst(seen) {
                guard let value = try? JSONValue(parsing: String(line)), let name = value["check"]?.stringValue else { continue }
                await outcomes.settle(name, error: value["error"]?.stringValue)
            }
            seen = lines.count
            if !process.isRunning { return await outcomes.fail(process.errors) }
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
    }

    /// Outcomes of the checks, and the tests that wait for one.
    private actor Outcomes {
        private var settled: [String: String?] = [:]
        private var waiting: [String: CheckedContinuation<String?, any Error>] = [:]
        private var failure: ScriptFailure?

        func outcome(of name: String) async throws -> String? {
            if let failure { throw failure }
            if let known = settled.removeValue(forKey: name) { return known }
            return try await withCheckedThrowingContinuation { waiting[name] = $0 }
        }

        func settle(_ name: String, error: String?) {
            if let continuation = waiting.removeValue(forKey: name) {
                continuation.resume(returning: error)
            } else {
                settled[name] = .some(error)
            }
        }

        func fail(_ errors: String) {
            let failure = ScriptFailure(description: "the program that runs the checks has ended: \(errors)")
            self.failure = failure
            for continuation in waiting.values { continuation.resume(throwing: failure) }
            waiting.removeAll()
        }
    }
}

/// Runs one check of `Python/conformance` for the test that calls it.
func conformance(_ check: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let run = try #require(ConformanceRun.current, "only tests inside of ConformanceTests have checks", sourceLocation: sourceLocation)
    try await run.check(check, sourceLocation: sourceLocation)
}

/// Starts the program before the first test of a suite and ends it after the last one.
struct ConformanceScope: SuiteTrait, TestScoping {
    var isRecursive: Bool { false }

    func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        try await ConformanceRun.around(function)
    }
}

/// The checklist of the Pusher protocol (docs/protocol.md, 10): every test's name begins with the id of its entry, C01 to C31.
/// `docs/clients.md` says what the results mean for each library.
///
/// The checks stand in `Python/conformance`, as functions of the names used here, because the clients are third-party
/// ones in Python. Without Swift: `TANDEM=… CHANNELS=… .build/test-venv/bin/python Tests/HubIntegrationTests/Python/conformance run`.
@Suite(ConformanceScope()) struct ConformanceTests {
    @Suite struct Connections {}
    @Suite struct Channels {}
    @Suite struct Users {}
    @Suite struct HTTP {}
    @Suite struct Webhooks {}
    @Suite struct Libraries {}
    @Suite struct Secure {}

    @Test("every check of the scripts is run by a test") func completeness() async throws {
        let checks = try await #require(ConformanceRun.current).names()
        #expect(checks.count > 100)
        let folder = Place.tests.appendingPathComponent("Conformance")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let sources = try files.map { try String(contentsOf: $0, encoding: .utf8) }
        let text = sources.joined()
        for name in checks where name.wholeMatch(of: /c09_v\d+/) == nil { #expect(text.contains("conformance(\"\(name)\")"), "\(name)") }
    }
}
