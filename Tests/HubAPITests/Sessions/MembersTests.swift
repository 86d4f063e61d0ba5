import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubAPI
@testable import HubChannels

@Suite("Members of a channel and their places")
struct MembersTests {
    private func socket(node: JSONValue, loop: JSONValue) -> JSONValue {
        ["node": node, "loop": loop, "device": .null, "app_state": .null, "receipt_age_ms": .null]
    }

    @Test("of a channel without a definition are told with node and loop, by user id")
    func plain() async throws {
        let hub = try Hub()
        let answer = try await hub.call("GET", "channels/presence-room/members")
        let ann: JSONValue = [
            "user": "ann", "present": true, "connections": 1, "app_state": .null, "sockets": [socket(node: .null, loop: 1)],
        ]
        let zoe: JSONValue = [
            "user": "zoe", "present": true, "connections": 2, "app_state": .null,
            "sockets": [socket(node: "n2", loop: .null), socket(node: "n3", loop: .null)],
        ]
        #expect(answer.status == 200 && answer.json == ["members": [ann, zoe], "more": false])
        let first = try await hub.call("GET", "channels/presence-room/members", query: ["limit": "1"]).json
        #expect(first == ["members": [ann], "more": true])
        #expect(try await hub.call("GET", "channels/presence-room/members", query: ["limit": "1001"]).status == 400)
    }

    @Test("of a channel with a definition are told with what is known of each connection")
    func defined() async throws {
        let hub = try Hub()
        let seen = ParticipantPresence.Socket(node: "n1", loop: 3, device: "phone", state: .foreground, receiptAge: 40)
        hub.delivery.setPresent(["u": ParticipantPresence(connections: 1, state: .foreground, sockets: [seen])])
        let answer = try await hub.call("GET", "channels/presence-quiz-s1/members").json
        let socket: JSONValue = ["node": "n1", "loop": 3, "device": "phone", "app_state": "foreground", "receipt_age_ms": 40]
        let member: JSONValue = ["user": "u", "present": true, "connections": 1, "app_state": "foreground", "sockets": [socket]]
        #expect(answer == ["members": [member], "more": false])
        // The user is in the name.
        #expect(try await hub.call("GET", "channels/private-orders-s1-u/members").json == ["members": [member], "more": false])
        #expect(try await hub.call("GET", "channels/private-orders-s1-nobody/members").json == ["members": [], "more": false])
    }

    @Test("are known to the home of their channel, with the loops of all their connections")
    func homes() async throws {
        let occupied = OccupiedChannels(
            ChannelSurvey(loopCount: 1) { _, message in
                if case .query(let question) = message { question(RouterStage.occupied(ManualClock())) }
            })
        let app = App(index: 0, id: "1", secrets: [:])
        let found = await occupied.members(app, try #require(ChannelName("presence-room")))?.sorted { $0.user < $1.user }
        let place = ChannelMember.Place(node: nil, loop: 0)
        #expect(found == [.init(user: "a", places: [place, place]), .init(user: "b", places: [place])])
        #expect(await occupied.members(app, try #require(ChannelName("presence-empty")))?.isEmpty == true)
    }

    @Test("of other channels are not known, and without the other nodes nothing is")
    func refused() async throws {
        let hub = try Hub()
        for channel in ["room", "private-room", "private-s1"] {
            #expect(try await hub.call("GET", "channels/\(channel)/members").status == 404)
        }
        #expect(try await hub.call("GET", "channels/presence-lost/members").status == 503)
        #expect(try await hub.call("POST", "channels/presence-room/members").status == 405)
    }
}
