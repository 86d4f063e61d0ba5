import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("The trail of an event")
struct TrailTests {
    @Test("says of each recipient what was known, decided and why, when the receipt came, and what became of each push")
    func rows() async throws {
        let hub = try Hub()
        let now = hub.clock.wallMilliseconds
        var pushed = hub.events.delivery("e1", "b", "phone", .leased)
        try await hub.events.commit("e1", to: ["a", "b", "c"], deliveries: [pushed])
        pushed.attempts = 2
        for (number, answer, state) in [(1, "http 503", PushState.retry), (2, "accepted", .accepted)] {
            pushed.state = state
            pushed.outcome = answer
            pushed.attempt = DeliveryAttempt(number: number, startedAt: now + 1000, endedAt: now + 1250, answer: answer)
            try await hub.events.store.update([pushed])
        }
        try await hub.events.store.settle([RecipientSettlement(event: "e1", confirmed: [0], at: now + 1500)])
        let answer = try await hub.call("GET", "events/e1/deliveries")
        #expect(answer.status == 200 && answer["open"] == true && answer["recipients"] == 3 && answer["next"] == .null)
        #expect(answer["event"]?["channel"] == "presence-quiz-s1" && answer["event"]?["data"] == nil && answer["event"]?["sequence"] == 1)
        let rows = answer["deliveries"]?.arrayValue ?? []
        #expect(rows.map { $0["user"] } == ["a", "b", "c"] && rows.map { $0["state"] } == ["confirmed", "pushed", "awaited"])
        #expect(rows.first?["confirmed_at"] == "2026-01-09T01:00:01.750Z" && rows.last?["confirmed_at"] == .null)
        #expect(rows.first?["known"] == "live" && rows.first?["decision"] == "await_receipt")
        #expect(rows.first?["nid"]?.stringValue == NotificationID.make(event: "e1", app: "1", user: "a"))
        #expect(rows.first?["why"]?.stringValue?.contains("(live)") == true)
        let push = rows.dropFirst().first?["pushes"]?.arrayValue?.first
        #expect(
            push?["device"] == "phone" && push?["why"] == "live, not confirmed" && push?["attempts"] == 2 && push?["outcome"] == "accepted")
        #expect(push?["purpose"] == "notification")
        #expect(push?["answers"]?.arrayValue?.map { $0["answer"] } == ["http 503", "accepted"])
        #expect(push?["answers"]?.arrayValue?.first?["started_at"] == "2026-01-09T01:00:01.250Z")
        #expect(push?["answers"]?.arrayValue?.first?["ended_at"] == "2026-01-09T01:00:01.500Z")
    }

    @Test("is fetched page by page, or of one user alone")
    func pages() async throws {
        let hub = try Hub()
        let users = (0..<2_500).map { "u\($0)" }
        try await hub.events.commit("e1", to: users)
        var (after, found): (Int64?, [String]) = (0, [])
        while let next = after, found.count < 10_000 {
            let page = try await hub.call("GET", "events/e1/deliveries", query: ["after": "\(next)", "limit": "1000"])
            found += page["deliveries"]?.arrayValue?.compactMap { $0["user"]?.stringValue } ?? []
            after = page["next"]?.intValue
        }
        #expect(found == users)
        let first = try await hub.call("GET", "events/e1/deliveries")
        #expect(first["deliveries"]?.arrayValue?.count == TrailResource.pageUsual && first["next"] == 100 && first["recipients"] == 2_500)
        let one = try await hub.call("GET", "events/e1/deliveries", query: ["user": "u2400"])
        #expect(one["deliveries"]?.arrayValue?.map { $0["user"] } == ["u2400"] && one["next"] == .null)
        #expect(try await hub.call("GET", "events/e1/deliveries", query: ["user": "x"])["deliveries"] == [])
        #expect(try await hub.call("GET", "events/e1/deliveries", query: ["limit": "1001"]).status == 400)
        #expect(try await hub.call("GET", "events/e1/deliveries", query: ["after": "-1"]).status == 400)
    }

    @Test("of an unknown event, or of another app's, is a 404")
    func unknown() async throws {
        let hub = try Hub()
        try await hub.events.commit("e1", to: ["a"])
        #expect(try await hub.call("GET", "events/e1/deliveries", app: "2").status == 404)
        let answer = try await hub.call("GET", "events/nothing/deliveries")
        #expect(answer.status == 404 && answer.error.contains("'nothing'"))
        #expect(try await hub.call("POST", "events/e1/deliveries").status == 405)
    }

    @Test("has a word and a reason for every choice, and one state for each way it can end")
    func words() throws {
        let choices = RecipientNote.Choice.allCases
        #expect(Set(choices.map(\.word)).count == choices.count)
        func recipient(_ choice: RecipientNote.Choice?, _ states: [PushState] = [], confirmed: Bool = false) -> EventTrail.Recipient {
            let deliveries = states.map { state in
                EventTrail.Delivery(
                    record: PushRecord(nid: "", event: "", app: "", user: "", device: "d", state: state, reason: "why", dueAt: 0),
                    attempts: [])
            }
            return EventTrail.Recipient(
                user: "u", note: choice.map { RecipientNote(state: nil, choice: $0) }, isConfirmed: confirmed, confirmedAt: nil,
                isPushed: !states.isEmpty, deliveries: deliveries)
        }
        #expect(Set(choices.map { recipient($0).why }).count == choices.count)
        let cases: [(EventTrail.Recipient, Bool, String)] = [
            (recipient(.awaited), true, "awaited"), (recipient(.awaited), false, "closed"),
            (recipient(.awaited, confirmed: true), true, "confirmed"),
            (recipient(.awaited, [.failed, .accepted, .due]), false, "pushed"), (recipient(.pushed, [.failed, .retry]), false, "pushing"),
            (recipient(.pushed, [.failed]), false, "failed"), (recipient(.noDevice, [.undeliverable]), false, "undeliverable"),
            (recipient(.noToken), false, "undeliverable"), (recipient(.socketOnly), false, "socket"), (recipient(.seen), false, "socket"),
            (recipient(.actor), false, "cancelled"), (recipient(.expired), false, "expired"), (recipient(.muted), false, "skipped"),
            (recipient(nil, [.accepted]), false, "pushed"), (recipient(nil), false, "skipped"),
        ]
        for (recipient, isOpen, state) in cases { #expect(recipient.state(isOpen: isOpen) == state) }
        #expect(recipient(nil, [.accepted]).why == "why")
        var cleared = recipient(.pushed, [.failed, .accepted])
        cleared.deliveries[1].record.purpose = .clear
        #expect(cleared.state(isOpen: false) == "failed", "a clear tells nobody anything")
    }
}
