import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import Testing

@testable import HubOutbox

/// A push that waits is for the person: it goes where the person can be reached when it is sent.
@Suite struct FollowingTests {
    private func outcomes(_ test: TestStore, _ event: String = "e1", until isDone: ([PushRecord]) -> Bool) async throws -> [String: String]
    {
        let rows = try await test.rows(event, until: isDone)
        return Dictionary(rows.map { ($0.device, "\($0.state.rawValue): \($0.outcome ?? "")") }, uniquingKeysWith: { first, _ in first })
    }

    private func hasEnded(_ rows: [PushRecord]) -> Bool { !rows.isEmpty && !rows.contains { PushState.open.contains($0.state) } }

    @Test("the same token under a new device id") func newID() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        test.clock.advance(milliseconds: 5)
        try await test.device(id: "new", token: "t")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([push])
        #expect(try await outcomes(test, until: hasEnded) == ["d": "cancelled: replaced", "new": "accepted: accepted"])
        #expect(gateway.sent.map(\.target.token) == ["t"] && gateway.sent.map(\.message.nid) == [push.nid])
    }

    @Test("an app that was installed again: new id, new token, the old device deleted") func reinstalled() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        test.clock.advance(milliseconds: 5)
        _ = try await test.store.deleteDevice(app: "1", user: "u", id: "d")
        try await test.device(id: "new", token: "t2")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([push])
        #expect(try await outcomes(test, until: hasEnded) == ["d": "cancelled: replaced", "new": "accepted: accepted"])
        #expect(gateway.sent.map(\.target.token) == ["t2"])
    }

    @Test("the same, where nobody deleted the old device and its token turns out to be dead") func dead() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        test.clock.advance(milliseconds: 5)
        try await test.device(id: "new", token: "t2")
        let gateway = ScriptedGateway([.dead(reason: "UNREGISTERED", since: nil)])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([push])
        #expect(
            try await outcomes(test, until: { $0.count == 2 && hasEnded($0) }) == [
                "d": "failed: UNREGISTERED", "new": "accepted: accepted",
            ])
        #expect(gateway.sent.map(\.target.token) == ["t", "t2"])
        #expect(await eventually { await outbox.sending == 0 })
    }

    @Test("a device that another person has taken over is not pushed to") func adopted() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        test.clock.advance(milliseconds: 5)
        try await test.device(user: "v", token: "t")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([push])
        #expect(try await outcomes(test, until: hasEnded) == ["d": "undeliverable: no token"])
        #expect(gateway.sent.isEmpty)
    }

    @Test("whoever logged out has no device") func loggedOut() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        _ = try await test.store.deleteDevice(app: "1", user: "u", id: "d")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([push])
        #expect(try await outcomes(test, until: hasEnded) == ["d": "undeliverable: no device"])
        #expect(gateway.sent.isEmpty)
    }

    @Test("two rows of one person that come to have one token are one push") func oneToken() async throws {
        let test = try TestStore()
        try await test.device(id: "d", token: "t")
        try await test.device(id: "e", token: "t2")
        let pushes = try await test.commitPushes(event: "e1", policy: .critical, devices: ["d", "e"])
        test.clock.advance(milliseconds: 5)
        try await test.device(id: "e", token: "t")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue(pushes)
        #expect(try await outcomes(test, until: hasEnded) == ["d": "undeliverable: no token", "e": "accepted: accepted"])
        #expect(gateway.sent.map(\.target.token) == ["t"])
    }

    @Test("a token that has got the notification does not get it again under another device's name") func tellsNoTokenTwice() async throws {
        let test = try TestStore()
        try await test.device(id: "d", token: "t")
        try await test.device(id: "e", token: "t2")
        let pushes = try await test.commitPushes(event: "e1", policy: .critical, devices: ["d", "e"])
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([pushes[0]])
        _ = try await test.rows("e1") { $0.contains { $0.state == .accepted } }
        test.clock.advance(milliseconds: 5)
        _ = try await test.store.deleteDevice(app: "1", user: "u", id: "e")
        try await test.device(id: "new", token: "t")
        await outbox.enqueue([pushes[1]])
        #expect(try await outcomes(test, until: hasEnded) == ["d": "accepted: accepted", "e": "undeliverable: no device"])
        // The same where the other device has a row and gets the token that was told.
        try await test.device(id: "d", token: "t3")
        try await test.device(id: "e", token: "t4")
        let more = try await test.commitPushes(event: "e2", policy: .critical, devices: ["d", "e"])
        await outbox.enqueue([more[0]])
        _ = try await test.rows("e2") { $0.contains { $0.state == .accepted } }
        test.clock.advance(milliseconds: 5)
        try await test.device(id: "e", token: "t3")
        await outbox.enqueue([more[1]])
        #expect(try await outcomes(test, "e2", until: hasEnded) == ["d": "accepted: accepted", "e": "cancelled: same token"])
        #expect(gateway.sent.map(\.target.token) == ["t", "t3"])
    }

    @Test("what has waited for long is told on a device that has come since, too") func joinedLater() async throws {
        let test = try TestStore()
        try await test.device(token: "t")
        let push = try await test.commitPush()
        test.clock.advance(seconds: 61)
        try await test.device(id: "new", token: "t2")
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([push])
        #expect(
            try await outcomes(test, until: { $0.count == 2 && hasEnded($0) }) == ["d": "accepted: accepted", "new": "accepted: accepted"])
        #expect(Set(gateway.sent.map(\.target.token)) == ["t", "t2"] && gateway.sent.count == 2)
    }

    @Test("what waited when the process was killed follows its person after the next start, once") func crash() async throws {
        let test = try TestStore()
        try await test.device(id: "d", token: "t")
        try await test.device(id: "e", token: "t2")
        let pushes = try await test.commitPushes(event: "e1", policy: .critical, devices: ["d", "e"])
        _ = try await test.store.lease(
            pushes.map { push in
                var push = push
                (push.state, push.attempts) = (.leased, 1)
                return push
            })
        try await test.reopen()
        test.clock.advance(milliseconds: 5)
        _ = try await test.store.deleteDevice(app: "1", user: "u", id: "d")
        _ = try await test.store.deleteDevice(app: "1", user: "u", id: "e")
        try await test.device(id: "new", token: "t3")
        let gateway = ScriptedGateway()
        try await test.outbox(gateway).resume()
        #expect(
            try await outcomes(test, until: hasEnded) == [
                "d": "cancelled: replaced", "e": "undeliverable: no device", "new": "accepted: accepted",
            ])
        #expect(gateway.sent.map(\.target.token) == ["t3"])
    }
}
