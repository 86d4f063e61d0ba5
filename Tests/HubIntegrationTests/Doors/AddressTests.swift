import HubCore
import Testing

/// Limits by address at a whole hub, behind proxies and without.
@Suite struct AddressTests {
    private func run(_ scenario: String, _ configuration: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let file = try stage.write(configuration, to: "tandem.yaml")
            let hub = try await stage.hub(arguments: ["--config", file])
            return try await stage.python("doors/addresses.py", scenario, hub: hub)
        }
    }

    @Test(
        "behind a trusted proxy each client has limits of its own: wrong codes of one hold up nobody else, and one too many of its connections is refused"
    )
    func forwarded() async throws {
        let result = try await run("forwarded", "limits: { trusted_proxies: [127.0.0.1], connections_per_address: 2 }\n")
        #expect(result["wrong"] == .array(Array(repeating: 404, count: 10)))
        #expect(result["ben"] == 200 && result["ada"] == 200 && result["ada_waits"] == true)
        #expect(
            result["sockets"] == ["pusher:connection_established", "pusher:connection_established", 4100, "pusher:connection_established"])
        #expect(result["http"] == [429, 200])
    }

    @Test("what others say of where they are from is not believed, and logged once")
    func untrusted() async throws {
        let result = try await run("untrusted", "limits: { trusted_proxies: [192.0.2.1] }\n")
        #expect(result["wrong"] == .array(Array(repeating: 404, count: 10)))
        #expect(result["right"] == 200 && result["waits"] == true && result["warnings"] == 1)
    }

    @Test("the PROXY protocol says whose connection it is, in both versions, and nobody connects without it")
    func proxied() async throws {
        let result = try await run(
            "proxied", "listen: { proxy_protocol: true }\nlimits: { joins_per_minute: 1, trusted_proxies: [127.0.0.0/8] }\n")
        #expect(result["ada"] == [404, 404, 429] && result["ben"] == [404, 404, 429])
        #expect(result["others"] == [404, 404] && result["without"] == [.null, .null])
    }
}
