import HubCore
import Testing

/// `/metrics` as Prometheus' own parsers read it.
@Suite struct MetricsTests {
    @Test("what happens is counted, and the text is Prometheus'", arguments: [1, 3]) func traffic(loops: Int) async throws {
        let result = try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(loops: loops, gateways: gateways)
            return try await stage.python("life/metrics.py", "traffic", hub: hub, gateways: gateways)
        }
        #expect((result["families"]?.intValue ?? 0) > 70)
        #expect(result["connections"] == 2 && result["opened"] == 2 && result["subscriptions"] == 3 && result["channels"] == 2)
        #expect(result["direct"] == 5 && result["stored"] == 1 && result["deliveries"] == 11)
        #expect(result["grew"] == true && result["joined"] == true)
        // Each of the loops with subscribers measures a publication once: the two connections are on two loops where there are more.
        #expect(result["measured"] == [.int(loops == 1 ? 5 : 10), 1])
        #expect(result["event"] == 1 && result["decided"] == [1, 1])
        #expect(result["dead"] == 1 && result["refused"] == 401 && (result["refusals"]?.number ?? 0) >= 1)
        #expect(result["lane"]?.text.contains("open") == true && result["lane"]?.text.contains("fcm project") == true)
        #expect(result["process"] == true && result["started"] == true)
        // Where it is installed.
        if let judged = result["promtool"], judged != .null { #expect(judged[0] == 0, "\(judged[1]?.stringValue ?? "")") }
    }

    @Test("operations.md says what each metric and alert is; rules and dashboard ask for these alone") func documented() async throws {
        let result = try await Stage.run { stage in try await stage.python("life/metrics.py", "documented", hub: try await stage.hub()) }
        #expect(result["missing"] == [] && result["unknown"] == [] && result["foreign"] == [])
        #expect(result["alerts"] == true && result["count"] == 10 && (result["queries"]?.intValue ?? 0) > 50 && result["ids"] == true)
        if let judged = result["promtool"], judged != .null { #expect(judged[0] == 0, "\(judged[1]?.stringValue ?? "")") }
    }

    @Test("a token is asked for where there is one") func guarded() async throws {
        let token = "0123456789abcdef"
        let result = try await Stage.run { stage in
            let hub = try await stage.hub(environment: ["TANDEM_METRICS_TOKEN": token])
            let result = try await stage.python("life/metrics.py", "guarded", hub: hub, environment: ["METRICS_TOKEN": token])
            #expect(!hub.log.contains(token))
            return result
        }
        #expect(result["statuses"] == [401, 401, 200] && result["head"] == [200, 0, true])
    }
}
