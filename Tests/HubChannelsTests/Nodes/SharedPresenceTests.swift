import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Members of one channel over all nodes") final class SharedPresenceTests {
    private var shared = SharedPresence()
    private var lost: [String] = []
    private let channel = ChannelName("presence-a")!
    private let place = MemberPlace(app: "1", channel: "presence-a")

    private func connection(_ slot: Int) -> ConnectionID { ConnectionID(loop: 0, slot: slot, generation: 1) }

    private func membership(_ slot: Int) -> EngineMessage.Membership {
        EngineMessage.Membership(app: 0, channel: channel, connection: connection(slot), serial: 1)
    }

    private func id(_ number: UInt64) -> StreamID { StreamID(milliseconds: number) }

    private func announcement(_ number: UInt64, _ event: Announcement.Event) -> Announcement {
        Announcement(id: id(number), place: place, event: event)
    }

    private func join(_ slot: Int, _ user: String, info: String? = nil, ticket: UInt64 = 1) -> Bool {
        shared.join(membership(slot), PresenceMember(userID: user, userInfo: info.map { Array($0.utf8) }), ticket: ticket)
    }

    private func listed(_ users: [String], ticket: UInt64, at number: UInt64) -> Bool {
        let (isOutdated, lost) = shared.listed(users.map { Member(user: $0, info: nil) }, ticket: ticket, at: id(number))
        self.lost = lost
        return isOutdated
    }

    private func full(_ user: String, ticket: UInt64) -> [Int] { shared.full(user: user, ticket: ticket).map(\.connection.slot) }

    private func leave(_ slot: Int, _ user: String) -> Presence.Leave { shared.leave(connection(slot), user: user).left }

    /// Seconds in, and whether the user's last connection leaves the time to come back.
    private func leaves(_ slot: Int, isSent: Bool = false, at seconds: UInt64) -> Bool {
        let now = seconds * 1_000_000_000
        return shared.leave(connection(slot), user: "ann", isSent: isSent, returnsWithin: .seconds(3), now: now).mayReturn
    }

    @Test("who leaves within three seconds after another connection of theirs was sent away has the time to come back")
    func sentAway() {
        for slot in 1...3 { _ = join(slot, "ann") }
        #expect(leaves(1, isSent: true, at: 10))
        #expect(leaves(2, at: 12))
        #expect(!leaves(3, at: 13))
        for slot in 4...5 { _ = join(slot, "ann") }
        #expect(leaves(4, isSent: true, at: 20))
        _ = join(6, "ann")
        #expect(!leaves(5, at: 21) && !leaves(6, at: 21), "the one that was sent away is back")
    }

    private func takeEdges() -> Presence.Edges { shared.takeEdges() }

    private func slots(at position: UInt64) -> [Int] {
        shared.takeReady(position: id(position)).map(\.connection.slot).sorted()
    }

    @Test("a newcomer is acknowledged when the list is known and the own admission was heard")
    func acknowledgement() {
        #expect(join(1, "ann"))
        shared.ask(ticket: 2)
        #expect(slots(at: 9).isEmpty)
        shared.admitted(user: "ann", ticket: 1, at: id(5))
        #expect(slots(at: 9).isEmpty, "the list is not known")
        #expect(!listed(["bob"], ticket: 2, at: 4))
        #expect(slots(at: 4).isEmpty, "the list is older than the admission")
        shared.take(announcement(5, .added(user: "ann", info: nil)))
        #expect(slots(at: 4).isEmpty, "the place of the admission is not reached")
        #expect(takeEdges().isEmpty, "nobody is there to be told")
        #expect(slots(at: 5) == [1])
        #expect(Set(shared.snapshot().map(\.id)) == ["ann", "bob"])
        #expect(slots(at: 9).isEmpty, "nobody is acknowledged twice")
    }

    @Test("announcements before the list are part of it, and those behind it follow")
    func order() {
        #expect(join(1, "ann"))
        shared.ask(ticket: 2)
        shared.admitted(user: "ann", ticket: 1, at: id(3))
        shared.take(announcement(4, .removed(user: "bob")))
        shared.take(announcement(6, .added(user: "eve", info: nil)))
        #expect(!listed(["ann", "bob"], ticket: 2, at: 5))
        #expect(slots(at: 6) == [1])
        #expect(Set(shared.snapshot().map(\.id)) == ["ann", "bob", "eve"])
        _ = takeEdges()
        shared.take(announcement(7, .removed(user: "bob")))
        #expect(takeEdges().removed == ["bob"])
    }

    @Test("a second connection of a user asks nothing, unless it brings another info")
    func further() {
        #expect(join(1, "ann", info: "1"))
        #expect(!join(2, "ann", info: "1"))
        #expect(join(3, "ann", info: "2", ticket: 8))
        shared.admitted(user: "ann", ticket: 1, at: id(1))
        shared.ask(ticket: 9)
        #expect(!listed(["ann"], ticket: 9, at: 2))
        #expect(slots(at: 2).isEmpty, "an answer to an older question says nothing")
        shared.admitted(user: "ann", ticket: 8, at: id(2))
        #expect(slots(at: 2) == [1, 2, 3])
        #expect(leave(1, "ann") == .further)
        #expect(leave(1, "ann") == .unknown)
        #expect(leave(2, "ann") == .further)
        #expect(leave(3, "ann") == .last)
        #expect(shared.connectionCount == 0)
    }

    @Test("a full channel refuses all connections of the user")
    func full() {
        #expect(join(1, "ann"))
        #expect(!join(2, "ann"))
        #expect(join(3, "bob", ticket: 4))
        #expect(full("ann", ticket: 9).isEmpty)
        #expect(full("ann", ticket: 1) == [1, 2])
        #expect(shared.connectionCount == 1)
    }

    @Test("after a lost memory the difference is told, and nothing else")
    func restart() {
        #expect(join(1, "ann"))
        shared.ask(ticket: 2)
        shared.admitted(user: "ann", ticket: 1, at: id(5))
        #expect(!listed(["ann", "bob"], ticket: 2, at: 5))
        #expect(lost.isEmpty && slots(at: 5) == [1])
        _ = takeEdges()
        shared.restart()
        #expect(shared.isUnlisted)
        shared.take(announcement(1, .added(user: "ann", info: nil)))
        #expect(takeEdges().isEmpty, "a memory that is being rebuilt says nothing")
        #expect(join(2, "eve", ticket: 3))
        shared.admitted(user: "eve", ticket: 3, at: id(2))
        #expect(slots(at: 9).isEmpty, "newcomers wait for the rebuilt list")
        shared.ask(ticket: 4)
        #expect(!listed(["ann", "eve"], ticket: 4, at: 3))
        #expect(lost == ["bob"], "webhooks have to hear of it")
        let edges = takeEdges()
        #expect(edges.removed == ["bob"] && edges.added.map(\.user) == ["eve"])
        #expect(slots(at: 3) == [2])
    }

    @Test("too many announcements before a list ask for another one")
    func tooMany() {
        #expect(join(1, "ann"))
        shared.ask(ticket: 2)
        for number in 0...UInt64(SharedPresence.keptMax) { shared.take(announcement(number, .added(user: "bob", info: nil))) }
        #expect(listed(["ann"], ticket: 2, at: 1))
        shared.ask(ticket: 3)
        #expect(!listed(["ann"], ticket: 3, at: 2))
    }
}
