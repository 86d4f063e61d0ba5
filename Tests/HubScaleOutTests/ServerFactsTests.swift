import Testing

@testable import HubScaleOut

@Suite("What a Redis server tells of itself")
struct ServerFactsTests {
    private func problem(_ lines: [String]) -> String? {
        ServerFacts((["redis_version:7.0.15", "run_id:abc", "role:master"] + lines).joined(separator: "\r\n")).problem
    }

    @Test("a server of today is fit")
    func fit() {
        #expect(problem(["maxmemory_policy:noeviction", "cluster_enabled:0"]) == nil)
        #expect(problem(["redis_version:8.2.0"]) == nil)
    }

    @Test(
        "an unfit one is named with what to do",
        arguments: [
            ("redis_version:6.2.14", "is version 6.2.14; the backplane needs Redis 7.0 or later"),
            ("redis_version:x", "does not tell its version"),
            ("maxmemory_policy:volatile-ttl", "set maxmemory-policy noeviction"), ("role:slave", "is a replica"),
            ("cluster_enabled:1", "is part of a Redis Cluster"), ("run_id:", "does not tell its run_id"),
        ])
    func unfit(line: String, sentence: String) {
        #expect(problem([line])?.contains(sentence) == true, "\(problem([line]) ?? "fit")")
    }
}
