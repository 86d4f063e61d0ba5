import Foundation
import HubTesting
import Testing

@testable import LoadTesting

@Suite("Several addresses")
struct TargetsTests {
    @Test(
        "addresses that do not go together are refused",
        arguments: [
            (["ws://127.0.0.1:1", "ws://localhost:1"], "is the server that --url \"ws://127.0.0.1:1\" names already"),
            (["ws://127.0.0.1:1", "wss://127.0.0.1:2"], "differ in TLS"),
            (["ws://127.0.0.1:1/a", "ws://127.0.0.1:2/b"], "has another path than --url \"ws://127.0.0.1:1/a\""),
            (["ws://127.0.0.1:1", "127.0.0.1:2"], "not \"127.0.0.1:2\""), ([], "--url is missing"),
        ])
    func refused(urls: [String], sentence: String) {
        #expect {
            try Targets(urls)
        } throws: {
            guard let error = $0 as? LoadError else { return false }
            return error.isUsage && "\(error)".contains(sentence)
        }
    }

    @Test("a trailing slash is no other path")
    func alike() throws {
        #expect(try Targets(["ws://127.0.0.1:1/", "ws://127.0.0.1:2"]).count == 2)
        #expect {
            _ = try Targets(["ws://127.0.0.1:1", "ws://127.0.0.1:2"]).only("push")
        } throws: {
            "\($0)" == "push loads one server: give a single --url"
        }
    }

    /// Two connections in turns: one address answers, nobody listens at the other.
    @Test("connections take turns, and each address is counted apart")
    func apart() async throws {
        let server = try OneConnection()
        let ports = try [server.port, OneConnection().port]
        let targets = try Targets(ports.map { "ws://127.0.0.1:\($0)" })
        let kinds = [MeasuredKind("event", streams: 1)]
        let door = WorkerDoor()
        // Given to its thread and not touched here again.
        nonisolated(unsafe) let worker = try Worker(door: door, targets: targets, kinds: kinds)
        Thread { worker.run() }.start()
        defer { door.post { $0.stop() } }
        let options = RunOptions(
            scenario: "fanout", connections: 2, channels: 1, channel: "a", seconds: 1, warmup: 0, pace: .rate(1), publishers: 1, bytes: 80,
            connectRate: 1, threads: 1, serverPIDs: [], drain: 1)
        var sampler = try Sampler(options: options, targets: targets, kinds: kinds, delivered: [0], shown: [0])
        try sampler.begin([door], now: 1)
        door.ask { worker in
            worker.tally.measured = 0 ..< .max
            for _ in 0..<2 {
                let plan = ConnectionPlan()
                plan.path = "/somewhere"
                worker.open(plan)
            }
        }
        #expect(server.accept().contains("\r\nHost: 127.0.0.1:\(ports[0])\r\n"))
        let event = EventMark(kind: 0, stream: 0, due: 1, sequence: 0).bytes
        server.write(Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n".utf8) + [0x81, UInt8(event.count)] + event)
        #expect(await eventually { door.ask { $0.tally.counts[0].received == 1 && $0.counts.failed == 1 } })
        #expect(door.ask { $0.counts.failure } == "ws://127.0.0.1:\(ports[1]): connecting failed: nobody listens there")
        try sampler.end([door], now: 2)
        var report = LoadReport(scenario: "fanout", target: targets.url, dialect: "pusher", started: "", seconds: 1)
        sampler.fill(&report)
        #expect(report.target == "ws://127.0.0.1:\(ports[0]), ws://127.0.0.1:\(ports[1])")
        let figures = Dictionary(uniqueKeysWithValues: report.figures.map { ($0.name, $0.value) })
        #expect(figures["deliveries"] == 1 && figures["failed connects"] == 1)
        for (port, deliveries, opened, failed) in [(ports[0], 1.0, 1.0, 0.0), (ports[1], 0, 0, 1)] {
            #expect(figures["127.0.0.1:\(port): deliveries"] == deliveries)
            #expect(figures["127.0.0.1:\(port): connections opened"] == opened)
            #expect(figures["127.0.0.1:\(port): failed connects"] == failed)
        }
        #expect(report.latencies.map(\.name) == ["event", "event, 127.0.0.1:\(ports[0])"])
    }
}
