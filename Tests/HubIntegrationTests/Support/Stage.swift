import Foundation
import GatewaySimulators
import HubCore
import HubJSON
import HubTesting

/// Where one test runs: a folder of its own and the programs it started, all gone afterwards.
///
/// Used by one task at a time.
final class Stage {
    let folder: URL
    private(set) var children: [ChildProcess] = []

    private init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Runs a test on a stage, and ends every program that is left when it is over.
    /// - Parameter seconds: that the test takes among others, roughly, where these are many.
    static func run<Result>(seconds: Int = 0, _ body: (Stage) async throws -> Result) async throws -> Result {
        await Slots.shared.take(seconds: seconds)
        let outcome: Swift.Result<Result, any Error>
        let stage: Stage?
        do {
            let own = try Stage()
            stage = own
            do { outcome = .success(try await body(own)) } catch { outcome = .failure(error) }
        } catch {
            stage = nil
            outcome = .failure(error)
        }
        for child in stage?.children ?? [] { await child.end() }
        if let folder = stage?.folder { try? FileManager.default.removeItem(at: folder) }
        await Slots.shared.giveBack()
        return try outcome.get()
    }

    func start(
        _ executable: URL, _ arguments: [String], environment: [String: String] = [:], input: Pipe? = nil
    ) throws -> ChildProcess {
        let child = try ChildProcess(
            executable, arguments, environment: Self.environment.merging(environment) { $1 }, folder: folder, input: input)
        children.append(child)
        return child
    }

    /// Writes a file into the stage's folder and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        let file = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// Only what programs need to run: settings of whoever runs the tests must not change what is tested. The sanitizers' say
    /// where a program of a sanitized build writes what it finds.
    private static let passedOn = ["PATH", "HOME", "LANG", "TMPDIR", "ASAN_OPTIONS", "TSAN_OPTIONS", SlowBuild.variable]
    private static let environment: [String: String] = {
        var environment = ProcessInfo.processInfo.environment.filter { passedOn.contains($0.key) }
        environment["NO_PROXY"] = "*"
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment["PYTHONUNBUFFERED"] = "1"
        return environment
    }()
}

/// Where things are.
enum Place {
    static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    static let package = tests.deletingLastPathComponent().deletingLastPathComponent()
    static let channels = package.appendingPathComponent("channels").path
    /// The folder of this test bundle, where the products are.
    static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    static let tandem = products.appendingPathComponent("tandem")
    static let gateways = products.appendingPathComponent("tandem-gateways")
    static let loadTest = products.appendingPathComponent("tandem-loadtest")
    static let venv = package.appendingPathComponent(".build/test-venv")
}

// MARK: - The hub

/// How the hubs of a test are reached.
enum Wire {
    /// They have a certificate, and scripts speak https and wss.
    @TaskLocal static var isSecure = false
}

/// A running `tandem serve` on a free port.
struct Hub {
    let process: ChildProcess
    let port: Int
    /// Nil: plain.
    var certificate: TestCertificate?
    var url: String { "\(certificate == nil ? "http" : "https")://127.0.0.1:\(port)" }
    /// The hub's log.
    var log: String { process.errors }
}

extension Stage {
    /// Starts a hub and waits until it is ready.
    /// - Parameters:
    ///   - data: the same folder again goes on with what an earlier hub stored.
    ///   - shell: run in the hub's process before the hub, for its limits.
    func hub(
        loops: Int = 2, data: String = "data", shell: String? = nil, gateways: Gateways? = nil, arguments: [String] = [],
        environment: [String: String] = [:],
        certificate: TestCertificate? = nil
    ) async throws -> Hub {
        let certificate = try certificate ?? (Wire.isSecure ? TestCertificate(.init(intermediates: 1)) : nil)
        var settings = gateways?.settings ?? [:]
        settings["TANDEM_TLS_CERT"] = certificate?.certificatePath
        settings["TANDEM_TLS_KEY"] = certificate?.keyPath
        let serve =
            [
                "serve", "--port", "0", "--data", folder.appendingPathComponent(data).path, "--channels", Place.channels, "--loops",
                String(loops), "--log-level", "debug",
            ] + arguments
        let process =
            try shell.map { shell in
                try start(
                    URL(fileURLWithPath: "/bin/bash"), ["-c", shell + "; exec \"$@\"", "bash", Place.tandem.path] + serve,
                    environment: settings.merging(environment) { $1 })
            } ?? start(Place.tandem, serve, environment: settings.merging(environment) { $1 })
        let prefix = "Tandem is ready at \(certificate == nil ? "http" : "https")://127.0.0.1:"
        var port: Int?
        try await eventually("the hub to be ready") {
            if !process.isRunning { throw Timeout(description: "the hub ended while starting: \(process.errors)") }
            let text = process.output
            guard text.contains("\n"), let line = text.split(separator: "\n").first else { return false }
            guard line.hasPrefix(prefix) else { throw Timeout(description: "not the banner: \(line)") }
            port = Int(line.dropFirst(prefix.count))
            return port != nil
        }
        return Hub(process: process, port: port ?? 0, certificate: certificate)
    }
}

// MARK: - The gateways

/// Running simulators of FCM and APNs.
struct Gateways {
    let process: ChildProcess
    /// Environment of a hub that uses these gateways.
    var settings: [String: String]
    let control: String
}

extension Stage {
    /// - Parameter name: of their folder; another name for other keys.
    func gateways(in name: String = "gateways") async throws -> Gateways {
        let keys = folder.appendingPathComponent(name)
        if name == "gateways" { try await GatewayKeys.shared.write(to: keys) }
        let process = try start(Place.gateways, ["--data", keys.path])
        try await eventually("the gateways to be ready") {
            if !process.isRunning { throw Timeout(description: "the gateways ended while starting: \(process.errors)") }
            return process.output.contains("ready\n")
        }
        let text = try String(contentsOf: keys.appendingPathComponent("gateways.env"), encoding: .utf8)
        var settings: [String: String] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix("export ") {
            let parts = line.dropFirst("export ".count).split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            settings[String(parts[0])] = parts[1].trimmingCharacters(in: CharacterSet(charactersIn: "'\""))
        }
        let control = settings.removeValue(forKey: "TANDEM_GATEWAYS_CONTROL") ?? ""
        return Gateways(process: process, settings: settings, control: control)
    }
}

/// Keys and certificates of the simulators, made once for all tests: most of what a start of theirs costs.
actor GatewayKeys {
    static let shared = GatewayKeys()
    private var making: Task<[String: Data], any Error>?

    func write(to folder: URL) async throws {
        let task = making ?? Task { try Self.make() }
        making = task
        let files = try await task.value
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, data) in files { try data.write(to: folder.appendingPathComponent(name)) }
    }

    private static func make() throws -> [String: Data] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-test-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try SimulatedGateways(.init(folder: folder.path)).stop()
        var files: [String: Data] = [:]
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            files[file.lastPathComponent] = try Data(contentsOf: file)
        }
        return files
    }
}

// MARK: - Python

extension Stage {
    /// Runs a scenario of a script in `Python/` against a hub, and returns the line of JSON that it prints at its end.
    func python(
        _ script: String, _ scenario: String, hub: Hub, gateways: Gateways? = nil, environment: [String: String] = [:]
    ) async throws -> JSONValue {
        var own = ["HUB_URL": hub.url, "HUB_PID": String(hub.process.pid), "HUB_LOG": hub.process.errorPath]
        own["GATEWAYS_URL"] = gateways?.control
        if let certificate = hub.certificate {
            own["HUB_CA"] = certificate.authorityPath
            // Where Pysher's WebSocket library looks.
            own["WEBSOCKET_CLIENT_CA_BUNDLE"] = certificate.authorityPath
        }
        let run = try await PythonLauncher.shared.start(
            script, scenario, environment: Self.environment.merging(own) { $1 }.merging(environment) { $1 }, folder: folder)
        let code = try await run.waitForEnd()
        guard code == 0 else {
            throw ScriptFailure(description: "\(script) \(scenario) ended with \(code): \(run.errors)\n\(hub.log.suffix(2000))")
        }
        guard let line = run.output.split(separator: "\n").last else {
            throw ScriptFailure(description: "\(script) \(scenario) printed nothing: \(run.errors)")
        }
        return try JSONValue(parsing: String(line))
    }
}

struct ScriptFailure: Error, CustomStringConvertible {
    let description: String
}

/// The Python with the third-party clients: made by whoever needs it first.
actor PythonEnvironment {
    static let shared = PythonEnvironment()
    private var making: Task<URL, any Error>?

    func interpreter() async throws -> URL {
        let task = making ?? Task { try await Self.make() }
        making = task
        return try await task.value
    }

    private static func make() async throws -> URL {
        let folder = FileManager.default.temporaryDirectory
        var environment = ProcessInfo.processInfo.environment
        environment["PIP_NO_INPUT"] = "1"
        let script = try ChildProcess(
            URL(fileURLWithPath: "/bin/bash"), [Place.tests.appendingPathComponent("python-env.sh").path, Place.venv.path],
            environment: environment, folder: folder)
        let end = try await script.waitForEnd(within: Patience.installation)
        guard end.code == 0 else { throw ScriptFailure(description: "python-env.sh failed: \(script.errors)\(script.output)") }
        return Place.venv.appendingPathComponent("bin/python")
    }
}
