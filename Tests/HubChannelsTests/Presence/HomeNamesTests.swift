import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Names of occupied channels")
struct HomeNamesTests {
    private func home(_ names: [String], app: Int = 0) throws -> HomeRegistry {
        let apps = (0...1).map { App(index: $0, id: "\($0)", secrets: [:]) }
        let home = HomeRegistry(loopCount: 1, apps: apps, facts: FactLog(kinds: apps.map(\.factKinds)))
        for name in names { home.setOccupancy(app: app, channel: try #require(ChannelName(name)), loop: 0, subscribers: 1) }
        return home
    }

    @Test("are found by how they begin, in one app, and as many as are wanted")
    func beginnings() throws {
        let home = try home(["room", "room-1", "room-2", "rooms", "Room", "other"])
        func find(_ text: String, limit: Int = 10, app: Int = 0) -> Set<String> {
            Set(home.names(app: app, prefix: text, limit: limit).map(\.text))
        }
        #expect(find("room") == ["room", "room-1", "room-2", "rooms"])
        #expect(find("room-") == ["room-1", "room-2"])
        #expect(find("", limit: 3).count == 3)
        #expect(find("room", app: 1).isEmpty && find("x").isEmpty)
        #expect(home.names(app: 0, prefix: "room", limit: 2).first?.text == "room", "the one of that name comes first")
        #expect(home.names(app: 0, prefix: "room", limit: 10).count == 4, "and once")
    }

    @Test("among many channels are found by the whole name, and by a beginning as far as the loop looks")
    func many() throws {
        let home = try home((0..<100).map { "room-\($0)" })
        for number in 0..<100 {
            let found = home.names(app: 0, prefix: "room-\(number)", limit: 20, among: 10)
            #expect(found.first?.text == "room-\(number)" && found.count <= 11)
        }
        #expect(home.names(app: 0, prefix: "room", limit: 20, among: 10).count == 10)
    }
}
