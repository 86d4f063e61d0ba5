import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

/// Bounds on the memory that clients without any credential can take.
@Suite struct AnonymousTests {
    private func limits(_ change: (inout AnonymousLimits) -> Void) -> ConnectionLimits {
        var limits = ConnectionLimits()
        change(&limits.anonymous)
        return limits
    }

    private func name(_ number: Int, _ count: Int = 200) -> String {
        let digits = String(number)
        return String(repeating: "x", count: count - digits.utf8.count) + digits
    }

    private func fill(_ hub: TestHub, _ client: TestClient, _ count: Int, _ characters: Int = 200) -> Int {
        for number in 0..<count { hub.subscribe(client, name(number, characters)) }
        return (0..<count).count { client.acknowledgements(name($0, characters)) == 1 }
    }

    @Test("500 channels with long names fit on a connection, and a bounded number of bytes in all")
    func connection() {
        let hub = TestHub(limits: limits { $0.perConnectionMax = 512 << 10 })
        let (long, short) = (hub.open(), hub.open())
        let (longCount, shortCount) = (fill(hub, long, 1000), fill(hub, short, 1000, 10))
        let free = hub.directory.limits.anonymous
        #expect(longCount == free.perConnectionMax / (200 + free.fixedBytes) && longCount >= 500)
        #expect(shortCount == free.perConnectionMax / (10 + free.fixedBytes), "names cost what they are long")
        #expect(long.closeCode == nil && TestClient.data(long.named("pusher:subscription_error").last ?? .null)["status"] == 403)
        hub.unsubscribe(long, name(0))
        hub.subscribe(long, name(999))
        #expect(long.acknowledgements(name(999)) == 1)
        hub.close(long)
        hub.close(short)
        #expect(hub.directory.anonymous.total == 0)
    }

    @Test("all connections of one address share a bound, and all addresses another; few channels are free, and signed ones are not counted")
    func shared() {
        let hub = TestHub(
            limits: limits {
                $0.freePerConnection = 2_000
                $0.perAddressMax = 10_000
                $0.totalMax = 15_000
            })
        let clients = (0..<4).map { hub.open(address: $0 < 2 ? "192.0.2.1" : "192.0.2.\($0)") }
        // 968 bytes each: two are free.
        #expect(clients.map { fill(hub, $0, 20) } == [12, 2, 7, 2])
        #expect(hub.directory.anonymous.total <= 15_000)
        let refused = clients[1]
        hub.subscribe(refused, "private-a")
        hub.signIn(refused, id: "1")
        hub.subscribe(refused, "signed-in")
        #expect(refused.acknowledgements("private-a") == 1 && refused.acknowledgements("signed-in") == 1)
        hub.close(clients[0])
        #expect(fill(hub, clients[3], 20) > 2)
        for client in clients.dropFirst() { hub.close(client) }
        #expect(hub.directory.anonymous.total == 0 && hub.violations.isEmpty)
    }
}
