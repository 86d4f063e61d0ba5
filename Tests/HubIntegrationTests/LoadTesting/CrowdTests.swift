import Foundation
import HubCore
import HubJSON
import HubTesting
import Testing

/// The parts of a comparison of servers, with a small crowd at a real hub; timings do not matter here.
@Suite("tandem-loadtest crowd and report")
struct CrowdTests {
    private func run(_ stage: Stage, _ arguments: [String]) async throws -> (code: Int32?, output: String, errors: String) {
        let process = try stage.start(Place.loadTest, arguments)
        let end = try await process.waitForEnd(within: Patience.script)
        return (end.code, process.output, process.errors)
    }

    @Test("a crowd is let in, and each event's last delivery is measured; two of its reports stand beside each other")
    func crowd() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let files = ["one.json", "two.json"].map { stage.folder.appendingPathComponent($0).path }
            for file in files {
                let crowd = try await run(
                    stage,
                    [
                        "crowd", "--url", "ws://127.0.0.1:\(hub.port)", "--json", file, "--server-pid", "\(hub.process.pid)",
                        "--connections", "40",
                        "--opening", "7", "--rate", "10", "--seconds", "1", "--warmup", "0.2",
                    ])
                #expect(crowd.code == 0, "\(crowd.output) \(crowd.errors)")
            }
            let report = try JSONValue(parsing: String(decoding: FileManager.default.contents(atPath: files[0]) ?? Data(), as: UTF8.self))
            func count(_ name: String) -> Double {
                report["latencies"]?.arrayValue?.first { $0["name"]?.stringValue == name }?["count"]?.number ?? 0
            }
            // Each event has one last delivery, however many it has in all.
            #expect(count("publish due to last delivery") > 0)
            #expect(count("publish due to delivery") == 40 * count("publish due to last delivery"))
            let names = report["figures"]?.arrayValue?.compactMap { $0["name"]?.stringValue } ?? []
            for name in ["last delivery", "let in per second", "server CPU per connection", "server memory per connection", "events lost"] {
                #expect(names.contains(name), "\(name) is not in \(names)")
            }

            let page = stage.folder.appendingPathComponent("both.html").path
            let both = try await run(stage, ["report", "--title", "Both <days>", "--html", page] + files)
            #expect(both.code == 0, "\(both.errors)")
            #expect(both.output.hasPrefix("Both <days>\n") && both.output.contains("last delivery, ms"))
            let html = String(decoding: FileManager.default.contents(atPath: page) ?? Data(), as: UTF8.self)
            #expect(html.contains("<h1>Both &#60;days&#62;</h1>") && html.contains("</html>"))
        }
    }

    @Test("files that are no reports, and crowds that are none, are named")
    func mistakes() async throws {
        try await Stage.run { stage in
            let file = try stage.write("{}", to: "other.json")
            let other = try await run(stage, ["report", file])
            #expect(other.code == 1 && other.errors.contains("\(file) is not a load test's report"), "\(other.errors)")
            let gone = try await run(stage, ["report", "/nowhere.json"])
            #expect(gone.code == 1 && gone.errors.contains("/nowhere.json could not be read"), "\(gone.errors)")
            let threads = try await run(stage, ["crowd", "--threads", "2"])
            #expect(threads.code == 64 && threads.errors.contains("one thread"), "\(threads.errors)")
        }
    }
}
