import Foundation
import HubCore
import Testing

/// The commands with which an operator begins: `init`, `health`, and those that read the file that `init` wrote.
@Suite struct SetupTests {
    private func tandem(_ stage: Stage, _ arguments: [String]) async throws -> (code: Int32, output: String, errors: String) {
        let process = try stage.start(Place.tandem, arguments)
        let end = try await process.waitForEnd()
        #expect(!end.wasSignalled)
        return (end.code, process.output, process.errors)
    }

    @Test("init writes a good configuration with secrets of its own, for its owner alone, and never over another")
    func initialize() async throws {
        try await Stage.run { stage in
            let (first, second) = (stage.folder.appendingPathComponent("a.yaml").path, stage.folder.appendingPathComponent("b.yaml").path)
            var secrets: Set<Substring> = []
            for file in [first, second] {
                let written = try await tandem(stage, ["init", "--config", file, "--channels", Place.channels])
                #expect(written.code == 0 && written.errors.isEmpty && written.output.contains("tandem serve --config \(file)"))
                let attributes = try FileManager.default.attributesOfItem(atPath: file)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
                let text = try String(contentsOfFile: file, encoding: .utf8)
                let found = text.matches(of: /(?:key|secret): "([0-9a-f]{20,})"/).map(\.1)
                #expect(found.count == 3 && found.allSatisfy { !written.output.contains($0) }, "no secret is printed")
                secrets.formUnion(found)
                let checked = try await tandem(stage, ["check", "--config", file])
                #expect(checked.code == 0 && !checked.output.contains("warning"), "\(checked)")
            }
            #expect(secrets.count == 6)
            let before = try Data(contentsOf: URL(fileURLWithPath: first))
            let again = try await tandem(stage, ["init", "--config", first])
            #expect(again.code == 1 && again.errors.contains("exists and stays as it is"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: first)) == before)
            #expect(try await tandem(stage, ["init", "--config", "bare.yaml"]).code == 0)
            let checked = try await tandem(stage, ["check", "--config", "bare.yaml"])
            #expect(checked.code == 0, "without a folder of definitions: \(checked.errors)")
            for wrong in [["--port", "99999"], ["--host", "two words"]] {
                #expect(try await tandem(stage, ["init", "--config", "c.yaml"] + wrong).code == 64)
            }
            #expect(!FileManager.default.fileExists(atPath: stage.folder.appendingPathComponent("c.yaml").path))
        }
    }

    @Test("the commands take their secrets from the file: an event by publish, the nodes by cluster, a signature by auth")
    func commands() async throws {
        try await Stage.run { stage in
            let file = stage.folder.appendingPathComponent("tandem.yaml").path
            #expect(try await tandem(stage, ["init", "--config", file, "--channels", Place.channels]).code == 0)
            let hub = try await stage.hub(arguments: ["--config", file])
            let published = try await tandem(stage, ["publish", "--config", file, "--url", hub.url, "my-channel", "greeting"])
            #expect(published.code == 0, "\(published.errors)")
            #expect(try await tandem(stage, ["publish", "--url", hub.url, "my-channel", "greeting"]).code == 1)
            #expect(try await tandem(stage, ["apps", "list", "--config", file, "--url", hub.url]).code == 0)
            #expect(try await tandem(stage, ["auth", "--config", file, "1.2", "private-x"]).code == 0)
            let missing = try await tandem(stage, ["auth", "--config", file, "--app-id", "9", "1.2", "private-x"])
            #expect(missing.code == 78 && missing.errors.contains("it has no app 9"), "\(missing.errors)")
            #expect(try await tandem(stage, ["auth", "--config", "nowhere.yaml", "1.2", "private-x"]).code == 78)
        }
    }

    @Test("health is 0 where the hub answers, by address and by configuration, and one line and 1 elsewhere", arguments: [false, true])
    func health(isSecure: Bool) async throws {
        try await Wire.$isSecure.withValue(isSecure) {
            try await Stage.run { stage in
                let hub = try await stage.hub()
                let tls =
                    hub.certificate.map { ", tls: { cert: \"\($0.certificatePath)\", key: \"\($0.keyPath)\" }" } ?? ""
                let file = try stage.write("listen: { host: 127.0.0.1, port: \(hub.port)\(tls) }\n", to: "hub.yaml")
                for arguments in [["--url", hub.url], ["--ready", "--url", hub.url], ["--ready", "--config", file]] {
                    let answer = try await tandem(stage, ["health"] + arguments)
                    #expect(answer == (0, "", ""), "\(arguments)")
                }
                hub.process.send(SIGSTOP)
                let silent = try await tandem(stage, ["health", "--timeout", "1", "--url", hub.url])
                #expect(silent.code == 1 && silent.errors.split(separator: "\n").count == 1)
                hub.process.send(SIGCONT)
                hub.process.send(SIGTERM)
                #expect(try await hub.process.waitForEnd().code == 0)
                #expect(try await tandem(stage, ["health", "--url", hub.url]).code == 1)
                for wrong in [["--timeout", "0"], ["--url", "nowhere"], ["more"]] {
                    #expect(try await tandem(stage, ["health"] + wrong).code == 64)
                }
            }
        }
    }

    @Test("doctor looks at machine, files and servers, and its exit code says what it found")
    func doctor() async throws {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            func doctor(_ more: [String], _ environment: [String: String] = [:]) async throws -> (code: Int32, output: String) {
                let settings = gateways.settings.merging(environment) { $1 }
                let arguments = ["doctor", "--channels", Place.channels] + more
                let process = try stage.start(Place.tandem, arguments, environment: settings)
                return (try await process.waitForEnd().code, process.output + process.errors)
            }
            let good = try await doctor(["--public", hub.url])
            #expect(good.code == 0, "\(good.output)")
            #expect(good.output.contains("good: public WebSocket: silent for "), "\(good.output)")
            for word in ["descriptors: ", "memory: ", "clock: ", "store: ", "good: APNs production", "good: FCM", "\(hub.url) is ready"] {
                #expect(good.output.contains(word), "\(word) in \(good.output)")
            }
            let other = ["TANDEM_APP_KEY": "another-key", "TANDEM_APP_SECRET": "a-secret-of-thirty-two-characters"]
            let refused = try await doctor(["--public", hub.url], other)
            #expect(refused.code == 1 && refused.output.contains("problem: public WebSocket: pusher:error"), "\(refused.output)")
            #expect(refused.output.contains("4001"), "\(refused.output)")
            let folder = try await doctor([], ["TANDEM_DATA": "/proc/nowhere"])
            #expect(folder.code == 1 && folder.output.contains("problem: store: "), "\(folder.output)")
            #expect(try await doctor(["--public", "http://127.0.0.1:1"]).code == 1)
            #expect(try await doctor([], ["TANDEM_LOOPS": "many"]).code == 78)
        }
    }

    @Test("every command says what it does and how it is called, with an example")
    func help() async throws {
        try await Stage.run { stage in
            let dump = try await tandem(stage, ["--experimental-dump-help"])
            let root = try #require(try JSONValue(parsing: dump.output)["command"])
            func commands(_ command: JSONValue, _ path: [String]) -> [(path: [String], command: JSONValue)] {
                let children = (command["subcommands"]?.arrayValue ?? []).filter {
                    $0["commandName"] != "help" && $0["shouldDisplay"]?.boolValue != false
                }
                return [(path, command)] + children.flatMap { commands($0, path + [$0["commandName"]?.stringValue ?? ""]) }
            }
            let all = commands(root, ["tandem"])
            #expect(all.count > 20)
            for (path, command) in all {
                let name = path.joined(separator: " ")
                #expect(command["abstract"]?.stringValue?.isEmpty == false, "\(name) has no abstract")
                // A command that only groups others is shown by theirs.
                let isGroup = (command["subcommands"]?.arrayValue ?? []).contains { $0["commandName"] != "help" }
                #expect(isGroup || command["discussion"]?.stringValue?.contains(name) == true, "\(name) has no example")
                for argument in command["arguments"]?.arrayValue ?? [] {
                    let value = argument["valueName"]?.text ?? ""
                    #expect(argument["abstract"]?.stringValue?.isEmpty == false, "\(name): \(value) is not explained")
                }
            }
        }
    }

    @Test("the version names the release and the libraries")
    func version() async throws {
        try await Stage.run { stage in
            let version = try await tandem(stage, ["--version"])
            for word in ["tandem ", "libwebsockets ", "OpenSSL ", "libcurl/", "SQLite ", "libpq "] {
                #expect(version.output.contains(word), "\(word)")
            }
        }
    }
}
