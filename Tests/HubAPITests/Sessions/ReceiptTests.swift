import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("A receipt that an app sends")
struct ReceiptTests {
    @Test("is told to delivery, by notification and by event, with the device that the token is of")
    func confirms() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant(["device_id": "phone"])
        try await hub.events.commit("e1", to: ["somebody", user])
        let nid = NotificationID.make(event: "e1", app: "1", user: user)
        hub.delivery.forget()
        for body in [
            ["nid": .string(nid), "status": "received"], ["nid": .string(nid.uppercased()), "status": "opened"],
            ["event_id": "e1", "status": "opened"],
        ] as [JSONValue] {
            let answer = try await hub.send("POST", "/me/receipts", body, token: token)
            #expect(answer.status == 200 && answer["event_id"] == "e1" && answer["nid"] == .string(nid), "\(answer)")
            #expect(answer["status"] == body["status"])
        }
        let receipt = AppReceipt(event: "e1", app: "1", channel: "presence-quiz-s1", user: user, device: "phone", recipient: 1)
        var notification = receipt
        notification.isOfNotification = true
        #expect(hub.delivery.calls == [.received(notification), .received(notification), .received(receipt)])
    }

    @Test("of somebody else, of another app, or of nothing known is a 404, and nobody is told")
    func foreign() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant()
        try await hub.events.commit("e1", to: ["somebody"])
        try await hub.events.commit("e2", to: [user], app: "2")
        hub.delivery.forget()
        let theirs = NotificationID.make(event: "e1", app: "1", user: "somebody")
        for id in [
            ("nid", theirs), ("event_id", "e1"), ("event_id", "e2"), ("nid", NotificationID.make(event: "e2", app: "2", user: user)),
            ("event_id", "e9"), ("nid", ""), ("event_id", ""),
        ] {
            let answer = try await hub.send("POST", "/me/receipts", [id.0: .string(id.1), "status": "received"], token: token)
            #expect(answer.status == 404 && answer.error.contains("no event of yours"), "\(id)")
        }
        #expect(hub.delivery.calls == [])
    }

    @Test("without an id, with a wrong status or without a token is refused")
    func refusals() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token()
        let bodies: [(JSONValue, String)] = [
            (["status": "received"], "nid is missing"), (["nid": "x"], "status is missing"),
            (["nid": "x", "status": "read"], "status must be"),
            (["nid": 7, "status": "opened"], "nid must be a string"),
            (["event_id": .string(String(repeating: "e", count: 65)), "status": "opened"], "event_id is too long"),
        ]
        for (body, text) in bodies {
            let answer = try await hub.send("POST", "/me/receipts", body, token: token)
            #expect(answer.status == 400 && answer.error.contains(text), "\(answer.error)")
        }
        #expect(try await hub.send("POST", "/me/receipts", ["nid": "x", "status": "opened"]).status == 401)
        #expect(try await hub.send("GET", "/me/receipts", token: token).status == 405)
    }
}
