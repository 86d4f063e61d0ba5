import HubCore
import HubJSON
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Client events")
struct ClientEventTests {
    /// Everybody subscribed to a channel, over two loops; presence users are u0, u1 and so on.
    private static func room(
        _ channel: String, _ count: Int = 3, watched: Set<String> = [], configure: (inout App) -> Void = { _ in }
    ) -> (TestHub, [TestClient]) {
        let hub = TestHub(loops: 2, watched: watched, configure: configure)
        let clients = (0..<count).map { hub.open($0 % 2) }
        for (index, client) in clients.enumerated() {
            hub.subscribe(client, channel, user: channel.hasPrefix("presence-") ? .string("u\(index)") : nil)
            hub.settle()
        }
        return (hub, clients)
    }

    @Test(
        "C18: to all others, with string data, and user_id on presence channels only",
        arguments: ["private-a", "private-encrypted-a", "presence-a", "presence-cache-a"])
    func relayed(channel: String) {
        let (hub, clients) = Self.room(channel)
        hub.say(clients[0], #"{"event":"client-x","channel":"\#(channel)","data":{"a": [1, "é"]},"user_id":"forged"}"#)
        hub.say(clients[0], #"{"event":"client-y","channel":"\#(channel)","data":"as \"it\" is"}"#)
        hub.settle()
        #expect(clients[0].published(on: channel).isEmpty, "no echo")
        for client in clients.dropFirst() {
            #expect(client.published(on: channel) == ["client-x", "client-y"])
            #expect(client.named("client-x")[0]["data"] == #"{"a":[1,"é"]}"#)
            #expect(client.named("client-y")[0]["data"] == #"as "it" is"#)
            #expect(client.named("client-x")[0]["user_id"] == (channel.hasPrefix("presence") ? "u0" : nil))
        }
        #expect(clients[0].errors.isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test("another connection of the same user does get it")
    func sameUser() {
        let hub = TestHub()
        let (first, second) = (hub.open(), hub.open())
        for client in [first, second] { hub.subscribe(client, "presence-a", user: "10") }
        hub.settle()
        hub.say(first, event: "client-x", channel: "presence-a", data: "d")
        hub.settle()
        #expect(second.published(on: "presence-a") == ["client-x"])
        #expect(first.published(on: "presence-a").isEmpty)
    }

    @Test(
        "C18: refused on public channels, without a subscription, with the wrong prefix",
        arguments: [
            ("client-x", "news"), ("client-x", "cache-a"), ("client-x", "private-other"), ("x", "private-a"), ("client_x", "private-a"),
            ("Client-x", "private-a"),
            ("pusher_internal:member_added", "private-a"), ("client-x", "no such name"), ("client-x", "#server-to-user-1"),
        ])
    func refused(event: String, channel: String) {
        let (hub, clients) = Self.room("private-a")
        for client in clients {
            hub.subscribe(client, "news")
            hub.subscribe(client, "cache-a")
        }
        hub.say(clients[0], event: event, channel: channel, data: "d")
        hub.settle()
        #expect(clients[0].errors.map { $0["code"] } == [.null])
        #expect(clients[0].closeCode == nil)
        #expect(clients[1].frames.allSatisfy { $0["event"]?.stringValue?.contains("ient") != true })
        #expect(clients[1].named("pusher_internal:member_added").isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test("refused while the join is under way, and when client events are off")
    func notYetAndOff() {
        let hub = TestHub(loops: 2)
        let client = hub.open(1 - hub.home("presence-a"))
        hub.subscribe(client, "presence-a", user: "1")
        hub.say(client, event: "client-x", channel: "presence-a", data: "d")
        #expect(client.errors.count == 1)
        let (off, clients) = Self.room("private-a") { $0.clientEvents = false }
        off.say(clients[0], event: "client-x", channel: "private-a", data: "d")
        off.settle()
        #expect(clients[0].errors.map { $0["code"] } == [.null])
        #expect(clients[1].published(on: "private-a").isEmpty)
    }

    @Test("data of exactly the limit passes, one byte more does not")
    func size() {
        let (hub, clients) = Self.room("private-a") { $0.eventDataBytesMax = 100 }
        hub.say(clients[0], event: "client-x", channel: "private-a", data: .string(String(repeating: "\"", count: 100)))
        hub.say(clients[0], event: "client-y", channel: "private-a", data: .string(String(repeating: "x", count: 101)))
        hub.settle()
        #expect(clients[1].published(on: "private-a") == ["client-x"])
        #expect(clients[0].errors.map { $0["code"] } == [.null])
    }

    @Test("C18: the eleventh within a second gets 4301 and is dropped; the next second begins anew; connections count alone")
    func rate() {
        let (hub, clients) = Self.room("private-a")
        for number in 0..<12 { hub.say(clients[0], event: "client-\(number)", channel: "private-a", data: "d") }
        hub.say(clients[1], event: "client-other", channel: "private-a", data: "d")
        hub.settle()
        #expect(clients[0].errors.map { $0["code"] } == [4301, 4301])
        #expect(clients[0].closeCode == nil)
        #expect(clients[2].published(on: "private-a").count == 11)
        hub.clock.advance(milliseconds: 1000)
        hub.say(clients[0], event: "client-again", channel: "private-a", data: "d")
        hub.settle()
        #expect(clients[2].published(on: "private-a").last == "client-again")
        #expect(hub.violations.isEmpty)
    }

    @Test("C18: the second is that of the events, wherever the clock's begins")
    func rateAcrossSeconds() {
        let (hub, clients) = Self.room("private-a")
        hub.clock.advance(milliseconds: 700)
        for number in 0..<10 { hub.say(clients[0], event: "client-\(number)", channel: "private-a", data: "d") }
        hub.clock.advance(milliseconds: 500)
        hub.say(clients[0], event: "client-10", channel: "private-a", data: "d")
        hub.settle()
        #expect(clients[0].errors.map { $0["code"] } == [4301])
        hub.clock.advance(milliseconds: 500)
        hub.say(clients[0], event: "client-11", channel: "private-a", data: "d")
        hub.settle()
        #expect(clients[2].published(on: "private-a").count == 11)
    }

    @Test("client-app-state is consumed, also with client events off, and does not count in the rate")
    func appState() {
        let (hub, clients) = Self.room("private-a", watched: ["private-a"]) { app in
            app.clientEvents = false
            app.clientEventsPerSecond = 1
        }
        _ = hub.engines[0].takeReports()
        for state in ["background", "foreground", "background"] {
            hub.say(clients[0], event: "client-app-state", channel: "private-a", data: ["state": .string(state)])
        }
        hub.say(clients[0], event: "client-app-state", channel: "private-a", data: #"{"state":"foreground"}"#)
        hub.settle()
        let id = clients[0].id
        #expect(
            hub.engines[0].takeReports() == [
                .state(id, .background), .state(id, .foreground), .state(id, .background), .state(id, .foreground),
            ])
        #expect(clients.allSatisfy { $0.errors.isEmpty && $0.published(on: "private-a").isEmpty })
        for data in [["state": "asleep"], [:], "x", .null, ["state": 1]] as [JSONValue] {
            hub.say(clients[0], event: "client-app-state", channel: "private-a", data: data)
        }
        #expect(clients[0].errors.count == 5)
        #expect(hub.engines[0].takeReports().isEmpty)
        let (counted, others) = Self.room("private-a") { $0.clientEventsPerSecond = 1 }
        for _ in 0..<5 { counted.say(others[0], event: "client-app-state", channel: "private-a", data: ["state": "background"]) }
        counted.say(others[0], event: "client-x", channel: "private-a", data: "d")
        counted.settle()
        #expect(others[1].published(on: "private-a") == ["client-x"])
        #expect(counted.engines[0].takeReports().isEmpty, "nobody watches")
    }

    @Test("client-app-state says whether the app keeps working in the background; what else stands there is ignored")
    func keepsWorking() {
        let (hub, clients) = Self.room("private-a", watched: ["private-a"])
        _ = hub.engines[0].takeReports()
        let told: [(JSONValue, LoopReport)] = [
            (["state": "background", "keeps_working": true], .state(clients[0].id, .background, keepsWorking: true)),
            (["state": "background", "keeps_working": false], .state(clients[0].id, .background)),
            (["state": "background", "keeps_working": .null, "battery": 7], .state(clients[0].id, .background)),
            (["state": "foreground", "keeps_working": true], .state(clients[0].id, .foreground)),
        ]
        for (data, _) in told { hub.say(clients[0], event: "client-app-state", channel: "private-a", data: data) }
        hub.settle()
        #expect(hub.engines[0].takeReports() == told.map(\.1) && clients[0].errors.isEmpty)
        hub.say(clients[0], event: "client-app-state", channel: "private-a", data: ["state": "background", "keeps_working": "yes"])
        #expect(clients[0].errors.count == 1 && hub.engines[0].takeReports().isEmpty)
    }

    @Test("a connection that subscribes anew brings along the state that its app declared")
    func declaredAgain() {
        let (hub, clients) = Self.room("private-a", watched: ["private-a"])
        hub.say(clients[0], event: "client-app-state", channel: "private-a", data: ["state": "background", "keeps_working": true])
        hub.unsubscribe(clients[0], "private-a")
        hub.settle()
        _ = hub.engines[0].takeReports()
        hub.subscribe(clients[0], "private-a")
        hub.settle()
        let reports = hub.engines[0].takeReports()
        #expect(reports.count == 2 && reports.last == .state(clients[0].id, .background, keepsWorking: true))
    }
}
