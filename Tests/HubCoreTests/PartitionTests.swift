import HubCore
import Testing

@Suite("What all builds of a hub have in common") struct PartitionTests {
    @Test("a channel's and a person's partition are the same in every build")
    func partitions() {
        #expect(Partition.count == 64)
        #expect(Partition.stableHash("") == 0xcbf2_9ce4_8422_2325 && Partition.stableHash("foobar") == 0x8594_4171_f739_67e8)
        #expect(Partition.of(MemberPlace(app: "1", channel: "presence-quiz-7")) == 5)
        #expect(Partition.ofWebhooks(app: "1") == 20)
    }

    @Test("versions of messages are two numbers, the lowest first and none of them 0")
    func versions() {
        #expect(MessageVersions("1-2") == MessageVersions(1, 2) && MessageVersions(1, 2).description == "1-2")
        for text in ["", "1", "2-1", "0-1", "1-", "-1", "1-2-3", "1-256", "a-b"] { #expect(MessageVersions(text) == nil, "\(text)") }
        #expect(MessageVersions(1, 2).overlaps(MessageVersions(2, 3)) && MessageVersions(2, 3).overlaps(MessageVersions(1, 2)))
        #expect(!MessageVersions(1, 2).overlaps(MessageVersions(3, 4)) && !MessageVersions(3, 4).overlaps(MessageVersions(1, 2)))
        #expect(MessageVersions(2, 3).contains(2) && !MessageVersions(2, 3).contains(1) && !MessageVersions(2, 3).contains(4))
    }

    @Test("a build reads the version before its own, so that it can be one hub with the build before")
    func oneBack() {
        let known = MessageVersions.known
        #expect(known.lowest == max(1, known.highest - 1), "a rolling upgrade needs the version before, and no older one")
    }
}
