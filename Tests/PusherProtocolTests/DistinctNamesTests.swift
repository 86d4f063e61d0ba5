import Testing

@testable import PusherProtocol

struct DistinctNamesTests {
    @Test("each name stands once, where it was first, however many there are", arguments: [1, 2, 3, 7, 100, 300])
    func once(count: Int) throws {
        let names = try (0..<count).map { try #require(ChannelName("room-\($0 % max(1, count * 2 / 3))")) }
        var distinct = DistinctNames(countMax: count)
        for name in names { distinct.append(name) }
        var expected: [ChannelName] = []
        for name in names where !expected.contains(name) { expected.append(name) }
        #expect(distinct.names == expected)
    }

    @Test("ids of users that differ in a byte are two channels, also where Swift calls them equal")
    func bytes() throws {
        let names = try ["\u{E9}", "e\u{301}", "\u{E9}"].map { try #require(ChannelName(serverToUser: $0)) }
        var distinct = DistinctNames(countMax: 3)
        for name in names { distinct.append(name) }
        #expect(distinct.names == Array(names.prefix(2)))
    }
}
