import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("What was published can be fetched")
struct HistoryTests {
    @Test("a channel's events in order, the data as it was published")
    func channel() async throws {
        let hub = try Hub()
        let data = "{\"a\" :\t\"ä\\u0041\\/\"}"
        for index in 1...3 { try await hub.events.commit("e\(index)", to: [], data: index == 2 ? data : "\(index)") }
        try await hub.events.commit("other", to: [], channel: "presence-quiz-s2")
        try await hub.events.commit("foreign", to: [], app: "2")
        let all = try await hub.call("GET", "channels/presence-quiz-s1/history")
        #expect(all.status == 200 && all["more"] == false)
        let events = all["events"]?.arrayValue ?? []
        #expect(events.map { $0["event_id"] } == ["e1", "e2", "e3"] && events.map { $0["sequence"] } == [1, 2, 3])
        #expect(
            events.dropFirst().first == [
                "event_id": "e2", "sequence": 2, "name": "asked", "data": .string(data), "policy": "critical",
                "committed_at": "2026-01-09T01:00:00.250Z", "expires_at": "2026-01-09T01:10:00.250Z",
            ])
        let page = try await hub.call("GET", "channels/presence-quiz-s1/history", query: ["after": "1", "limit": "1"])
        #expect(page["events"]?.arrayValue?.map { $0["event_id"] } == ["e2"] && page["more"] == true)
        let none = try await hub.call("GET", "channels/presence-quiz-s1/history", query: ["after": "3"])
        #expect(none["events"] == [] && none["more"] == false)
        #expect(try await hub.call("GET", "channels/unknown/history").json == ["events": [], "more": false])
        #expect(try await hub.call("GET", "channels/presence-quiz-s1/history", app: "2")["events"]?.arrayValue?.count == 1)
    }

    @Test("a page ends where its data gets long, and goes on behind that")
    func bytes() async throws {
        let hub = try Hub()
        let text = String(repeating: "x", count: HistoryResource.pageDataBytesMax / 2)
        for index in 1...3 { try await hub.events.commit("e\(index)", to: ["u"], data: text + (index == 2 ? "" : "y")) }
        var (after, pages): (Int64, [Int]) = (0, [])
        while pages.count < 10 {
            let page = try await hub.call("GET", "channels/presence-quiz-s1/history", query: ["after": "\(after)"])
            pages.append(page["events"]?.arrayValue?.count ?? 0)
            after = page["events"]?.arrayValue?.last?["sequence"]?.intValue ?? 0
            if page["more"] == false { break }
        }
        #expect(pages == [1, 1, 1])
    }

    @Test(
        "numbers outside their bounds are refused by name",
        arguments: [
            ("after", "-1"), ("after", "x"), ("after", "9223372036854775808"), ("limit", "0"), ("limit", "201"), ("limit", ""),
        ])
    func bounds(name: String, value: String) async throws {
        let hub = try Hub()
        let answer = try await hub.call("GET", "channels/c/history", query: [name: value])
        #expect(answer.status == 400 && answer.error.hasPrefix("\(name) must be a number"))
        #expect(try await hub.call("GET", "channels/c/history", query: ["after": "9223372036854775807", "limit": "200"]).status == 200)
        #expect(try await hub.call("POST", "channels/c/history").status == 405)
        #expect(try await hub.call("GET", "channels/a b/history").status == 400)
    }

    @Test("a participant fetches what was for them, over all channels, and nothing else")
    func own() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant()
        let (other, otherUser) = try await hub.participant(email: "ben@example.com")
        try await hub.events.commit("e1", to: [user, otherUser])
        try await hub.events.commit("e2", to: [otherUser])
        try await hub.events.commit("e3", to: [user], channel: "private-orders-s1-2", data: "mine")
        try await hub.events.commit("e4", to: [user], app: "2")
        let mine = try await hub.send("GET", "/me/events", token: token)
        let events = mine["events"]?.arrayValue ?? []
        #expect(events.map { $0["event_id"] } == ["e1", "e3"] && mine["more"] == false)
        #expect(events.last?["channel"] == "private-orders-s1-2" && events.last?["data"] == "mine")
        #expect(events.first?["nid"]?.stringValue == NotificationID.make(event: "e1", app: "1", user: user))
        let theirs = try await hub.send("GET", "/me/events", token: other)
        #expect(theirs["events"]?.arrayValue?.map { $0["event_id"] } == ["e1", "e2"])

        let first = try await hub.send("GET", "/me/events", query: ["limit": "1"], token: token)
        #expect(first["events"]?.arrayValue?.count == 1 && first["more"] == true)
        let position = try #require(first["position"]?.intValue)
        let second = try await hub.send("GET", "/me/events", query: ["after": "\(position)", "limit": "1"], token: token)
        #expect(second["events"]?.arrayValue?.map { $0["event_id"] } == ["e3"])
        let end = try #require(mine["position"]?.intValue)
        #expect(try await hub.send("GET", "/me/events", query: ["after": "\(end)"], token: token)["events"] == [])
        #expect(try await hub.send("GET", "/me/events").status == 401)
        #expect(try await hub.send("POST", "/me/events", token: token).status == 405)
        #expect(try await hub.send("GET", "/me/events", query: ["limit": "201"], token: token).status == 400)
    }

    @Test("a long page of one's own goes on where it was cut")
    func ownBytes() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant()
        let text = String(repeating: "x", count: HistoryResource.pageDataBytesMax / 2 + 1)
        for index in 1...3 { try await hub.events.commit("e\(index)", to: [user], data: text) }
        var (after, found): (Int64, [JSONValue?]) = (0, [])
        for _ in 0..<10 {
            let page = try await hub.send("GET", "/me/events", query: ["after": "\(after)"], token: token)
            #expect(page["events"]?.arrayValue?.count == 1)
            found += page["events"]?.arrayValue?.map { $0["event_id"] } ?? []
            after = page["position"]?.intValue ?? 0
            if page["more"] == false { break }
        }
        #expect(found == ["e1", "e2", "e3"])
    }
}
