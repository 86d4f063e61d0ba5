import Foundation
import Glibc
import HubCore
import HubJSON
import HubTesting
import Testing

/// The result of a run of `tandem-loadtest`.
private struct LoadResult {
    let end: ChildProcess.End
    let output: String
    let errors: String
    let report: JSONValue

    /// Nil: there is no such figure.
    func figure(_ name: String) -> Double? {
        let found = report["figures"]?.arrayValue?.first { $0["name"]?.stringValue == name }
        return found?["value"]?.number
    }

    /// How many durations a distribution holds.
    func count(_ name: String) -> Double {
        report["latencies"]?.arrayValue?.first { $0["name"]?.stringValue == name }?["count"]?.number ?? 0
    }
}

extension Stage {
    /// Runs a scenario for two seconds.
    fileprivate func load(_ scenario: String, _ hub: Hub, _ arguments: [String]) async throws -> LoadResult {
        let json = folder.appendingPathComponent("\(scenario).json").path
        let scheme = hub.certificate == nil ? "ws" : "wss"
        let process = try start(
            Place.loadTest,
            [scenario, "--url", "\(scheme)://127.0.0.1:\(hub.port)", "--json", json, "--seconds", "2", "--warmup", "0.3"] + arguments)
        let end = try await process.waitForEnd(within: Patience.script)
        let file = FileManager.default.contents(atPath: json).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        return LoadResult(end: end, output: process.output, errors: process.errors, report: try JSONValue(parsing: file))
    }
}

/// Small runs of every scenario against a real hub: the counts have to be exact, the timings do not matter here.
@Suite("tandem-loadtest")
struct LoadTestTests {
    private func expectClean(_ result: LoadResult) {
        #expect(result.end.code == 0, "\(result.output) \(result.errors)")
        for name in ["events lost", "events twice", "events out of order", "connections closed by the server"] {
            if let value = result.figure(name) { #expect(value == 0, "\(name)") }
        }
    }

    @Test(
        "fanout: every subscriber gets every event",
        arguments: [["--rate", "20"], ["--outstanding", "2", "--connections", "5"], ["--channel", "presence-load"]])
    func fanout(arguments: [String]) async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let page = stage.folder.appendingPathComponent("page.html").path
            let result = try await stage.load(
                "fanout", hub,
                ["--html", page, "--server-pid", "\(hub.process.pid)"]
                    + (arguments.contains("--connections") ? [] : ["--connections", "50"])
                    + arguments)
            expectClean(result)
            let subscribers = arguments.contains("--connections") ? 5.0 : 50
            #expect(result.count("publish due to answer") > 0)
            #expect(result.count("publish due to delivery") == subscribers * result.count("publish due to answer"))
            #expect((result.figure("server memory per connection") ?? 0) > 0)
            #expect(FileManager.default.contents(atPath: page)?.isEmpty == false)
        }
    }

    @Test("fanout over TLS, with events larger than a record, on two threads")
    func secureFanout() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub(certificate: try TestCertificate(.init(intermediates: 1)))
            let result = try await stage.load("fanout", hub, ["--connections", "20", "--bytes", "9000", "--rate", "20", "--threads", "2"])
            expectClean(result)
            #expect(result.count("publish due to answer") > 0)
            #expect(result.count("publish due to delivery") == 20 * result.count("publish due to answer"))
        }
    }

    @Test("rooms: each event goes to its room only")
    func rooms() async throws {
        try await Stage.run { stage in
            let result = try await stage.load(
                "rooms", try await stage.hub(), ["--connections", "50", "--channels", "10", "--rate", "100", "--channel", "private-room"])
            expectClean(result)
            #expect(result.count("publish due to answer") > 0)
            #expect(result.count("publish due to delivery") == 5 * result.count("publish due to answer"))
        }
    }

    @Test("publish: each is answered, also under a fan-out")
    func publish() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let alone = try await stage.load("publish", hub, ["--rate", "100"])
            expectClean(alone)
            #expect(alone.figure("publish errors") == 0)
            #expect((alone.figure("publishes") ?? 0) >= alone.count("publish due to answer"))
            #expect(alone.count("publish due to answer") > 0)
            let beside = try await stage.load("publish", hub, ["--outstanding", "2", "--under-fanout", "50"])
            expectClean(beside)
            #expect(beside.count("fan-out: publish due to delivery") == 50 * beside.count("fan-out: publish due to answer"))
            #expect(beside.count("publish due to answer") > 0)
        }
    }

    @Test("churn: who comes is let in, and a storm comes back whole")
    func churn() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let steady = try await stage.load("churn", hub, ["--connections", "20", "--rate", "50", "--stay", "0.5"])
            expectClean(steady)
            #expect((steady.figure("arrivals") ?? 0) > 0)
            #expect(steady.figure("arrivals that failed") == 0)
            #expect(steady.figure("arrivals not done") == 0)
            #expect(steady.count("publish due to delivery") == 20 * steady.count("publish due to answer"))
            let storm = try await stage.load("churn", hub, ["--connections", "20", "--storm", "50"])
            expectClean(storm)
            #expect(storm.figure("clients back") == 50)
            #expect(storm.count("connect due to subscribed") == 50)
        }
    }

    @Test("presence-storm: those who stay hear of everyone")
    func presence() async throws {
        try await Stage.run { stage in
            let result = try await stage.load(
                "presence-storm", try await stage.hub(), ["--connections", "20", "--rate", "20", "--stay", "0.5"])
            expectClean(result)
            let joins = result.figure("joins") ?? 0
            #expect(joins > 0)
            #expect(result.figure("leaves") == joins)
            #expect(result.figure("member_added frames") == 20 * joins)
            #expect(result.figure("member_removed frames") == 20 * joins)
        }
    }

    @Test("client-events: all others of the channel get each")
    func clientEvents() async throws {
        try await Stage.run { stage in
            let result = try await stage.load(
                "client-events", try await stage.hub(), ["--connections", "50", "--channels", "10", "--rate", "100"])
            expectClean(result)
            let sent = result.figure("client events sent") ?? 0
            #expect(sent > 0)
            #expect(result.figure("client events delivered") == 4 * sent)
        }
    }

    @Test("mixed: questions, answers and scores reach who is there, while some leave and return")
    func mixed() async throws {
        try await Stage.run { stage in
            let result = try await stage.load(
                "mixed", try await stage.hub(),
                ["--connections", "50", "--channels", "5", "--question-every", "0.8", "--leaving-rate", "2"])
            expectClean(result)
            for name in ["questions delivered", "answers delivered", "scores delivered"] { #expect((result.figure(name) ?? 0) > 0) }
        }
    }

    @Test("push: everybody who is away gets one push")
    func push() async throws {
        try await Stage.run(seconds: 5) { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            for provider in ["fcm", "apns"] {
                let result = try await stage.load(
                    "push", hub, ["--devices", "50", "--gateways", gateways.control, "--provider", provider, "--seconds", "60"])
                expectClean(result)
                #expect(result.figure("pushes") == 50)
                #expect(result.count("publish to gateway") == 50)
            }
        }
    }

    @Test("a server that ends in the middle fails the run, loudly")
    func dying() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let json = stage.folder.appendingPathComponent("dead.json").path
            let process = try stage.start(
                Place.loadTest, ["fanout", "--url", "ws://127.0.0.1:\(hub.port)", "--connections", "10", "--seconds", "8", "--json", json])
            try await eventually("the load to run") { process.errors.contains("10 connected") }
            hub.process.send(SIGKILL)
            #expect(try await process.waitForEnd().code == 1)
            #expect(process.output.contains("FAILED: The server closed 10 connections"))
        }
    }

    @Test(
        "what cannot be meant ends with a sentence, and the right code",
        arguments: [
            (["fanout", "--url", "ws://10.9.8.7:1"], 64, "--i-own-this-server"), (["fanout", "--url", "127.0.0.1"], 64, "--url"),
            (["fanout", "--rate", "1", "--outstanding", "1"], 64, "exclude"), (["fanout", "--connections", "0"], 64, "--connections"),
            (["fanout", "--dialect", "smoke"], 64, "--dialect"), (["fanout", "--url", "ws://127.0.0.1:1"], 1, "nobody listens"),
            (["fanout", "--server-pid", "999999999"], 1, "--server-pid"), (["nothing"], 64, "nothing"),
        ])
    func mistakes(arguments: [String], code: Int32, word: String) async throws {
        try await Stage.run { stage in
            let process = try stage.start(Place.loadTest, arguments)
            #expect(try await process.waitForEnd().code == code)
            #expect(process.errors.contains(word), "\(process.errors)")
        }
    }
}
