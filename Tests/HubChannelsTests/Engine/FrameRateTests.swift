import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

/// How much a connection may say before it is closed, and what honest clients say.
@Suite struct FrameRateTests {
    private let closed = UInt16(4100)

    private func count(until isClosed: () -> Bool, _ act: (Int) -> Void) -> Int {
        var count = 0
        while !isClosed(), count < 20_000 {
            act(count)
            count += 1
        }
        return count
    }

    static let floods: [(String, @Sendable (TestHub, TestClient, Int) -> Void)] = [
        (
            "pings",
            {
                $0.say($1, event: "pusher:ping", data: [:])
                _ = $2
            }
        ),
        (
            "what is no JSON",
            {
                $0.say($1, "{")
                _ = $2
            }
        ),
        (
            "unknown events",
            {
                $0.say($1, event: "hello", data: [:])
                _ = $2
            }
        ),
        (
            "unasked pongs",
            {
                $0.say($1, event: "pusher:pong", data: [:])
                _ = $2
            }
        ),
        (
            "unasked control PONGs",
            {
                $0.pong($1, [120])
                _ = $2
            }
        ),
        ("cursors that were never sent", { $0.pong($1, Array("r\($2 + 1)".utf8)) }),
        (
            "binary messages",
            {
                $0.engines[0].receivedBinary(from: $1.id)
                _ = $2
            }
        ),
        (
            "fragments",
            {
                $0.engines[0].receivedFrame(from: $1.id)
                _ = $2
            }
        ),
        ("subscribing and unsubscribing", { $2 % 2 == 0 ? $0.subscribe($1, "a") : $0.unsubscribe($1, "a") }),
    ]

    @Test("a flood of frames of whatever kind ends the connection with an error and 4100", arguments: floods.indices)
    func flood(index: Int) {
        let hub = TestHub()
        let client = hub.open()
        let count = count(until: { client.closeCode != nil }) { Self.floods[index].1(hub, client, $0) }
        #expect(count == Int(ChannelEngine.framesBurst) + 1, "\(Self.floods[index].0)")
        #expect(client.closeCode == closed && client.errors.last?["code"] == 4100)
        #expect(hub.engines[0].connections.isEmpty)
    }

    @Test("500 channels at once on a fresh socket, and then client events as fast as the app allows, go through", arguments: [10, 1000])
    func honest(perSecond: Int) {
        let hub = TestHub(watched: Set((0..<500).map { "private-\($0)" })) { $0.clientEventsPerSecond = perSecond }
        let (client, other) = (hub.open(), hub.open())
        hub.subscribe(other, "private-0")
        for number in 0..<500 { hub.subscribe(client, "private-\(number)") }
        #expect((0..<500).allSatisfy { client.acknowledgements("private-\($0)") == 1 })
        for _ in 0..<30 {
            for _ in 0..<perSecond { hub.say(client, event: "client-x", channel: "private-0", data: "{}") }
            hub.say(client, event: "pusher:ping", data: [:])
            hub.clock.advance(milliseconds: 1000)
            hub.settle()
        }
        #expect(client.closeCode == nil && client.errors.isEmpty && other.published(on: "private-0").count == 30 * perSecond)
    }

    @Test("what answers a question of the hub costs nothing: PONGs with a cursor, and a page's pongs")
    func answers() {
        let hub = TestHub(watched: ["private-a"])
        let (app, page) = (hub.open(), hub.open(client: "js"))
        for client in [app, page] { hub.subscribe(client, "private-a") }
        let ids = [app.id, page.id]
        for round in 1...5000 {
            hub.engines[0].receive(.prove(event: UInt64(round), ids))
            hub.pong(app, Array("r\(round)".utf8))
            hub.say(page, event: "pusher:pong", data: [:])
        }
        #expect(app.closeCode == nil && page.closeCode == nil)
        let (burst, paid) = (Int(ChannelEngine.framesBurst), Int(ChannelEngine.framesBurst) - 1)
        let further = count(until: { app.closeCode != nil }) { _ in hub.pong(app, Array("r5000".utf8)) }
        #expect((paid...burst).contains(further), "the same answer again is none")
        let unasked = count(until: { page.closeCode != nil }) { _ in hub.say(page, event: "pusher:pong", data: [:]) }
        #expect((paid...burst).contains(unasked), "nor is an answer to nothing")
    }

    @Test("an app may say its state again and again; who changes it faster than anybody can is closed, and counts as away")
    func states() {
        let hub = TestHub(watched: ["private-a"])
        func state(_ client: TestClient, _ state: String) {
            hub.say(client, event: "client-app-state", channel: "private-a", data: .object(["state": .string(state)]))
        }
        let (same, flapping) = (hub.open(), hub.open())
        for client in [same, flapping] { hub.subscribe(client, "private-a") }
        for _ in 0..<500 { state(same, "foreground") }
        #expect(same.closeCode == nil && same.errors.isEmpty)
        let count = count(until: { flapping.closeCode != nil }) { state(flapping, $0 % 2 == 0 ? "foreground" : "background") }
        #expect(count == Int(ChannelEngine.statesBurst) + 1 && flapping.closeCode == closed)
        let reports = hub.engines[0].takeReports()
        #expect(reports.count { if case .state = $0 { true } else { false } } == 2 * Int(ChannelEngine.statesBurst))
        #expect(reports.last == .disconnected(flapping.id, .clean))
        for _ in 0..<20 {
            hub.clock.advance(milliseconds: 200)
            state(same, "background")
        }
        #expect(hub.engines[0].takeReports().count == 20 && same.closeCode == nil)
    }

    @Test("coming to channels with a definition again and again is refused for a while, and the connection stays")
    func attachments() {
        let hub = TestHub(watched: ["private-a"])
        let client = hub.open()
        func cycle() {
            hub.subscribe(client, "private-a")
            hub.unsubscribe(client, "private-a")
            hub.clock.advance(milliseconds: 20)
        }
        for _ in 0..<2000 { cycle() }
        let refused = client.named("pusher:subscription_error").count
        // 1,000 at once, and one each tenth of a second.
        #expect((500...620).contains(refused) && client.closeCode == nil)
        hub.clock.advance(milliseconds: 1000)
        hub.subscribe(client, "private-a")
        #expect(client.named("pusher:subscription_error").count == refused)
        #expect(hub.violations.isEmpty)
    }
}
