import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let search: [StoreContract] = [
        StoreContract("people are found by the beginning of their id, then of their name, each once with their newest place") { store in
            for session in ["s1", "s2"] { _ = try await store.makeSession(session) }
            _ = try await store.makeSession("s1", app: "2")
            func put(_ user: String, _ name: String, session: String = "s1", app: String = "1") async throws {
                _ = try await store.putParticipant(
                    app: app, session: session, user: user, name: name, email: nil, role: nil)
            }
            for (user, name) in [("u10", "Bea"), ("u1", "Ada"), ("U1", "Cleo"), ("v", "ulla"), ("w", "Ulrich"), ("x", "Ürsel")] {
                try await put(user, name)
            }
            try await put("u1", "Ada Two", session: "s2")
            try await put("u11", "Other", app: "2")
            _ = try await store.putDevice(.sample(user: "u2", token: "t2"))
            _ = try await store.putDevice(.sample(user: "u1", token: "t1"))
            _ = try await store.putDevice(.sample(user: "u1", id: "tablet", token: "t1b"))
            func find(_ text: String, _ limit: Int = 10) async throws -> [String] {
                try await store.people(app: "1", beginning: text, limit: limit).map(\.user)
            }
            #expect(try await find("u") == ["u1", "u10", "u2", "v", "w"])
            #expect(try await find("u", 2) == ["u1", "u10"])
            #expect(try await find("u", 4) == ["u1", "u10", "u2", "v"])
            #expect(try await find("U") == ["U1", "v", "w"])
            #expect(try await find("UL") == ["v", "w"])
            #expect(try await find("ADA") == ["u1"])
            #expect(try await find("Ür") == ["x"])
            #expect(try await find("z") == [])
            #expect(try await find("u", 0) == [])
            let ada = try await store.people(app: "1", beginning: "u1", limit: 1)
            #expect(ada.first?.participant?.session == "s2" && ada.first?.participant?.name == "Ada Two" && ada.first?.isRegistered == true)
            let others = try await store.people(app: "1", beginning: "u", limit: 3)
            #expect(others[1].isRegistered == false && others[2].participant == nil && others[2].isRegistered)
            #expect(try await store.people(app: "2", beginning: "u", limit: 9).map(\.user) == ["u11"])
            #expect(try await store.places(app: "1", user: "u1", limit: 9).map(\.session) == ["s2", "s1"])
            #expect(try await store.places(app: "1", user: "u1", limit: 1).map(\.session) == ["s2"])
            #expect(try await store.places(app: "2", user: "u1", limit: 9) == [])
        },
        StoreContract("sessions are found by the beginning of their id, then of their join code") { store in
            for (id, code) in [("monday", "XYZ1"), ("month", "mon2"), ("other", "MON1")] {
                _ = try await store.makeSession(id, joinCode: code)
            }
            _ = try await store.makeSession("monaco", app: "2", joinCode: "MON3")
            func find(_ text: String, _ limit: Int = 10) async throws -> [String] {
                try await store.sessions(app: "1", beginning: text, limit: limit).map(\.id)
            }
            #expect(try await find("mon") == ["monday", "month", "other"])
            #expect(try await find("mon", 1) == ["monday"])
            #expect(try await find("MON") == ["other", "month"])
            #expect(try await find("xyz1") == ["monday"])
            #expect(try await find("q") == [])
        },
        StoreContract("events are found by the beginning of their id, in one app") { store in
            for id in ["0196-a1", "0196-a2", "0196-b1"] { _ = try await store.commit([.init(.sample(id))]) }
            _ = try await store.commit([.init(.sample("0196-a3", app: "2"))])
            func find(_ text: String, _ limit: Int = 10) async throws -> [String] {
                try await store.events(app: "1", idBeginning: text, limit: limit).map(\.id)
            }
            #expect(try await find("0196-a") == ["0196-a1", "0196-a2"])
            #expect(try await find("0196") == ["0196-a1", "0196-a2", "0196-b1"])
            #expect(try await find("0196", 1) == ["0196-a1"])
            #expect(try await find("0197") == [])
        },
        StoreContract("the newest events come first, over all channels or of one, of every name or one, page by page") { store in
            for index in 0..<30 {
                var event = EventRecord.sample(
                    "e\(index)", app: index % 5 == 4 ? "2" : "1", channel: "c\(index % 3)", committedAt: 1_000 + Int64(index / 2))
                event.name = index % 2 == 0 ? "asked" : "answered"
                _ = try await store.commit([.init(event)])
            }
            func all(_ search: EventSearch, limit: Int) async throws -> [EventRecord] {
                var (search, found, pages) = (search, [EventRecord](), 0)
                repeat {
                    let page = try await store.newestEvents(search, limit: limit)
                    #expect(page.events.count <= limit)
                    found += page.events
                    (search.after, pages) = (page.next, pages + 1)
                } while search.after != nil && pages < 100
                return found
            }
            let numbers = (0..<30).filter { $0 % 5 != 4 }
            for limit in [1, 4, 24, 100] {
                let events = try await all(EventSearch(app: "1"), limit: limit)
                #expect(Set(events.map(\.id)) == Set(numbers.map { "e\($0)" }) && events.count == 24)
                #expect(zip(events, events.dropFirst()).allSatisfy { $0.committedAt >= $1.committedAt })
                let inChannel = try await all(EventSearch(app: "1", channel: "c1"), limit: limit)
                #expect(inChannel.map(\.id) == numbers.filter { $0 % 3 == 1 }.reversed().map { "e\($0)" })
                let named = try await all(EventSearch(app: "1", name: "asked"), limit: limit)
                #expect(named.map(\.id) == numbers.filter { $0 % 2 == 0 }.reversed().map { "e\($0)" })
                let both = try await all(EventSearch(app: "1", channel: "c1", name: "asked"), limit: limit)
                #expect(both.map(\.id) == numbers.filter { $0 % 3 == 1 && $0 % 2 == 0 }.reversed().map { "e\($0)" })
            }
            #expect(try await all(EventSearch(app: "1", name: "a", isBeginning: true), limit: 100).count == 24)
            #expect(try await all(EventSearch(app: "1", name: "ans", isBeginning: true), limit: 100).count == 12)
            #expect(try await all(EventSearch(app: "1", name: "ans"), limit: 100) == [])
            #expect(try await all(EventSearch(app: "1", after: "gone"), limit: 100) == [])
            #expect(try await all(EventSearch(app: "1", after: "e4"), limit: 100) == [], "an event of another app is no place in this one")
        },
    ]
}
