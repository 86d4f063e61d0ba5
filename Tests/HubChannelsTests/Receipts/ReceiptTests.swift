import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Receipts")
struct ReceiptTests {
    private static let watched: Set<String> = ["private-a", "private-b", "presence-a"]

    private func reports(_ hub: TestHub, loop: Int = 0) -> [LoopReport] {
        hub.engines[loop].takeReports().filter {
            switch $0 {
            case .pinged, .proving, .replayed, .receipt: true
            default: false
            }
        }
    }

    @Test("behind an event that wants receipts goes one PING in the same write, and its PONG is reported with the cursor")
    func pingBehindEvent() throws {
        let hub = TestHub(watched: Self.watched)
        let client = hub.open()
        hub.subscribe(client, "private-a")
        hub.sinks[0].forgetDeliveries()
        hub.publish("e", on: ["private-a"], receipt: 7)
        hub.settle()
        #expect(hub.sinks[0].deliveries.map(\.frames) == [2], "one write with event and PING")
        let ping = try #require(client.pings.first)
        #expect(client.pings.count == 1 && client.frames.count == ping.after, "the PING is behind the event")
        #expect(reports(hub) == [.pinged(events: [7], cursor: 1)])
        hub.pong(client, ping.payload)
        #expect(reports(hub) == [.receipt(client.id, cursor: 1, byApplication: false)])
        #expect(hub.violations.isEmpty)
    }

    @Test("delivery hears of a subscription and of a sign-in before their client does, who may publish at once through another loop")
    func reportsBeforeAnswers() {
        let hub = TestHub(loops: 2, watched: Self.watched, isReporting: true)
        let client = hub.open(1)
        var heard: [String] = []
        hub.reporting = { reports in
            for case .attached(_, _, _, let channel, let user, _, _) in reports {
                let answers = ["pusher_internal:subscription_succeeded", "pusher:signin_success"].map { client.named($0).count }
                heard.append("\(channel) \(user ?? "nobody") behind \(answers)")
            }
        }
        hub.subscribe(client, "private-a")
        hub.settle()
        hub.subscribe(client, "presence-a", user: "ada")
        hub.settle()
        hub.signIn(client, id: "ada")
        #expect(heard == ["private-a nobody behind [0, 0]", "presence-a ada behind [1, 0]", "private-a ada behind [2, 0]"])
        hub.settle()
        #expect(client.named("pusher:signin_success").count == 1 && hub.violations.isEmpty)
    }

    @Test("events that nobody has to confirm bring no PING")
    func noPing() {
        let hub = TestHub(watched: Self.watched)
        let client = hub.open()
        hub.subscribe(client, "private-a")
        hub.publish("e", on: ["private-a"])
        hub.settle()
        #expect(client.pings.isEmpty && reports(hub).isEmpty)
    }

    @Test("each turn of a burst has its own PING, in the write of its events")
    func burst() {
        let hub = TestHub(watched: Self.watched)
        let client = hub.open()
        hub.subscribe(client, "private-a")
        hub.sinks[0].forgetDeliveries()
        for event in 1...3 { hub.publish("e", on: ["private-a"], receipt: UInt64(event)) }
        hub.settle()
        #expect(reports(hub) == [.pinged(events: [1, 2, 3], cursor: 1)])
        for event in 4...6 {
            hub.clock.advance(milliseconds: 20)
            hub.publish("e", on: ["private-a"], receipt: UInt64(event))
            hub.settle()
        }
        #expect(reports(hub) == [.pinged(events: [4], cursor: 2), .pinged(events: [5], cursor: 3), .pinged(events: [6], cursor: 4)])
        #expect(hub.sinks[0].deliveries.map(\.frames) == [4, 2, 2, 2], "no write without an event")
    }

    @Test("a stream of events shares PINGs: a burst at once, then one for each interval, and the last event is not forgotten")
    func stream() {
        let hub = TestHub(watched: Self.watched)
        let client = hub.open()
        hub.subscribe(client, "private-a")
        for event in 1...400 {
            hub.publish("e", on: ["private-a"], receipt: UInt64(event))
            hub.settle()
            hub.clock.advance(milliseconds: 10)
        }
        #expect(client.pings.count == 8 + 15, "4 s of events, the first PING at 0 and the last of these at 3,990 ms")
        hub.clock.advance(milliseconds: 250)
        hub.settle()
        let pinged = reports(hub).flatMap { report -> [UInt64] in if case .pinged(let events, _) = report { events } else { [] } }
        #expect(pinged == (1...400).map { UInt64($0) }, "each once, in order")
        let count = client.pings.count
        hub.clock.advance(seconds: 10)
        hub.settle()
        #expect(client.pings.count == count, "nothing is asked for when nothing waits")
        for event in 401...408 {
            hub.publish("e", on: ["private-a"], receipt: UInt64(event))
            hub.settle()
        }
        #expect(client.pings.count == count + 8, "after a pause, another burst")
    }

    @Test(
        "a PONG with a cursor that was never sent is counted and nothing else",
        arguments: ["r2", "r0", "r", "x1", "", "r18446744073709551616", "r-1", "r1 "])
    func stray(payload: String) {
        let hub = TestHub(watched: Self.watched)
        let client = hub.open()
        hub.subscribe(client, "private-a")
        hub.publish("e", on: ["private-a"], receipt: 1)
        hub.settle()
        _ = reports(hub)
        hub.pong(client, Array(payload.utf8))
        #expect(reports(hub).isEmpty && hub.engines[0].counters.strayReceipts == 1)
    }

    @Test("a subscriber that comes between an event and its PING is told apart by its ticket")
    func lateSubscriber() {
        let hub = TestHub(watched: Self.watched)
        let (early, late) = (hub.open(), hub.open())
        hub.subscribe(early, "private-a")
        hub.publish("e", on: ["private-a"], attendedUpTo: [1], receipt: 1)
        hub.subscribe(late, "private-a")
        hub.settle()
        #expect(early.published(on: "private-a") == ["e"] && late.published(on: "private-a").isEmpty)
        let tickets = hub.engines[0].takeReports().compactMap {
            if case .attached(let id, _, _, _, _, _, let ticket) = $0 { (id, ticket) } else { nil }
        }
        #expect(tickets.map(\.0) == [early.id, late.id] && tickets.map(\.1) == [1, 2])
    }

    @Test("proof of life on demand: everybody asked gets a PING, pages get a pusher:ping instead")
    func prove() throws {
        let hub = TestHub(watched: Self.watched)
        let (phone, browser, other) = (hub.open(client: "java-client"), hub.open(client: "js"), hub.open())
        for client in [phone, browser, other] { hub.subscribe(client, "private-a") }
        _ = reports(hub)
        hub.engines[0].receive(.prove(event: 5, [phone.id, browser.id, ConnectionID(loop: 0, slot: 9, generation: 1)]))
        #expect(reports(hub) == [.proving(event: 5, cursor: 1)])
        #expect(phone.pings.count == 1 && browser.pings.isEmpty && other.pings.isEmpty)
        #expect(phone.named("pusher:ping").isEmpty && browser.named("pusher:ping").map { $0["data"] } == ["{}"])
        for client in [browser, browser, phone] { hub.say(client, #"{"event":"pusher:pong","data":{}}"#) }
        hub.pong(phone, try #require(phone.pings.first).payload)
        #expect(
            reports(hub) == [
                .receipt(browser.id, cursor: 1, byApplication: true), .receipt(phone.id, cursor: 1, byApplication: false),
            ], "a pong that answers no ping proves nothing")
    }

    @Test("missed events go to one connection only, behind what was published before, with a PING behind them")
    func replay() throws {
        let hub = TestHub(watched: Self.watched)
        let (back, other) = (hub.open(), hub.open())
        hub.subscribe(back, "private-a")
        hub.subscribe(other, "private-a")
        hub.publish("now", on: ["private-a"])
        let channel = try #require(ChannelName("private-a"))
        let frames = ["missed-1", "missed-2"].flatMap {
            Frame.text(ServerEvent.event(name: $0, channel: channel, data: DataLiteral(content: "{}")))
        }
        _ = reports(hub)
        hub.engines[0].receive(.replay(back.id, channel: channel, frames: frames, events: [3, 4]))
        hub.settle()
        #expect(back.published(on: "private-a") == ["now", "missed-1", "missed-2"] && other.published(on: "private-a") == ["now"])
        #expect(reports(hub) == [.replayed(back.id, events: [3, 4], cursor: 1)])
        #expect(back.pings.first?.after == back.frames.count)
        let page = hub.open(client: "js")
        hub.subscribe(page, "private-a")
        hub.engines[0].receive(.replay(page.id, channel: channel, frames: frames, events: [3, 4]))
        #expect(page.frames.suffix(3).map { $0["event"]?.stringValue } == ["missed-1", "missed-2", "pusher:ping"] && page.pings.isEmpty)
        hub.say(page, #"{"event":"pusher:pong","data":{}}"#)
        #expect(reports(hub) == [.replayed(page.id, events: [3, 4], cursor: 2), .receipt(page.id, cursor: 2, byApplication: true)])
        hub.unsubscribe(back, "private-a")
        hub.engines[0].receive(.replay(back.id, channel: channel, frames: frames, events: [3, 4]))
        #expect(reports(hub) == [.replayed(back.id, events: [3, 4], cursor: 0)], "nobody is there to read it")
        #expect(hub.violations.isEmpty)
    }

    @Test("delivery is told how a connection went")
    func departures() {
        let hub = TestHub(watched: Self.watched)
        let clients = (0..<5).map { _ in hub.open() }
        for client in clients { hub.subscribe(client, "private-a") }
        _ = hub.engines[0].takeReports()
        hub.close(clients[0], as: .clean)
        hub.close(clients[1], as: .abnormal)
        hub.engines[0].refuse(clients[2].id, .pongNotReceived)
        hub.engines[0].refuse(clients[3].id, .restarting)
        hub.engines[0].refuse(clients[4].id, .terminatedByApplication)
        let departures = hub.engines[0].takeReports().compactMap { if case .disconnected(_, let departure) = $0 { departure } else { nil } }
        #expect(departures == [.clean, .abnormal, .silent, .server, .clean])
    }
}
