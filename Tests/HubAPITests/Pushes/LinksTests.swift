import HubChannels
import HubCore
import HubCrypto
import HubDelivery
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("Links to a trail")
struct LinksTests {
    private func link(_ hub: Hub, _ body: JSONValue, app: String = "1") async throws -> String {
        let answer = try await hub.call("POST", "links", body, app: app)
        #expect(answer.status == 200 && answer["expires_at"] == "2026-01-09T02:00:00.000Z")
        return try #require(answer["token"]?.stringValue)
    }

    private func read(_ hub: Hub, _ token: String, query: [String: String] = [:]) async throws -> Answer {
        try await hub.send("GET", "/links/trail", query: query, token: token)
    }

    @Test("a link to an event reads its trail for an hour, as the backend's route does, and no other event")
    func event() async throws {
        let hub = try Hub()
        try await hub.events.commit("e1", to: ["a", "b", "c"])
        try await hub.events.commit("e2", to: ["a"])
        let token = try await link(hub, ["event": "E1"])
        #expect(!token.contains("/") && token.utf8.count < 1024)
        let query = ["limit": "2", "info": "summary", "event": "e2", "app": "2"]
        let (own, linked) = (try await hub.call("GET", "events/e1/deliveries", query: query), try await read(hub, token, query: query))
        #expect(linked.status == 200 && linked.json == own.json && linked["recipients"] == 3)
        #expect(try await hub.send("HEAD", "/links/trail", token: token).status == 200)
        hub.clock.advance(seconds: 59 * 60 + 59)
        #expect(try await read(hub, token).status == 200)
        hub.clock.advance(seconds: 1)
        let late = try await read(hub, token)
        #expect(late.status == 401 && late.error.contains("expired") && late.headers["WWW-Authenticate"] == "Bearer")
    }

    @Test("a link to a person reads what became of that person's events, in the link's app alone")
    func person() async throws {
        let hub = try Hub()
        try await hub.events.commit("e1", to: ["a", "b"])
        let token = try await link(hub, ["user": "a"])
        let answer = try await read(hub, token, query: ["user": "b"])
        #expect(answer["user"] == "a" && answer["events"]?.arrayValue?.count == 1)
        let other = try await read(hub, try await link(hub, ["user": "a"], app: "2"))
        #expect(other["user"] == "a" && other["events"] == [])
    }

    @Test("is made for one thing that exists in the app, and by POST alone")
    func refusals() async throws {
        let hub = try Hub()
        try await hub.events.commit("e1", to: ["a"])
        for body: JSONValue in [[:], ["event": "e1", "user": "a"], ["user": ""], ["user": "a\u{7}"], ["event": 1], ["event": .null]] {
            #expect(try await hub.call("POST", "links", body).status == 400, "\(body)")
        }
        let long = JSONValue.string(String(repeating: "x", count: 129))
        #expect(try await hub.call("POST", "links", ["user": long]).status == 400)
        #expect(try await hub.call("POST", "links", ["event": "e2"]).status == 404)
        #expect(try await hub.call("POST", "links", ["event": "e1"], app: "2").status == 404, "of another app")
        #expect(try await hub.call("GET", "links").headers["Allow"] == "POST")
        #expect(try await hub.send("POST", "/links/trail").headers["Allow"] == "GET, HEAD")
    }

    @Test("nothing but a link opens a link's trail, and a link opens nothing else")
    func otherTokens() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        try await hub.events.commit("e1", to: ["a"])
        let token = try await link(hub, ["user": "a"])
        let participant = try await hub.token()
        for other in [participant, String(token.dropLast()), token + "A", "x.y.z", ""] {
            #expect(try await read(hub, other).status == 401, "\(other)")
        }
        #expect(try await hub.send("GET", "/links/trail").status == 401)
        for path in ["/me/events", "/links/trail/x"] {
            let answer = await hub.open.respond(
                to: HTTPRequest(method: "GET", path: path, query: [], headers: ["authorization": "Bearer \(token)"], body: []))
            #expect(answer == nil || answer?.status == 401, "\(path)")
        }
        // Signed with the app's key, but of the wrong sort or about two things.
        let app = try #require(hub.apps.app(id: "1"))
        let both: JSONValue = ["app": "1", "exp": .int(.max), "event": "e1", "user": "a"]
        #expect(try await read(hub, SignedToken.make(both, type: "trail", app: app)).status == 401)
        let one: JSONValue = ["app": "1", "exp": .int(.max), "user": "a"]
        #expect(try await read(hub, SignedToken.make(one, type: "JWT", app: app)).status == 401)
        #expect(try await read(hub, SignedToken.make(one, type: "trail", app: app)).status == 200)
        #expect(try await read(hub, SignedToken.make(["app": "2", "exp": .int(.max), "user": "a"], type: "trail", app: app)).status == 401)
    }

    @Test("a link dies with its app, and with the key that signed it")
    func endings() async throws {
        let hub = try Hub()
        let disabled = try #require(hub.apps.app(id: "3"))
        let token = TrailLink.issue(app: disabled, .user("a"), nowSeconds: hub.clock.wallSeconds).token
        #expect(try await read(hub, token).status == 403)
        let other = App(index: 0, id: "1", secrets: ["alpha-key": "another-secret"])
        let forged = TrailLink.issue(app: other, .user("a"), nowSeconds: hub.clock.wallSeconds).token
        #expect(try await read(hub, forged).status == 401)
    }

    @Test("so many may be read at the same time, and one more is told to wait")
    func room() {
        let room = Turnstile(places: 2)
        #expect(room.enter() && room.enter() && !room.enter() && !room.enter())
        room.leave()
        #expect(room.enter() && !room.enter())
    }
}
