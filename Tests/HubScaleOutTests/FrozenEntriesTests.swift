import HubCore
import HubTesting
import Testing

@testable import HubScaleOut

/// Nodes of two builds work on the same keys and read the same stream during a rolling upgrade.
@Suite("Frozen entries of a stream") struct FrozenEntriesTests {
    @Test("a message has this head in every build")
    func head() {
        let bytes = StreamEntry.message(origin: 0x0102_0304_0506_0708, number: 9, [0xAA, 0xBB])
        #expect(FrozenBytes(bytes) == "01 0102030405060708 0000000000000009 aabb")
        let entry = StreamEntry(id: .zero, fields: [Array("m".utf8), bytes])
        #expect(entry.message?.origin == 0x0102_0304_0506_0708 && entry.message?.number == 9 && entry.message?.payload == [0xAA, 0xBB])
    }

    @Test("a probe has a mark that no version of messages has")
    func probe() {
        #expect(FrozenBytes(StreamProbe.payload) == "00 0000000000000000")
        // The build before wrote a time into it.
        #expect(StreamProbe.isProbe([0, 0, 0, 0, 0, 0, 0, 1, 2]) && !StreamProbe.isProbe([1, 0, 0, 0, 0, 0, 0, 0, 0]))
    }

    @Test("announcements are read from these fields, with further ones of a later build")
    func announcements() {
        func event(_ fields: String...) -> Announcement.Event? {
            StreamEntry(id: .zero, fields: (["a"] + fields).map { Array($0.utf8) }).announcement?.event
        }
        #expect(event("added", "p", "1 room", "u", "ann", "i", "{}") == .added(user: "ann", info: Array("{}".utf8)))
        #expect(event("added", "p", "1 room", "u", "ann", "i", "", "x", "y") == .added(user: "ann", info: nil))
        #expect(event("info", "p", "1 room", "u", "ann", "i", "1") == .info(user: "ann", [0x31]))
        #expect(event("removed", "p", "1 room", "u", "ann") == .removed(user: "ann"))
        #expect(event("occupied", "p", "1 room", "o", "1") == .occupied && event("vacated", "p", "1 room") == .vacated)
        #expect(event("count", "p", "1 room", "n", "7") == .count(7) && event("node", "p", "9") == .dead(node: 9))
        #expect(event("later", "p", "1 room") == nil)
    }

    @Test("keys have these names, in which the scripts of two builds meet")
    func keys() {
        let keys = ScaleOutKeys(prefix: "tandem", epoch: "word run")
        #expect(keys.epochKey == "tandem:epoch" && keys.databaseKey == "tandem:database" && keys.base == "tandem:word:")
        let names = [keys.nodes, keys.dead, keys.numbers, keys.events, keys.beats, keys.versions, keys.lastBeats, keys.leaving]
        let wanted = ["nodes", "dead", "numbers", "events", "beats", "versions", "last-beats", "leaving"]
        #expect(names == wanted.map { "tandem:word:\($0)" })
    }

    /// A script that changes also works on what the build before has written, and that build's on what it writes: see the keys in
    /// `MemberScripts`. Renew the number here after this was looked at.
    @Test("no script changes unnoticed")
    func scripts() {
        let found = ScaleOutScripts.all.map { Partition.stableHash($0.body) }
        #expect(
            found == [
                13274710015536030129, 1172267443515415433, 2307289890712083021, 4489912493067771597, 5415687698745364166,
                667306527664983187, 12939569869717905162, 1929178249926706817, 16364222895458336941, 10294235576028686636,
                9280428388478159841, 15909176776406273824, 8912528125165952075, 2302771526969694781, 3941775050225860889,
            ], "\(found)")
    }
}
