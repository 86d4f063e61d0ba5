import HubCore
import HubTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubChannels

@Suite("A home beside other nodes") struct HomeOfNodesTests {
    private let way = RecordingWay()
    private let home: HomeRegistry
    private let place = MemberPlace(app: "1", channel: "presence-a")
    private let channel = ChannelName("presence-a")!
    private let second: UInt64 = 1_000_000_000

    /// Ann is here, and Bob on another node.
    init() {
        let app = App(index: 0, id: "1", secrets: ["key": "secret"])
        home = HomeRegistry(loopCount: 1, apps: [app], facts: FactLog(kinds: [app.factKinds]), backplane: way)
        let connection = ConnectionID(loop: 0, slot: 1, generation: 1)
        let membership = EngineMessage.Membership(app: 0, channel: channel, connection: connection, serial: 1)
        _ = home.join(membership, PresenceMember(userID: "ann", userInfo: nil), membersMax: 100)
        answer(["ann", "bob"], at: 1)
        _ = way.takeWishes(of: home)
    }

    /// Answers the last question for the list.
    private func answer(_ users: [String], at number: UInt64) {
        let members = users.map { Member(user: $0, info: nil) }
        _ = home.answered(.list(place, ticket: way.asked, at: StreamID(milliseconds: number), members)) { _ in 0 }
    }

    private func hear(_ event: Announcement.Event? = nil, _ standing: Announcement.Standing = .change, at number: UInt64) {
        let id = StreamID(milliseconds: number)
        let announcements = event.map { [Announcement(id: id, place: place, event: $0, standing: standing)] } ?? []
        let report = NodeReport(shard: 0, position: id, startsEpoch: event == nil, announcements: announcements)
        home.heard(report, now: 10 * second) { _ in 0 }
    }

    @Test("who comes back after a lost memory was known, if a subscriber knew them", arguments: ["bob", "eve"])
    func known(user: String) {
        hear(at: 2)
        hear(.added(user: user, info: nil), .early, at: 3)
        #expect(way.takeWishes(of: home) == (user == "bob" ? ["known bob"] : []))
    }

    @Test("nobody vouches for a member of whom the memory knows how they stand", arguments: [Announcement.Standing.change, .repeated])
    func standings(standing: Announcement.Standing) {
        hear(at: 2)
        hear(.added(user: "bob", info: nil), standing, at: 3)
        #expect(way.takeWishes(of: home) == [])
    }

    @Test("nobody vouches for a member where no memory was lost")
    func nothingLost() {
        hear(.added(user: "bob", info: nil), .early, at: 3)
        #expect(way.takeWishes(of: home) == [])
    }

    @Test("whom the list after a lost memory leaves out is missed, and once")
    func missed() {
        hear(at: 2)
        _ = home.askAnew(now: 15 * second)
        _ = way.takeWishes(of: home)
        answer(["ann"], at: 4)
        #expect(way.takeWishes(of: home) == ["missed bob"])
        hear(.added(user: "bob", info: nil), .early, at: 5)
        #expect(way.takeWishes(of: home) == [], "the memory that knew Bob is forgotten")
    }
}

/// Keeps the wishes of a home that concern a lost memory.
private final class RecordingWay: HomesBackplane {
    private struct State {
        var asked: UInt64 = 0
        var wishes: [String] = []
        var isFlushed = false
    }
    private let state = Mutex(State())

    /// Ticket of the last question for a list.
    var asked: UInt64 { state.withLock(\.asked) }

    /// Wishes that have gone out since the last call.
    func takeWishes(of home: HomeRegistry) -> [String] {
        home.flushWishes()
        return state.withLock { state in
            defer { (state.wishes, state.isFlushed) = ([], false) }
            return state.isFlushed ? state.wishes : []
        }
    }

    func list(_ place: MemberPlace, ticket: UInt64) { state.withLock { $0.asked = ticket } }
    func missed(_ place: MemberPlace, user: String) { state.withLock { $0.wishes.append("missed \(user)") } }
    func known(_ place: MemberPlace, user: String) { state.withLock { $0.wishes.append("known \(user)") } }
    func flush() { state.withLock { $0.isFlushed = true } }

    // The tests do not look at these.
    func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {}
    func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {}
    func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {}
    func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {}
}
