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

    @Test("says when the wait ended and why nothing could be pushed then")
    func unreached() async throws {
        let hub = try Hub()
        var ended = hub.events.delivery("e1", "a", "", .undeliverable)
        (ended.reason, ended.dueAt) = ("no device", hub.clock.wallMilliseconds + 2_000)
        let expired = hub.events.delivery("e1", "c", "", .expired)
        try await hub.events.commit("e1", to: ["a", "b", "c"], deliveries: [ended, expired])
        let rows = try await hub.call("GET", "events/e1/deliveries")["deliveries"]?.arrayValue ?? []
        #expect(rows.map { $0["state"] } == ["undeliverable", "awaited", "expired"])
        #expect(rows.map { $0["pushes"] } == [[], [], []])
        #expect(rows.map { $0["outcome"] } == ["no device", .null, "expired"])
        #expect(rows.prefix(2).map { $0["outcome_ms"] } == [2_000, .null])
    }

    @Test("says why nothing could be pushed at the commit, from the note alone")
    func noted() async throws {
        let hub = try Hub()
        let ends: [(RecipientNote.Choice, String, JSONValue)] = [
            (.noDevice, "undeliverable", "no device"), (.noToken, "undeliverable", "no token"),
            (.permissionDenied, "undeliverable", "permission denied"), (.expired, "expired", "expired"), (.actor, "cancelled", .null),
            (.seen, "socket", .null),
        ]
        for (number, (choice, state, outcome)) in ends.enumerated() {
            try await hub.events.commit("e\(number)", to: ["a"], note: RecipientNote(state: .absent, choice: choice))
            let row = try await hub.call("GET", "events/e\(number)/deliveries")["deliveries"]?.arrayValue?.first
            #expect(row?["state"]?.stringValue == state && row?["outcome"] == outcome && row?["pushes"] == [], "\(choice)")
            #expect(row?["outcome_ms"] == (outcome == .null ? .null : 0), "\(choice)")
        }
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

    @Test("is filtered by state and decision, over pages that are full as long as there are matches")
    func filters() async throws {
        let hub = try Hub()
        let users = (0..<50).map { "u\($0)" }
        let failed = users.enumerated().filter { $0.offset % 5 == 0 }.map { hub.events.delivery("e1", $0.element, "phone", .failed) }
        try await hub.events.commit("e1", to: users, deliveries: failed)
        try await hub.events.store.settle([RecipientSettlement(event: "e1", confirmed: [1, 5], at: hub.clock.wallMilliseconds)])
        func page(_ query: [String: String]) async throws -> (users: [String], answer: Answer) {
            let answer = try await hub.call("GET", "events/e1/deliveries", query: query)
            return (answer["deliveries"]?.arrayValue?.compactMap { $0["user"]?.stringValue } ?? [], answer)
        }
        let first = try await page(["state": "failed", "limit": "4"])
        #expect(first.users == ["u0", "u10", "u15", "u20"] && first.answer["matched"] == 9 && first.answer["recipients"] == 50)
        let second = try await page(["state": "failed", "limit": "5", "after": "\(first.answer["next"]?.intValue ?? 0)"])
        #expect(second.users == ["u25", "u30", "u35", "u40", "u45"] && second.answer["next"] == .null && second.answer["matched"] == 9)
        #expect(try await page(["state": "confirmed,failed"]).answer["matched"] == 11)
        #expect(try await page(["state": "confirmed", "decision": "await_receipt"]).users == ["u1", "u5"])
        #expect(try await page(["decision": "push,seen"]).users == [])
        #expect(try await page(["state": "confirmed", "user": "u5"]).users == ["u5"])
        #expect(try await page(["state": "confirmed", "user": "u6"]).users == [])
        #expect(try await page(["user": "u6"]).answer["matched"] == nil)
        let refused = try await page(["state": "lost"]).answer
        #expect(refused.status == 400 && refused.error.contains("'lost'") && refused.error.contains("undeliverable"))
        #expect(try await page(["decision": "lost"]).answer.status == 400)
        #expect(try await hub.call("GET", "events/e1/deliveries", query: ["state": "failed"], app: "2").status == 404)
        #expect(try await hub.call("GET", "events/nothing/deliveries", query: ["state": "failed"]).status == 404)
    }

    @Test("comes with a summary over everybody: how many in which state, and when they were told")
    func summary() async throws {
        let hub = try Hub()
        let now = hub.clock.wallMilliseconds
        var pushed = hub.events.delivery("e1", "b", "phone", .leased)
        try await hub.events.commit("e1", to: ["a", "b", "c", "d"], deliveries: [pushed])
        pushed.state = .accepted
        pushed.attempt = DeliveryAttempt(number: 1, startedAt: now + 3_000, endedAt: now + 3_140, answer: "accepted")
        try await hub.events.store.update([pushed])
        try await hub.events.store.settle([
            RecipientSettlement(event: "e1", confirmed: [.init(recipient: 0, at: now + 1_250), .init(recipient: 2, at: now + 90_000)])
        ])
        let answer = try await hub.call("GET", "events/e1/deliveries", query: ["info": "summary", "state": "pushed"])
        let row = answer["deliveries"]?.arrayValue?.first
        #expect(row?["user"] == "b" && row?["receipt_ms"] == .null && row?["pushes"]?.arrayValue?.first?["accepted_ms"] == 3_140)
        #expect(row?["pushes"]?.arrayValue?.first?["due_ms"] == 0)
        #expect(answer["summary"]?["states"] == ["confirmed": 2, "pushed": 1, "awaited": 1])
        #expect(answer["summary"]?["decisions"] == ["await_receipt": 4])
        #expect(
            answer["summary"]?["strip"]
                == ["step_ms": 500, "confirmed": [[2, 1], [120, 1]], "escalated": [[6, 1]], "accepted": [[6, 1]]])
        let one = try await hub.call("GET", "events/e1/deliveries", query: ["user": "a"])
        #expect(one["deliveries"]?.arrayValue?.first?["receipt_ms"] == 1_200)
        #expect(try await hub.call("GET", "events/e1/deliveries", query: ["info": "all"]).status == 400)
    }

    @Test("of one person has their events, newest first, each with its own outcome, and nobody else")
    func person() async throws {
        let hub = try Hub()
        for index in 1...5 { try await hub.events.commit("e\(index)", to: ["a", "b"], data: #"{"secret":1}"#) }
        try await hub.events.commit("other", to: ["b"])
        try await hub.events.commit("foreign", to: ["a"], app: "2")
        let answer = try await hub.call("GET", "users/a/deliveries", query: ["limit": "2"])
        let events = answer["events"]?.arrayValue ?? []
        #expect(answer.status == 200 && answer["user"] == "a" && events.map { $0["event"]?["event_id"] } == ["e5", "e4"])
        #expect(events.allSatisfy { $0["delivery"]?["user"] == "a" && $0["event"]?["data"] == nil && $0["recipients"] == 2 })
        #expect(events.first?["delivery"]?["decision"] == "await_receipt" && events.first?["open"] == true)
        let next = try #require(answer["next"]?.intValue)
        #expect(next == events.last?["position"]?.intValue)
        let rest = try await hub.call("GET", "users/a/deliveries", query: ["limit": "100", "after": "\(next)"])
        #expect(rest["events"]?.arrayValue?.map { $0["event"]?["event_id"] } == ["e3", "e2", "e1"] && rest["next"] == .null)
        #expect(try await hub.call("GET", "users/nobody/deliveries").json == ["user": "nobody", "events": [], "next": .null])
        #expect(try await hub.call("GET", "users/a/deliveries", query: ["limit": "101"]).status == 400)
        #expect(try await hub.call("POST", "users/a/deliveries").status == 405)
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
        for (recipient, isOpen, state) in cases { #expect(recipient.state(isOpen: isOpen).rawValue == state) }
        #expect(recipient(nil, [.accepted]).why == "why")
        var cleared = recipient(.pushed, [.failed, .accepted])
        cleared.deliveries[1].record.purpose = .clear
        #expect(cleared.state(isOpen: false) == .failed, "a clear tells nobody anything")
    }
}
