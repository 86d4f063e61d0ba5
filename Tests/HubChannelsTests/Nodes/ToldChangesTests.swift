import HubCore
import Testing

@testable import HubChannels

/// Members over lost memories of Redis, as webhooks hear of them.
@Suite("What a stream told")
struct ToldChangesTests {
    private func tell(
        _ told: inout ToldChanges, _ event: Announcement.Event, _ standing: Announcement.Standing = .change, at milliseconds: UInt64 = 1
    ) -> Bool {
        told.isNews(
            Announcement(
                id: StreamID(milliseconds: milliseconds), place: MemberPlace(app: "1", channel: "presence-a"), event: event,
                standing: standing))
    }

    @Test("every change is told, however often")
    func changes() {
        var told = ToldChanges()
        let news = [
            tell(&told, .added(user: "ann", info: nil)), tell(&told, .removed(user: "ann")), tell(&told, .removed(user: "ann")),
            tell(&told, .occupied), tell(&told, .vacated), tell(&told, .count(1)), tell(&told, .count(1)),
        ]
        #expect(news == [true, true, true, true, true, true, true])
        let count = tell(&told, .count(1), .repeated)
        #expect(!count)
    }

    @Test("a coming that was lost with the memory is followed by no second departure")
    func lostComing() {
        var told = ToldChanges()
        // She came once more, and nobody read it.
        let news = [tell(&told, .removed(user: "ann")), tell(&told, .removed(user: "ann"), .late), tell(&told, .vacated, .late)]
        #expect(news == [true, false, true], "of the channel nothing is known")
        let again = [tell(&told, .occupied, .repeated), tell(&told, .vacated, .late), tell(&told, .removed(user: "bob"), .late)]
        #expect(again == [true, true, true])
    }

    @Test("whoever was told gone is new in a new memory at once, and once")
    func backAgain() {
        var told = ToldChanges()
        let news = [
            tell(&told, .removed(user: "ann")), tell(&told, .added(user: "ann", info: nil), .repeated),
            tell(&told, .added(user: "ann", info: nil), .confirmed), tell(&told, .removed(user: "ann"), .late),
        ]
        #expect(news == [true, true, false, true])
    }

    @Test("whoever is told again by a new memory is no news, and is told once where nobody knows her")
    func stillThere() {
        var told = ToldChanges()
        let news = [
            tell(&told, .added(user: "ann", info: nil)), tell(&told, .added(user: "ann", info: nil), .repeated),
            tell(&told, .added(user: "ann", info: nil), .confirmed), tell(&told, .added(user: "bob", info: nil), .repeated),
            tell(&told, .added(user: "bob", info: nil), .confirmed),
        ]
        #expect(news == [true, false, false, false, true])
    }

    @Test("it is remembered for five minutes")
    func age() {
        var told = ToldChanges()
        let news = [
            tell(&told, .removed(user: "ann")), tell(&told, .removed(user: "ann"), .late, at: 300_000),
            tell(&told, .removed(user: "ann"), .late, at: 300_001), tell(&told, .removed(user: "ann"), .late, at: 300_002),
        ]
        #expect(news == [true, false, true, false])
    }
}
