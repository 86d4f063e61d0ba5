import HubCore
import Testing

@testable import HubChannels

@Suite("Watched users over all nodes") final class WatchedUsersTests {
    private var watched = WatchedUsers()
    private let (ann, bob) = (UserKey(app: 0, user: "ann"), UserKey(app: 0, user: "bob"))

    private func connection(_ slot: Int) -> ConnectionID { ConnectionID(loop: 0, slot: slot, generation: 1) }
    private func id(_ number: UInt64) -> StreamID { StreamID(milliseconds: number) }

    private func announcement(_ number: UInt64, _ user: String, isOnline: Bool) -> Announcement {
        Announcement(
            id: id(number), place: MemberPlace(app: "1", channel: ""),
            event: isOnline ? .added(user: user, info: nil) : .removed(user: user))
    }

    private func watch(_ keys: [UserKey], _ slot: Int, ticket: UInt64) -> (asked: [String], status: WatchedUsers.Status?) {
        watched.watch(keys, by: connection(slot), ticket: ticket)
    }

    private func answer(_ online: [String: Bool], ticket: UInt64, at number: UInt64) -> (changes: [String], complete: [Int]) {
        let (changes, complete) = watched.answered(
            app: 0, ticket: ticket, at: id(number), online.map { Online(user: $0.key, isOnline: $0.value) })
        return (changes.map { ($0.isOnline ? "+" : "-") + $0.key.user }.sorted(), complete.map(\.watcher.slot))
    }

    private func take(_ number: UInt64, _ user: String, isOnline: Bool) -> Bool? {
        watched.take(announcement(number, user, isOnline: isOnline), of: UserKey(app: 0, user: user))
    }

    @Test("a watcher gets one status once all its users are known, and a user is asked for once")
    func first() {
        #expect(watch([ann, bob], 1, ticket: 1).asked.sorted() == ["ann", "bob"])
        #expect(watch([ann], 2, ticket: 2).asked.isEmpty)
        #expect(answer(["ann": true], ticket: 9, at: 5).complete.isEmpty, "an answer to another question says nothing")
        #expect(answer(["ann": true, "bob": false], ticket: 1, at: 5).complete == [1, 2])
        let status = watch([bob, ann], 3, ticket: 3).status
        #expect(status?.online == ["ann"] && status?.offline == ["bob"])
    }

    @Test("only what is behind the answer changes it, and only a change is told")
    func order() {
        _ = watch([ann, bob], 1, ticket: 1)
        #expect(take(6, "ann", isOnline: false) == nil, "nobody knows yet")
        #expect(take(4, "bob", isOnline: true) == nil)
        #expect(answer(["ann": true, "bob": false], ticket: 1, at: 5).changes.isEmpty)
        let status = watch([ann, bob], 2, ticket: 2).status
        #expect(status?.online == [] && status?.offline == ["ann", "bob"])
        #expect(take(5, "bob", isOnline: true) == nil, "it is part of the answer")
        #expect(take(7, "bob", isOnline: true) == true)
        #expect(take(8, "bob", isOnline: true) == nil, "nothing has changed")
        #expect(take(8, "eve", isOnline: true) == nil, "nobody watches her")
    }

    @Test("after a lost memory everybody is asked for anew, and the difference is told")
    func restart() {
        _ = watch([ann, bob], 1, ticket: 1)
        _ = answer(["ann": true, "bob": false], ticket: 1, at: 5)
        let asked = watched.restart(ticket: 2) { _ in true }
        #expect(asked[0]?.sorted() == ["ann", "bob"])
        #expect(answer(["ann": false, "bob": false], ticket: 2, at: 1).changes == ["-ann"])
    }

    @Test("who is not watched any more is forgotten")
    func forgotten() {
        _ = watch([ann], 1, ticket: 1)
        watched.forget(connection(1))
        watched.forget(ann)
        #expect(answer(["ann": true], ticket: 1, at: 5).complete.isEmpty)
        #expect(watch([ann], 2, ticket: 3).asked == ["ann"])
    }
}
