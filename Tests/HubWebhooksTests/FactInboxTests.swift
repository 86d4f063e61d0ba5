import HubTesting
import PusherProtocol
import Testing

@testable import HubWebhooks

@Suite("FactInbox")
struct FactInboxTests {
    @Test("wakes its reader once for all that comes until it reads")
    func wakes() throws {
        let inbox = FactInbox(time: ManualClock(), bytesMax: 10_000)
        let fact = try ChannelFact.fact("a", .occupied)
        #expect(inbox.add([fact]))
        #expect(!inbox.add([fact, fact]))
        let (reports, dropped) = inbox.takeAll()
        #expect(reports.map(\.facts.count) == [1, 2] && dropped == 0)
        #expect(inbox.add([fact]))
    }

    @Test("full, it drops the newest and counts them, by the size of what came from outside")
    func full() throws {
        let inbox = FactInbox(time: ManualClock(), bytesMax: 1000)
        let small = try ChannelFact.fact("a", .occupied)
        let large = try ChannelFact.clientEvent("private-a", data: String(repeating: "x", count: 800))
        #expect(inbox.add([small, large, small]))
        #expect(!inbox.add([small]))
        let (reports, dropped) = inbox.takeAll()
        #expect(reports.flatMap(\.facts) == [small, small] && dropped == 2)
        #expect(inbox.takeAll().dropped == 0)
    }

    @Test("closed, it takes nothing more")
    func closed() throws {
        let inbox = FactInbox(time: ManualClock(), bytesMax: 1000)
        inbox.close()
        #expect(!inbox.add([try ChannelFact.fact("a", .occupied)]))
        #expect(inbox.takeAll().reports.isEmpty)
    }
}
