import HubCore
import Testing

@testable import HubAPI

@Suite("How often a participant may send something")
struct PaceGateTests {
    @Test("a burst passes, then one each hundred milliseconds; what was refused takes nothing")
    func bucket() {
        var limiter = PaceLimiter()
        for _ in 0..<PaceLimiter.burst { #expect(limiter.take("1/ann", now: 5000) == nil) }
        for _ in 0..<10 { #expect(limiter.take("1/ann", now: 5000) == PaceLimiter.everyMilliseconds) }
        #expect(limiter.take("1/bob", now: 5000) == nil && limiter.take("2/ann", now: 5000) == nil)
        #expect(limiter.take("1/ann", now: 5099) == 1)
        #expect(limiter.take("1/ann", now: 5100) == nil && limiter.take("1/ann", now: 5100) == 100)
        for _ in 0..<PaceLimiter.burst { #expect(limiter.take("1/ann", now: 30_000) == nil) }
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
        hub.desk.forget()
        let receipt: JSONValue = ["event_id": "e1", "status": "received"]
        let state: JSONValue = ["state": "foreground"]
        for _ in 0..<PaceLimiter.burst {
            #expect(try await hub.send("POST", "/me/receipts", receipt, token: token).status == 200)
        }
        let refused = try await hub.send("POST", "/me/receipts", receipt, token: token)
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "1" && refused.error.contains("too many receipts"))
        for _ in 0..<PaceLimiter.burst { #expect(try await hub.send("PUT", "/me/state", state, token: token).status == 200) }
        #expect(try await hub.send("PUT", "/me/state", state, token: token).status == 429)
        #expect(hub.desk.calls.count == 2 * Int(PaceLimiter.burst), "nobody is told of what was refused")
        #expect(try await hub.send("PUT", "/me/state", state, token: other).status == 200)
        hub.clock.advance(seconds: 1)
        #expect(try await hub.send("POST", "/me/receipts", receipt, token: token).status == 200)
    }
}
