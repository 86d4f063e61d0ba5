import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Searching")
struct SearchTests {
    private func search(_ hub: Hub, _ text: String, limit: Int? = nil, app: String = "1") async throws -> Answer {
        var query = ["q": text]
        if let limit { query["limit"] = "\(limit)" }
        return try await hub.call("GET", "search", query: query, app: app)
    }

    @Test("finds people, sessions, channels, definitions and events by how they begin, and shows no e-mail whole")
    func everything() async throws {
        let hub = try Hub()
        try await hub.makeSession("prague", code: "PRE1")
        let body: JSONValue = ["name": "Prem", "email": "prem@example.com", "role": "host"]
        #expect(try await hub.call("PUT", "sessions/prague/participants/pat", body).status == 200)
        let device: JSONValue = ["token": "t", "platform": "android"]
        #expect(try await hub.call("PUT", "users/pru/devices/d", device).status == 200)
        try await hub.events.commit("01a21265-014b", to: ["pat"])
        let found = try await search(hub, " pr ")
        #expect(found.status == 200 && found["q"] == "pr")
        #expect(
            found["people"]?.arrayValue == [
                ["user": "pru", "name": .null, "email": .null, "session": .null, "role": .null, "registered": true],
                [
                    "user": "pat", "name": "Prem", "email": "p…@example.com", "session": "prague", "role": "host", "registered": false,
                ],
            ])
        let session = found["sessions"]?.arrayValue?.first
        #expect(session?["session"] == "prague" && session?["channel"] == "presence-quiz-prague" && session?["join_code"] == "PRE1")
        #expect(
            found["channels"]?.arrayValue == [
                ["channel": "presence-quiz-s1", "definition": "quiz"], ["channel": "presence-quiz-s2", "definition": "quiz"],
            ])
        #expect(found["definitions"]?.arrayValue?.map { $0["definition"] } == ["duel", "orders", "quiz"])
        #expect(found["events"] == [])
        let quiz = try await search(hub, "QUIZ")["definitions"]?.arrayValue
        let ping: JSONValue = ["name": "ping", "policies": ["realtime_only"]]
        #expect(quiz == [["definition": "quiz", "channel": "presence-quiz-{session}", "events": [ping]]])
        let vacated = try await search(hub, "presence-quiz-nobody")
        #expect(vacated["channels"] == [] && vacated["definitions"]?.arrayValue == quiz, "a channel's definition, though nobody is there")
        #expect(try await search(hub, "pr", limit: 1)["people"]?.arrayValue?.count == 1)
        #expect(try await search(hub, "pr", app: "2").json["people"] == [])
        for event in ["01A21265-0", "ask"] {
            #expect(try await search(hub, event)["events"]?.arrayValue?.map { $0["event_id"] } == ["01a21265-014b"], "\(event)")
        }
        #expect(try await search(hub, "01a2126")["events"] == [], "seven letters of an id would name too many events")
    }

    @Test("refuses what cannot be the beginning of a name")
    func refusals() async throws {
        let hub = try Hub()
        for text in ["", "  ", String(repeating: "x", count: 201), "a\u{0}b", "a\u{9B}b"] {
            #expect(try await search(hub, text).status == 400)
        }
        #expect(try await hub.call("GET", "search").status == 400)
        #expect(try await search(hub, "x", limit: 21).status == 400)
        #expect(try await hub.call("POST", "search", query: ["q": "x"]).status == 405)
        for (email, cut) in [("ada@example.com", "a…@example.com"), ("@b", "…@b"), ("x", "x…")] {
            #expect(SearchResource.cut(email) == cut)
        }
    }

    @Test("of one person tells where they take part, whether they are there, and their devices")
    func person() async throws {
        let hub = try Hub()
        try await hub.makeSession("s1")
        try await hub.makeSession("s2", code: "DEF456")
        for session in ["s1", "s2"] {
            let body: JSONValue = ["name": "Uma", "email": "uma@example.com"]
            #expect(try await hub.call("PUT", "sessions/\(session)/participants/u", body).status == 200)
        }
        #expect(try await hub.call("PUT", "users/u/devices/phone", ["token": "secret-token", "platform": "android"]).status == 200)
        let change = PresenceChange(at: hub.clock.wallMilliseconds, .lost, device: nil)
        hub.delivery.setPresent(["u": ParticipantPresence(connections: 2, state: .background, changes: [change])])
        let answer = try await hub.call("GET", "users/u")
        let places = answer["participants"]?.arrayValue ?? []
        #expect(answer.status == 200 && answer["more"] == false && places.map { $0["session"] } == ["s2", "s1"])
        #expect(places.first?["channel"] == "presence-quiz-s2" && places.first?["email"] == "u…@example.com")
        #expect(places.first?["present"] == true && places.first?["connections"] == 2 && places.first?["app_state"] == "background")
        #expect(places.first?["changes"] == [["at": "2026-01-09T01:00:00.250Z", "kind": "lost", "device": .null]])
        #expect(answer["devices"]?.arrayValue?.map { $0["device"] } == ["phone"])
        #expect(!answer.json.text.contains("secret-token"))
        let nobody = try await hub.call("GET", "users/nobody").json
        #expect(nobody == ["user": "nobody", "participants": [], "more": false, "devices": []])
        #expect(try await hub.call("POST", "users/u").status == 405)
    }

    @Test("lists the newest events of all channels, with counts where they are asked for")
    func recent() async throws {
        let hub = try Hub()
        for index in 1...5 {
            hub.clock.advance(seconds: 1)
            try await hub.events.commit("e\(index)", to: ["a", "b"], channel: "presence-quiz-s\(index % 2)")
        }
        try await hub.events.store.settle([RecipientSettlement(event: "e5", confirmed: [0], at: hub.clock.wallMilliseconds)])
        func list(_ query: [String: String]) async throws -> (ids: [JSONValue?], answer: Answer) {
            let answer = try await hub.call("GET", "events", query: query)
            return (answer["events"]?.arrayValue?.map { $0["event_id"] } ?? [], answer)
        }
        let first = try await list(["limit": "2"])
        #expect(first.ids == ["e5", "e4"] && first.answer["events"]?.arrayValue?.first?["data"] == nil)
        #expect(first.answer["events"]?.arrayValue?.first?["counts"] == nil)
        let next = try #require(first.answer["next"]?.stringValue)
        let rest = try await list(["after": next])
        #expect(rest.ids == ["e3", "e2", "e1"] && rest.answer["next"] == .null)
        #expect(try await list(["channel": "presence-quiz-s0"]).ids == ["e4", "e2"])
        #expect(try await list(["name": "asked", "limit": "1"]).ids == ["e5"])
        #expect(try await list(["name": "other"]).ids == [])
        let counted = try await list(["info": "counts", "limit": "1"]).answer["events"]?.arrayValue?.first
        #expect(counted?["recipients"] == 2 && counted?["open"] == true && counted?["counts"] == ["confirmed": 1, "awaited": 1])
        #expect(try await list(["limit": "101"]).answer.status == 400)
    }

    @Test("counts of a large event that has ended are good for half a minute; others are counted each time")
    func remembered() async throws {
        let hub = try Hub()
        func counted(_ users: Int, _ id: String, awaits: Bool) async throws -> [JSONValue?] {
            let note = RecipientNote(state: .live, choice: awaits ? .awaited : .noDevice)
            try await hub.events.commit(id, to: (0..<users).map { "u\($0)" }, note: note)
            func confirmed() async throws -> JSONValue? {
                let events = try await hub.call("GET", "events", query: ["info": "counts"])["events"]?.arrayValue
                return events?.first { $0["event_id"]?.stringValue == id }?["counts"]?["confirmed"]
            }
            let before = try await confirmed()
            try await hub.events.store.settle([RecipientSettlement(event: id, confirmed: [0], at: hub.clock.wallMilliseconds)])
            let after = try await confirmed()
            hub.clock.advance(seconds: 31)
            return [before, after, try await confirmed()]
        }
        #expect(try await counted(1_000, "e1", awaits: false) == [nil, nil, 1])
        #expect(try await counted(999, "e2", awaits: false) == [nil, 1, 1])
        #expect(try await counted(1_000, "e3", awaits: true) == [nil, 1, 1], "receipts are awaited")
    }
}
