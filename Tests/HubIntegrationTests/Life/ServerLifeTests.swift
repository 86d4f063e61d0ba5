import Foundation
import HubCore
import HubTesting
import Testing

/// How a hub begins and ends.
@Suite struct ServerLifeTests {
    /// EX_USAGE and EX_CONFIG of sysexits.h.
    private static let usage: Int32 = 64
    private static let badConfiguration: Int32 = 78

    @Test func probes() async throws {
        let result = try await Stage.run { stage in try await stage.python("life/life.py", "probes", hub: try await stage.hub()) }
        #expect(result["health"]?[0] == 200 && result["ready"] == [200, ["ready": true]])
        for refusal in result["posted"]?.arrayValue ?? [.null] { #expect(refusal[0] == 405 && refusal[2] == "GET, HEAD") }
        #expect(result["plain"]?[0] == 426 && result["plain"]?[2] == "websocket", "who comes to the WebSocket endpoint without a handshake")
    }

    @Test(arguments: [1, 2]) func clientsAreSentElsewhere(loops: Int) async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: loops)
            let began = ContinuousClock.now
            let result = try await stage.python("life/life.py", "drain", hub: hub)
            #expect(try await hub.process.waitForEnd() == ChildProcess.End(code: 0, wasSignalled: false))
            #expect(ContinuousClock.now - began < .seconds(60) * SlowBuild.factor, "ten for the hub, the rest for the script's own start")
            #expect(result["unready"]?[0] == 503)
            #expect(result["codes"] == .array(Array(repeating: 4200, count: 6)))
            #expect(result["errors"] == .array(Array(repeating: [4200], count: 6)))
            #expect(result["reasons"]?.count == 1)
        }
    }

    @Test("a request that had come in part is answered before the hub ends, and so is one that comes meanwhile")
    func answersAtTheEnd() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let result = try await stage.python("life/life.py", "half_sent", hub: hub)
            #expect(result["late"]?.stringValue?.contains("shutting down") == true)
            #expect(result["slow"] == "HTTP/1.1 503 Service Unavailable")
            #expect(try await hub.process.waitForEnd() == ChildProcess.End(code: 0, wasSignalled: false))
        }
    }

    @Test func aSecondSignalEndsAtOnce() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            _ = try await stage.python("life/life.py", "impatient", hub: hub)
            #expect(try await hub.process.waitForEnd() == ChildProcess.End(code: 1, wasSignalled: false))
        }
    }

    /// Runs `tandem` to its end.
    private func tandem(
        _ arguments: [String], environment: [String: String] = [:], files: [String: String] = [:]
    ) async throws -> (code: Int32, output: String, errors: [String]) {
        try await Stage.run { stage in
            for (name, text) in files { _ = try stage.write(text, to: name) }
            let process = try stage.start(Place.tandem, arguments, environment: environment)
            let end = try await process.waitForEnd()
            #expect(!end.wasSignalled)
            return (end.code, process.output, process.errors.split(separator: "\n").map(String.init))
        }
    }

    @Test func aPortInUse() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let second = try stage.start(Place.tandem, ["serve", "--port", "\(hub.port)", "--data", "other", "--channels", Place.channels])
            #expect(try await second.waitForEnd().code == 1)
            let lines = second.errors.split(separator: "\n")
            #expect(lines.count == 1 && lines[0].hasPrefix("tandem: ") && lines[0].contains("\(hub.port)"))
            #expect(second.output.isEmpty, "it said that it was ready")
            #expect(!FileManager.default.fileExists(atPath: stage.folder.appendingPathComponent("other").path), "it took up a store")
            #expect(hub.process.isRunning)
        }
    }

    @Test("a second hub on one store is refused before it touches anything, and the port is looked at first", arguments: [true, false])
    func aStoreInUse(isOnSamePort: Bool) async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            try FileManager.default.createSymbolicLink(
                at: stage.folder.appendingPathComponent("linked"), withDestinationURL: stage.folder.appendingPathComponent("data"))
            let port = isOnSamePort ? hub.port : 0
            let second = try stage.start(Place.tandem, ["serve", "--port", "\(port)", "--data", "linked", "--channels", Place.channels])
            #expect(try await second.waitForEnd().code == (isOnSamePort ? 1 : Self.badConfiguration))
            let lines = second.errors.split(separator: "\n")
            #expect(lines.count == 1 && second.output.isEmpty, "\(second.errors)")
            #expect(second.errors.contains(isOnSamePort ? "port is in use" : "pid \(hub.process.pid);"), "\(second.errors)")
            #expect(hub.process.isRunning)
            hub.process.send(SIGTERM)
            #expect(try await hub.process.waitForEnd().code == 0)
            _ = try await stage.hub(data: "linked")
        }
    }

    @Test(
        "a full disk: what was answered is there, the rest is a 503, /ready follows, the log has a line in ten seconds, and all recovers by itself"
    )
    func aFullDisk() async throws {
        try await Stage.run { stage in
            // Without the signal that would end a process whose file has come to its limit the write fails.
            let hub = try await stage.hub(shell: "trap '' XFSZ")
            let store = ["STORE": stage.folder.appendingPathComponent("data/tandem.db").path]
            let result = try await stage.python("life/life.py", "full_disk", hub: hub, environment: store)
            let refusal: JSONValue = [503, "1", true]
            #expect(result["refused"] == .array(Array(repeating: refusal, count: 40)) && result["unready"]?[0] == 503)
            #expect(result["unready"]?[1]?.stringValue?.contains("store takes no writes") == true)
            #expect(result["socket_only"] == 200, "what is not stored goes on")
            #expect(result["routes"] == [refusal, refusal, refusal, refusal])
            #expect(result["ready_again"] == 200 && result["published_again"] == 200)
            for name in ["missing", "beyond", "gaps"] { #expect(result[name] == 0, "\(name)") }
            let lines = hub.log.split(separator: "\n").filter { $0.contains("a publish could not be stored") }
            let periods = Int(result["seconds"]?.intValue ?? 0) / 10
            #expect(!lines.isEmpty && lines.count <= periods + 3, "\(lines)")
            #expect(hub.log.contains("not ready: the store takes no writes") && hub.log.contains("ready again"))
        }
    }

    private static let definition = """
        channel: presence-quiz-{session}
        events:
          session-started:
            to: all
            policy: critcal
            notification: { title: "T", body: "B" }
        """

    @Test(arguments: ["serve", "check"]) func aMistakeInADefinition(command: String) async throws {
        let result = try await tandem(
            [command, "--channels", "channels"] + (command == "serve" ? ["--port", "0"] : []),
            files: ["channels/quiz.yaml": Self.definition])
        #expect(result.code == Self.badConfiguration)
        #expect(result.errors.count == 1 && result.errors[0].contains("quiz.yaml:5") && result.errors[0].contains("critical"))
        #expect(!result.output.contains("ready"))
    }

    @Test(arguments: ["serve", "check"]) func anUnknownKeyInTheConfiguration(command: String) async throws {
        let result = try await tandem(
            [command, "--config", "tandem.yaml"], files: ["tandem.yaml": "listen:\n  host: 127.0.0.1\n  prot: 0\n"])
        #expect(result.code == Self.badConfiguration)
        #expect(result.errors.count == 1 && result.errors[0].contains("tandem.yaml:3") && result.errors[0].contains("port"))
    }

    @Test func badValuesAreRefused() async throws {
        for (arguments, environment, word) in [
            (["serve", "--port", "99999"], [:], "--port"), (["serve", "--port", "x"], [:], "--port"),
            (["serve", "--config", "missing.yaml"], [:], "missing.yaml"), (["serve", "--channels", "nowhere"], [:], "nowhere"),
            (["serve", "--port", "0"], ["TANDEM_LOOPS": "none"], "TANDEM_LOOPS"),
            (["serve", "--port", "0"], ["APNS_KEY_ID": "KEY"], "APNS"),
            (["serve", "--port", "0"], ["GOOGLE_APPLICATION_CREDENTIALS": "nowhere.json"], "nowhere.json"),
        ] as [([String], [String: String], String)] {
            let result = try await tandem(arguments, environment: environment)
            #expect(result.code == Self.badConfiguration, "\(arguments) \(environment): \(result.errors)")
            #expect(result.errors.contains { $0.contains(word) }, "\(arguments) \(environment): \(result.errors)")
        }
    }

    @Test func wellKnownCredentialsStayOnThisMachine() async throws {
        let result = try await tandem(["serve", "--host", "0.0.0.0", "--port", "0", "--channels", Place.channels])
        #expect(result.code == Self.badConfiguration)
        #expect(result.errors.count == 1 && result.errors[0].contains("TANDEM_APP_KEY"))
    }

    @Test(
        "a short secret ends the start where others can reach the hub, and is a warning of check on this machine; readable files are named")
    func secrets() async throws {
        let file = "listen: { host: 0.0.0.0, port: 0 }\napps:\n  - { id: 1, key: mine, secret: short }\n"
        for command in ["serve", "check"] {
            let refused = try await tandem(
                [command, "--config", "tandem.yaml", "--channels", Place.channels], files: ["tandem.yaml": file])
            #expect(refused.code == Self.badConfiguration && refused.errors.count == 1)
            #expect(
                refused.errors.first?.contains("tandem.yaml:3: apps[0].secret") == true
                    && refused.errors.first?.contains("openssl rand") == true)
        }
        let local = file.replacingOccurrences(of: "0.0.0.0", with: "127.0.0.1")
        try await Stage.run { stage in
            let path = try stage.write(local, to: "tandem.yaml")
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            let check = try stage.start(Place.tandem, ["check", "--config", "tandem.yaml", "--channels", Place.channels])
            #expect(try await check.waitForEnd().code == 0 && check.errors.isEmpty)
            #expect(check.output.contains("warning: tandem.yaml:3: apps[0].secret has fewer than 16 characters"))
            #expect(check.output.contains("warning: --config: tandem.yaml holds secrets") && check.output.contains("chmod 600 tandem.yaml"))
        }
    }

    @Test func anUnknownFlag() async throws {
        for arguments in [["serve", "--prot", "0"], ["unheard-of"], ["auth"], ["serve", "--port"]] {
            let result = try await tandem(arguments)
            #expect(result.code == Self.usage, "\(arguments)")
            #expect(!result.errors.isEmpty)
        }
    }

    @Test func checkSaysWhatIsGood() async throws {
        let result = try await tandem(["check", "--channels", Place.channels])
        #expect(result.code == 0 && result.errors.isEmpty)
        #expect(
            result.output.contains("configuration: good") && result.output.contains("channel definitions: good")
                && result.output.contains("quiz"))
    }
}
