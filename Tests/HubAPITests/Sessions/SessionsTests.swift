import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Sessions and participants over the signed API")
struct SessionsTests {
    @Test("PUT makes a session, PUT again replaces it, GET shows it, DELETE ends it")
    func life() async throws {
        let hub = try Hub()
        let made = try await hub.call(
            "PUT", "sessions/s1", ["definition": "quiz", "join_code": "abC-12", "attributes": ["rounds": 3], "unknown": true])
        let shape: JSONValue = [
            "id": "s1", "session_id": 1, "definition": "quiz", "join_code": "ABC-12", "channel": "presence-quiz-s1",
            "attributes": ["rounds": 3], "created_at": "2026-01-09T01:00:00.250Z",
        ]
        #expect(made.status == 200 && made.json == shape)
        #expect(try await hub.call("GET", "sessions/s1").json == shape)

        let replaced = try await hub.call("PUT", "sessions/s1", ["definition": "orders"])
        #expect(replaced.status == 200 && replaced["session_id"] == 1 && replaced["join_code"] == .null)
        #expect(replaced["channel"] == "private-orders-s1-{user}" && replaced["attributes"] == [:])

        #expect(try await hub.call("DELETE", "sessions/s1").json == [:])
        #expect(try await hub.call("GET", "sessions/s1").status == 404)
        #expect(try await hub.call("DELETE", "sessions/s1").status == 200)
    }

    @Test(
        "a session that cannot be is refused with what to change",
        arguments: [
            (["definition": "quizz"], "quiz"), ([:], "definition is missing"), (["definition": 7], "definition must be a string"),
            (["definition": "quiz", "join_code": ""], "join_code"), (["definition": "quiz", "join_code": "a b"], "join_code"),
            (["definition": "quiz", "join_code": .string(String(repeating: "A", count: 33))], "join_code"),
            (["definition": "quiz", "join_code": "ÄÖ"], "join_code"), (["definition": "quiz", "attributes": []], "attributes"),
            (["definition": "quiz", "attributes": ["a": .string(String(repeating: "x", count: 16_384))]], "attributes"),
        ] as [(JSONValue, String)])
    func refusals(body: JSONValue, mentions: String) async throws {
        let answer = try await Hub().call("PUT", "sessions/s1", body)
        #expect(answer.status == 400 && answer.error.contains(mentions), "\(answer.error)")
    }

    @Test("an unknown definition is answered with the known ones")
    func knownDefinitions() async throws {
        #expect(try await Hub().call("PUT", "sessions/s1", ["definition": "nope"]).error.contains("duel, orders, quiz"))
    }

    @Test("session names have to be fit for a channel's name", arguments: ["a b", "a:b", "ä", String(repeating: "s", count: 101)])
    func names(name: String) async throws {
        #expect(try await Hub().call("PUT", "sessions/\(name)", ["definition": "quiz"]).status == 400)
    }

    @Test(
        "a session whose channel would be another's, or unreadable, is refused",
        arguments: [
            ("orders", "a-b"),  // private-orders-a-b-{user} could also be session a
            ("duel", "encrypted-1"),  // private-encrypted-1 is an encrypted channel
            ("duel", "orders-1-2"),  // private-orders-1-2 belongs to orders
        ])
    func ambiguousChannels(definition: String, name: String) async throws {
        let hub = try Hub()
        #expect(try await hub.call("PUT", "sessions/\(name)", ["definition": .string(definition)]).status == 400)
        #expect(try await hub.call("PUT", "sessions/fine", ["definition": .string(definition)]).status == 200)
    }

    @Test("a join code of another living session is a conflict, in the same app only")
    func codeConflict() async throws {
        let hub = try Hub()
        try await hub.makeSession("s1", code: "SAME")
        let answer = try await hub.call("PUT", "sessions/s2", ["definition": "quiz", "join_code": "same"])
        #expect(answer.status == 409 && answer.error.contains("SAME"))
        #expect(try await hub.call("PUT", "sessions/s2", ["definition": "quiz", "join_code": "same"], app: "2").status == 200)
    }

    @Test("malformed bodies are named as such", arguments: [("", "empty"), ("{", "JSON"), ("[]", "object"), ("definition=quiz", "JSON")])
    func malformed(body: String, mentions: String) async throws {
        let hub = try Hub()
        let request = HTTPRequest(method: "PUT", path: "/apps/1/sessions/s1", body: Array(body.utf8))
        let app = try #require(hub.apps.app(id: "1"))
        let answer = Answer(try #require(await hub.backend.respond(to: request, app: app, pathComponents: ["sessions", "s1"])))
        #expect(answer.status == 400 && answer.error.contains(mentions), "\(answer.error)")
    }

    @Test("participants are put, listed with their presence, and deleted")
    func participants() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let ann = try await hub.call("PUT", "sessions/s1/participants/ann", ["name": " Ann ", "email": "ann@example.com", "role": "host"])
        let shape: [String: JSONValue] = [
            "id": 1, "user": "ann", "name": "Ann", "email": "ann@example.com", "role": "host", "joined_at": "2026-01-09T01:00:00.250Z",
        ]
        #expect(ann.status == 200 && ann.json == .object(shape))
        #expect(try await hub.call("PUT", "sessions/s1/participants/bob", ["name": "Bob"]).json["role"] == .null)
        _ = try await hub.call("PUT", "users/ann/devices/d1", ["token": .string(fcmToken), "platform": "android"])
        #expect(hub.delivery.calls == [.roster(app: "1", session: "s1", user: "ann"), .roster(app: "1", session: "s1", user: "bob")])

        hub.delivery.setPresent(
            [
                "ann": ParticipantPresence(
                    connections: 2, state: .background,
                    sockets: [.init(node: "n", loop: 1, device: "d1", state: .background, receiptAge: 20)]),
                "eve": .init(connections: 1, state: .unknown),
            ])
        let list = try await hub.call("GET", "sessions/s1/participants")
        let entries = try #require(list["participants"]?.arrayValue)
        let socket: JSONValue = ["node": "n", "loop": 1, "device": "d1", "app_state": "background", "receipt_age_ms": 20]
        let annPresent: [String: JSONValue] = [
            "present": true, "connections": 2, "app_state": "background", "sockets": [socket], "devices": 1,
        ]
        #expect(entries.count == 2 && entries[0] == .object(shape.merging(annPresent) { $1 }))
        #expect(entries[1]["user"] == "bob" && entries[1]["present"] == false && entries[1]["app_state"] == .null)
        #expect(entries[1]["connections"] == 0 && entries[1]["devices"] == 0 && entries[1]["sockets"] == [])

        hub.delivery.forget()
        #expect(try await hub.call("DELETE", "sessions/s1/participants/bob").json == [:])
        #expect(try await hub.call("DELETE", "sessions/s1/participants/bob").status == 200)
        #expect(hub.delivery.calls == Array(repeating: .removed(session: "s1", user: "bob"), count: 2))
        _ = try await hub.call("DELETE", "sessions/s1")
        #expect(hub.delivery.calls.last == .ended(session: "s1", users: ["ann"]))
    }

    @Test(
        "a participant that cannot be is refused with what to change",
        arguments: [
            (["name": "A", "role": "king"], 400, "player, host"), (["email": "a@b"], 400, "name is missing"),
            (["name": "  "], 400, "name is empty"),
            (["name": .string(String(repeating: "n", count: 101))], 400, "name is too long"), (["name": "a\u{7}b"], 400, "control"),
            (["name": "A", "email": "ab"], 400, "email"), (["name": "A", "email": "a@b@c"], 400, "email"),
            (["name": "A", "email": "@b"], 400, "email"),
            (["name": "A", "email": "a b@c"], 400, "email"),
            (["name": "A", "email": .string("a@" + String(repeating: "ü", count: 127))], 400, "email"),
            (["name": "A", "email": "TAKEN@example.com"], 409, "e-mail"),
        ] as [(JSONValue, Int, String)])
    func participantRefusals(body: JSONValue, status: Int, mentions: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.call("PUT", "sessions/s1/participants/other", ["name": "Other", "email": "taken@example.com"])
        hub.delivery.forget()
        let answer = try await hub.call("PUT", "sessions/s1/participants/ann", body)
        #expect(answer.status == status && answer.error.contains(mentions), "\(answer.error)")
        #expect(!answer.error.contains("@") || answer.error.contains("a single @"))
        #expect(hub.delivery.calls.isEmpty)
    }

    @Test("user ids have 1 to 128 characters, and fit the channel where it names the user")
    func userIDs() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        try await hub.makeSession("o1", definition: "orders", code: "ORDERS")
        let long = String(repeating: "ü", count: 128)
        #expect(try await hub.call("PUT", "sessions/s1/participants/\(long)", ["name": "A"]).status == 200)
        #expect(try await hub.call("PUT", "sessions/s1/participants/\(long)x", ["name": "A"]).status == 400)
        #expect(try await hub.call("PUT", "sessions/s1/participants/a\u{1}", ["name": "A"]).status == 400)
        #expect(try await hub.call("PUT", "sessions/o1/participants/user-7", ["name": "A"]).status == 200)
        #expect(try await hub.call("PUT", "sessions/o1/participants/us er", ["name": "A"]).status == 400)
        #expect(try await hub.call("PUT", "sessions/o1/participants/\(String(repeating: "u", count: 128))", ["name": "A"]).status == 200)
        let request = HTTPRequest(method: "PUT", path: "", body: Array(#"{"name":"A"}"#.utf8))
        let app = try #require(hub.apps.app(id: "1"))
        let empty = await hub.backend.respond(to: request, app: app, pathComponents: ["sessions", "s1", "participants", ""])
        #expect(empty?.status == 400)
    }

    @Test("participants of an unknown session are not found")
    func unknownSession() async throws {
        let hub = try Hub()
        #expect(try await hub.call("GET", "sessions/s9/participants").status == 404)
        #expect(try await hub.call("PUT", "sessions/s9/participants/ann", ["name": "A"]).status == 404)
    }

    @Test("a session whose definition is gone says so")
    func definitionGone() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let bare = try Hub(files: [("channels/other.yaml", Hub.quizFile)], sharing: hub)
        #expect(try await bare.call("GET", "sessions/s1")["channel"] == .null)
        #expect(try await bare.call("PUT", "sessions/s1/participants/ann", ["name": "A"]).error.contains("channels/quiz.yaml"))
        #expect(try await bare.join().status == 503)
    }

    @Test(
        "wrong methods get a 405 that names the right ones",
        arguments: [
            ("sessions/s1", "POST", "GET, PUT, DELETE"), ("sessions/s1/participants", "PUT", "GET"),
            ("sessions/s1/participants/a", "GET", "PUT, DELETE"), ("users/a/devices", "POST", "GET"),
            ("users/a/devices/d", "POST", "GET, PUT, PATCH, DELETE"),
        ])
    func methods(path: String, method: String, allowed: String) async throws {
        let answer = try await Hub().call(method, path, [:])
        #expect(answer.status == 405 && answer.headers["Allow"] == allowed)
    }

    @Test(
        "other paths are somebody else's",
        arguments: ["channels", "sessions", "sessions/a/b", "users", "users/a/devices/d/e", "events/e", "links/trail"])
    func otherPaths(path: String) async throws {
        let hub = try Hub()
        let app = try #require(hub.apps.app(id: "1"))
        let request = HTTPRequest(method: "GET", path: "/apps/1/\(path)")
        #expect(await hub.backend.respond(to: request, app: app, pathComponents: path.split(separator: "/").map(String.init)) == nil)
    }

    @Test("a failing store is a 503 without details")
    func storeFailure() async throws {
        let hub = try Hub()
        hub.directory.breakDown()
        for answer in [
            try await hub.call("GET", "sessions/s1"), try await hub.call("GET", "users/a/devices/d"), try await hub.join(),
        ] {
            #expect(answer.status == 503 && answer.error == "the store did not answer: try again in a moment")
        }
    }
}
