import HubCore
import Testing

@testable import HubAPI

@Suite("How often a participant may send something")
struct PaceGateTests {
    @Test("a burst passes, then one each hundred milliseconds; what was refused takes nothing")
    func bucket() {
        var limiter = PaceLimiter()
        for _ in 0..<Pace.usual.burst { #expect(limiter.take("1/ann", now: 5000) == nil) }
        for _ in 0..<10 { #expect(limiter.take("1/ann", now: 5000) == Pace.usual.everyMilliseconds) }
        #expect(limiter.take("1/bob", now: 5000) == nil && limiter.take("2/ann", now: 5000) == nil)
        #expect(limiter.take("1/ann", now: 5099) == 1)
        #expect(limiter.take("1/ann", now: 5100) == nil && limiter.take("1/ann", now: 5100) == 100)
        for _ in 0..<Pace.usual.burst { #expect(limiter.take("1/ann", now: 30_000) == nil) }
        #expect(limiter.take("1/ann", now: 30_000) == 100)
    }

    @Test("who is beyond the bound begins anew")
    func bound() {
        var limiter = PaceLimiter(peopleMax: 10)
        for person in 0..<1000 {
            #expect(limiter.take("1/\(person)", now: 0) == nil)
            #expect(limiter.personCount <= 10)
        }
    }

    @Test("receipts and states of one participant are counted apart, and refused with the time to wait")
    func routes() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant(["device_id": "phone"])
        let other = try await hub.token(email: "bob@example.com")
        try await hub.events.commit("e1", to: [user])
        hub.delivery.forget()
        let receipt: JSONValue = ["event_id": "e1", "status": "received"]
        let state: JSONValue = ["state": "foreground"]
        for _ in 0..<Pace.usual.burst {
            #expect(try await hub.send("POST", "/me/receipts", receipt, token: token).status == 200)
        }
        let refused = try await hub.send("POST", "/me/receipts", receipt, token: token)
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "1" && refused.error.contains("too many receipts"))
        for _ in 0..<Pace.usual.burst { #expect(try await hub.send("PUT", "/me/state", state, token: token).status == 200) }
        #expect(try await hub.send("PUT", "/me/state", state, token: token).status == 429)
        #expect(hub.delivery.calls.count == 2 * Int(Pace.usual.burst), "nobody is told of what was refused")
        #expect(try await hub.send("PUT", "/me/state", state, token: other).status == 200)
        hub.clock.advance(seconds: 1)
        #expect(try await hub.send("POST", "/me/receipts", receipt, token: token).status == 200)
    }

    @Test("a client signs 500 channels at once, and a participant is refused beyond two devices' worth of them")
    func authorizations() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, _) = try await hub.participant()
        let body: JSONValue = ["socket_id": "1.2", "channel_name": "presence-quiz-s1"]
        for number in 0..<500 { #expect(try await hub.send("POST", "/pusher/auth", body, token: token).status == 200, "\(number)") }
        for _ in 500..<Pace.authorizations.burst { _ = try await hub.send("POST", "/pusher/auth", body, token: token) }
        let refused = try await hub.send("POST", "/pusher/auth", body, token: token)
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "1" && refused.error.contains("channel authorizations"))
        #expect(
            try await hub.send("POST", "/pusher/user-auth", ["socket_id": "1.2"], token: token).status == 200, "sign-ins are counted apart")
    }

    @Test("a participant's sign-ins, device registrations and pages of events have a pace each")
    func paces() async throws {
        let routes: [(method: String, path: String, body: JSONValue?, pace: Pace)] = [
            ("POST", "/pusher/user-auth", ["socket_id": "1.2"], .usual),
            ("PUT", "/me/device", ["token": .string(fcmToken), "platform": "android"], .registrations), ("GET", "/me/events", nil, .usual),
        ]
        let hub = try Hub()
        try await hub.makeSession()
        let (token, _) = try await hub.participant(["device_id": "phone"])
        let other = try await hub.token(email: "bob@example.com")
        for route in routes {
            for number in 0..<route.pace.burst {
                #expect(try await hub.send(route.method, route.path, route.body, token: token).status == 200, "\(route.path) \(number)")
            }
            let refused = try await hub.send(route.method, route.path, route.body, token: token)
            #expect(refused.status == 429 && refused.headers["Retry-After"] == "1", "\(route.path)")
            #expect(try await hub.send(route.method, route.path, route.body, token: other).status == 200)
        }
        #expect(try await hub.send("DELETE", "/me/device", token: token).status == 429, "both methods share one pace")
        hub.clock.advance(seconds: 1)
        #expect(try await hub.send("DELETE", "/me/device", token: token).status == 200)
    }
}
