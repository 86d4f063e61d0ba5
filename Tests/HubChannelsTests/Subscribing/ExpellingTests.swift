import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

/// People who were taken off a roster, and sessions that are over.
@Suite struct ExpellingTests {
    private let channel = "presence-quiz-1"

    private func expel(_ hub: TestHub, _ meant: Expulsion.Meant, signed: [Expulsion.Signed] = []) {
        for engine in hub.engines { engine.receive(.expel(Expulsion(app: 0, meant: meant, signed: signed))) }
        hub.settle()
    }

    private func name(_ text: String) throws -> ChannelName { try #require(ChannelName(text)) }

    private func statuses(_ client: TestClient, on channel: String) -> [JSONValue?] {
        client.named("pusher:subscription_error", on: channel).map { TestClient.data($0)["status"] }
    }

    @Test("who was removed is told so, gets nothing more and can say nothing more, on whatever loop", arguments: [1, 3])
    func removed(loops: Int) throws {
        let hub = TestHub(loops: loops, watched: [channel]) { $0.factKinds = [.memberRemoved, .clientEvent] }
        let (ann, again, bob) = (hub.open(0), hub.open(loops - 1), hub.open(0))
        for client in [ann, again] { hub.subscribe(client, channel, user: "ann") }
        hub.subscribe(bob, channel, user: "bob")
        hub.settle()
        _ = hub.takeFacts()
        _ = hub.engines.map { $0.takeReports() }
        expel(hub, .user("ann", try name(channel)))
        hub.publish("secret", on: [channel])
        hub.say(ann, event: "client-hello", channel: channel, data: "{}")
        hub.settle()
        for client in [ann, again] {
            #expect(statuses(client, on: channel) == [403] && client.closeCode == nil)
            #expect(client.published(on: channel).isEmpty)
            client.left(channel)
        }
        #expect(bob.members[channel] == ["bob"] && bob.published(on: channel) == ["secret"])
        #expect(hub.users(channel) == ["bob"])
        #expect(hub.takeFacts().map(\.event) == [.memberRemoved(user: "ann")])
        let detached = hub.engines.flatMap { $0.takeReports() }.filter { if case .detached = $0 { true } else { false } }
        #expect(detached.count == 2)
        // With the signature they have, on the connection that it was made for.
        hub.subscribe(ann, channel, user: "ann")
        hub.settle()
        #expect(statuses(ann, on: channel) == [403, 403] && hub.users(channel) == ["bob"])
        // Back on the roster.
        for engine in hub.engines { engine.receive(.readmit(app: 0, channel: try name(channel), user: "bob")) }
        hub.subscribe(ann, channel, user: "ann")
        #expect(statuses(ann, on: channel).count == 3)
        for engine in hub.engines { engine.receive(.readmit(app: 0, channel: try name(channel), user: "ann")) }
        hub.subscribe(ann, channel, user: "ann")
        hub.settle()
        #expect(hub.users(channel) == ["ann", "bob"] && ann.acknowledgements(channel) == 2)
        #expect(hub.violations.isEmpty, "\(hub.violations)")
    }

    @Test("who is about to be let in when they are removed is not let in", arguments: 1...20)
    func joining(seed: UInt64) throws {
        let hub = TestHub(loops: 3, seed: seed, watched: [channel])
        let client = hub.open((hub.home(channel) + 1) % 3)
        hub.subscribe(client, channel, user: "ann")
        for _ in 0..<seed % 3 { hub.step() }
        for engine in hub.engines { engine.receive(.expel(Expulsion(app: 0, meant: .user("ann", try name(channel)), signed: []))) }
        hub.settle()
        #expect(hub.users(channel).isEmpty && hub.engines[client.id.loop].joiningCount == 0)
        #expect(statuses(client, on: channel) == [403])
    }

    @Test("when a session ends everybody goes, also who signed in elsewhere, and from people's own channels")
    func ended() throws {
        let hub = TestHub(loops: 2, watched: ["presence-quiz-1", "private-own-1-ann", "private-own-2-ann"])
        let (ann, stranger) = (hub.open(0), hub.open(1))
        hub.subscribe(ann, "presence-quiz-1", user: "ann")
        hub.subscribe(stranger, "presence-quiz-1", user: "nobody knows")
        hub.subscribe(ann, "private-own-1-ann")
        hub.subscribe(stranger, "private-own-2-ann")
        hub.subscribe(stranger, "elsewhere")
        hub.settle()
        expel(hub, .everybody(try name("presence-quiz-1")))
        expel(hub, .allOf { $0.text.hasPrefix("private-own-1") })
        hub.publish("new", on: ["presence-quiz-1", "private-own-1-ann", "private-own-2-ann", "elsewhere"])
        hub.settle()
        #expect(ann.published(on: "presence-quiz-1").isEmpty && ann.published(on: "private-own-1-ann").isEmpty)
        #expect(stranger.published(on: "presence-quiz-1").isEmpty)
        #expect(stranger.published(on: "private-own-2-ann") == ["new"] && stranger.published(on: "elsewhere") == ["new"])
        #expect(hub.users("presence-quiz-1").isEmpty)
    }

    @Test("a signature that was made and not used yet is no good after the removal, until the hub makes another one")
    func unused() throws {
        let hub = TestHub(watched: ["private-quiz-1"])
        let (ann, bob) = (hub.open(), hub.open())
        hub.subscribe(bob, "private-quiz-1")
        let channel = try name("private-quiz-1")
        let signed = [ann, bob].map { Expulsion.Signed(connection: $0.id, channel: channel, user: "ann") }
        expel(hub, .user("ann", channel), signed: signed)
        hub.subscribe(ann, "private-quiz-1")
        hub.subscribe(bob, "private-quiz-1")
        #expect(statuses(ann, on: channel.text) == [403] && statuses(bob, on: channel.text) == [403, 403])
        hub.engines[0].receive(.bound(ann.id, channel: channel))
        hub.subscribe(ann, "private-quiz-1")
        #expect(ann.acknowledgements(channel.text) == 1 && hub.engines[0].barredConnections == [bob.id])
        hub.close(bob)
        #expect(hub.engines[0].barredConnections.isEmpty)
    }

    @Test("delivery hears of the end of every connection that the hub signed for, also of one that is gone already")
    func bound() {
        let hub = TestHub()
        let (client, gone) = (hub.open(), hub.open())
        hub.close(gone)
        hub.engines[0].receive(.bound(client.id, channel: nil))
        hub.engines[0].receive(.bound(gone.id, channel: nil))
        hub.close(client)
        #expect(hub.engines[0].takeReports() == [.disconnected(gone.id, .clean), .disconnected(client.id, .abnormal)])
    }

    @Test("a connection that was put out of too many channels is closed")
    func outOfMany() throws {
        let hub = TestHub()
        let client = hub.open()
        for number in 0...ChannelEngine.subscriptionsMax {
            #expect(client.closeCode == nil)
            let name = try name("presence-quiz-\(number)")
            hub.engines[0].receive(
                .expel(Expulsion(app: 0, meant: .nobodyElse, signed: [.init(connection: client.id, channel: name, user: "u")])))
        }
        #expect(client.closeCode == 4009 && hub.engines[0].barredConnections.isEmpty)
    }
}
