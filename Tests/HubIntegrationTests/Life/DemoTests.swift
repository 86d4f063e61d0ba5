import Foundation
import HubCore
import Testing

/// `tandem demo` as a visitor's machine sees it: its sockets, its processes and its folder. Tests/BrowserTests/parts/demo.py sees its page.
@Suite struct DemoTests {
    private struct Demo {
        let process: ChildProcess
        let url: String
        /// Where its temporary folder is.
        let folder: URL

        var page: URLComponents { URLComponents(string: url) ?? URLComponents() }

        /// Everything that the demo has left behind: its folder, and processes that name it.
        func remains() -> [String] {
            let folders = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return folders.filter { $0.hasPrefix("tandem-demo-") } + processes.compactMap(command).filter { $0.contains(folder.path) }
        }

        private func command(of process: String) -> String? {
            guard Int(process) != nil, let bytes = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Starts a demo and waits for its address.
    /// - Parameter shell: a command that starts it in the end, with `$@` in it; nil: none.
    private func start(on stage: Stage, shell: String? = nil) async throws -> Demo {
        let folder = stage.folder.appendingPathComponent("temporary")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let program = shell == nil ? Place.tandem : URL(fileURLWithPath: "/bin/sh")
        let arguments = shell.map { ["-c", $0, "sh", Place.tandem.path] } ?? []
        let process = try stage.start(program, arguments + ["demo", "--no-open"], environment: ["TMPDIR": folder.path])
        try await eventually("the demo's address") {
            if !process.isRunning { throw Timeout(description: "the demo ended while starting: \(process.errors)") }
            return process.output.contains("Ctrl-C ends it.")
        }
        let url = process.output.split(separator: "\n").first { $0.contains("http://") }
        return Demo(process: process, url: url.map { $0.trimmingCharacters(in: .whitespaces) } ?? "", folder: folder)
    }

    private func play(_ scenario: String, _ demo: Demo, on stage: Stage) async throws -> JSONValue {
        let hub = Hub(process: demo.process, port: demo.page.port ?? 0)
        return try await stage.python("life/demo.py", scenario, hub: hub, environment: ["DEMO_URL": demo.url])
    }

    @Test("four phones, one of them connected: screen, lock screen, airplane mode, and the death of the hub")
    func phones() async throws {
        let result = try await Stage.run(seconds: 10) { stage in try await play("phones", try await start(on: stage), on: stage) }
        // Told, told twice, missed, under way.
        #expect(result["closed"] == [3, 0, 0, 0] && result["rang"] == ["ana", "ben", "cleo", "cleo-2"], "\(result)")
        #expect(result["live"] == ["screen", "await_receipt", "confirmed"] && result["live_notes"] == 0, "\(result)")
        #expect(result["kept"] == ["kept", "await_receipt", true] && result["held_back"] == 1, "\(result)")
        #expect(result["back"] == ["lock", false] && result["lost"] == 1006, "\(result)")
        #expect(result["missed"] == 3 && result["gone"] == 0, "who comes back is sent the question, and its notification goes: \(result)")
        #expect(result["down"] == ["down", .null] && result["down_score"]?[2] == 0, "\(result)")
        #expect(result["restarted"] == [12, 0, 0, 0] && result["by_hand"] == "down", "\(result)")
    }

    @Test("strangers, other names for loopback and pages of other origins are refused")
    func strangers() async throws {
        let result = try await Stage.run { stage in try await play("strangers", try await start(on: stage), on: stage) }
        #expect(result["paths"] == [404, 404, 404, 404], "\(result)")
        #expect(result["hosts"] == [421, 421, 421] && result["origins"] == [403, 403, 403, 403], "\(result)")
        #expect(result["wishes"] == [400, 400, 400, 405] && result["asked"] == 0, "\(result)")
        #expect(result["listens"] == ["127.0.0.1"], "\(result)")
        #expect(result["page"]?[0] == 200 && result["page"]?[1]?.stringValue?.contains("default-src 'none'") == true, "\(result)")
    }

    @Test("a signal ends it, and nothing stays behind", arguments: [SIGINT, SIGTERM])
    func signalled(signal: Int32) async throws {
        try await Stage.run { stage in
            let demo = try await start(on: stage)
            #expect(demo.remains().count == 3, "a folder, a hub and its keeper: \(demo.remains())")
            demo.process.send(signal)
            #expect(try await demo.process.waitForEnd() == ChildProcess.End(code: 0, wasSignalled: false))
            #expect(demo.remains() == [])
        }
    }

    @Test("a demo that is killed leaves no process and no folder, whether its hub runs or not", arguments: [true, false])
    func killed(hubRuns: Bool) async throws {
        try await Stage.run { stage in
            let demo = try await start(on: stage)
            if !hubRuns { #expect(try await play("kill_hub", demo, on: stage)["hub"] == "down") }
            #expect(demo.remains().count == (hubRuns ? 3 : 2))
            demo.process.send(SIGKILL)
            try await eventually("the rest to go") { demo.remains() == [] }
        }
    }

    @Test("it ends with the process that started it")
    func orphaned() async throws {
        try await Stage.run { stage in
            let demo = try await start(on: stage, shell: #""$@" & wait"#)
            demo.process.send(SIGKILL)
            try await eventually("the demo to go") { demo.remains() == [] }
        }
    }

    @Test("a port that is taken is one line, and nothing stays behind")
    func portTaken() async throws {
        try await Stage.run { stage in
            let demo = try await start(on: stage)
            let port = String(demo.page.port ?? 0)
            let folder = stage.folder.appendingPathComponent("other")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let second = try stage.start(Place.tandem, ["demo", "--no-open", "--port", port], environment: ["TMPDIR": folder.path])
            #expect(try await second.waitForEnd().code == 1)
            #expect(second.errors.hasPrefix("tandem: ") && second.errors.contains(port) && second.errors.split(separator: "\n").count == 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
        }
    }
}
