import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

/// Channels that gain, keep or lose their definition while they have subscribers.
@Suite("Changed definitions")
struct DefinitionChangeTests {
    @Test("who is in a channel that gets a definition is reported, and tickets tell them from those decided about before")
    func gained() throws {
        let hub = TestHub()
        let (first, second) = (hub.open(), hub.open())
        hub.subscribe(first, "presence-a", user: "10")
        hub.subscribe(second, "presence-a", user: "11")
        hub.subscribe(second, "other")
        hub.settle()
        #expect(hub.engines[0].takeReports().isEmpty)
        hub.watched = ["presence-a"]
        hub.engines[0].receive(.definitionsChanged)
        let a = try #require(ChannelName("presence-a"))
        let reports = hub.engines[0].takeReports()
        #expect(reports.count == 3 && reports.last == .definitionsRead)
        var tickets: [String: UInt64] = [:]
        for case .attached(_, _, 0, let channel, let user?, _, let ticket) in reports {
            #expect(channel == a)
            tickets[user] = ticket
        }
        #expect(Set(tickets.keys) == ["10", "11"] && Set(tickets.values) == [1, 2])
        // An event that was decided when only the first report was known is not for the other socket.
        hub.publish("told", on: ["presence-a"], attendedUpTo: [1])
        hub.settle()
        let told: [Int] = [first, second].map { $0.published(on: "presence-a").count }
        let expected: [Int] = tickets["10"] == 1 ? [1, 0] : [0, 1]
        #expect(told == expected)
        hub.publish("told", on: ["presence-a"], attendedUpTo: [2])
        hub.settle()
        #expect([first, second].reduce(0) { $0 + $1.published(on: "presence-a").count } == 3)
        hub.close(first)
        #expect(hub.engines[0].takeReports() == [.disconnected(first.id, .abnormal)])
    }

    @Test("who is in a channel that keeps one is reported with the ticket as it was")
    func kept() throws {
        let hub = TestHub(watched: ["a"])
        let client = hub.open()
        hub.subscribe(client, "a")
        _ = hub.engines[0].takeReports()
        hub.engines[0].receive(.definitionsChanged)
        let (a, socketID) = (try #require(ChannelName("a")), try #require(SocketID(client.socketID)))
        #expect(
            hub.engines[0].takeReports() == [
                .stillAttached(client.id, socketID, app: 0, channel: a, user: nil), .definitionsRead,
            ])
        hub.publish("told", on: ["a"], attendedUpTo: [1])
        hub.settle()
        #expect(client.published(on: "a") == ["told"])
    }

    @Test("who is in a channel that loses one is reported once as gone, and still told everything")
    func lost() throws {
        let hub = TestHub(watched: ["a"])
        let client = hub.open()
        hub.subscribe(client, "a")
        _ = hub.engines[0].takeReports()
        hub.watched = []
        hub.engines[0].receive(.definitionsChanged)
        let a = try #require(ChannelName("a"))
        #expect(hub.engines[0].takeReports() == [.detached(client.id, channel: a), .definitionsRead])
        // One that was decided before, and one after.
        hub.publish("told", on: ["a"], attendedUpTo: [1])
        hub.settle()
        hub.publish("after", on: ["a"])
        hub.settle()
        #expect(client.published(on: "a") == ["told", "after"])
        hub.unsubscribe(client, "a")
        #expect(hub.engines[0].takeReports().isEmpty)
        hub.engines[0].receive(.definitionsChanged)
        #expect(hub.engines[0].takeReports() == [.definitionsRead])
    }
}
