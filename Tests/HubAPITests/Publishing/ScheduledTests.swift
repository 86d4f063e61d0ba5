import HubCore
import HubDelivery
import HubTesting
import Testing

@testable import HubAPI

@Suite("An event with deliver_at")
struct ScheduledTests {
    private static let later = ManualClock.start + 60_000
    private static let month = LaterPublishes.aheadMillisecondsMax

    private func body(_ deliverAt: String = "\(later)", channel: String = "defined-1", more: String = "") -> String {
        #"{"name":"n","channel":"\#(channel)","data":"a\u0041\/","deliver_at":\#(deliverAt)\#(more)}"#
    }

    @Test("is kept for its time, checked, and neither sent nor committed now")
    func kept() async throws {
        let stage = try RouterStage()
        for channel in ["defined-1", "room"] {
            let answer = try await stage.send("POST", "/events", body(channel: channel, more: #","socket_id":"1.2""#))
            #expect(answer.status == 200 && answer.json["deliver_at"] == "2026-01-09T01:01:00.250Z", "\(answer.text)")
            let id = try #require(answer.json["scheduled_id"]?.stringValue)
            let kept = try #require(try await stage.schedule.store.scheduled(app: "1", id: id))
            #expect(kept.deliverAt == Self.later && kept.createdAt == ManualClock.start && kept.state == .waiting)
            // The data's token as it was sent.
            #expect(
                String(decoding: kept.request, as: UTF8.self)
                    == #"{"name":"n","channels":["\#(channel)"],"data":"a\u0041\/","socket_id":"1.2"}"#)
        }
        #expect(stage.delivery.trials == 2 && stage.delivery.taken == 0 && stage.publications == 0)
    }

    @Test("whose time has passed is published at once")
    func past() async throws {
        let stage = try RouterStage()
        for time in ["0", "\(ManualClock.start)", #""2026-01-09T00:59:59Z""#] {
            #expect(try await stage.send("POST", "/events", body(time)).json["event_id"] != nil)
            #expect(try await stage.send("POST", "/events", body(time, channel: "room")).text == "{}")
        }
        #expect(stage.delivery.taken == 3 && stage.publications == 3 && stage.delivery.trials == 0)
        #expect(try await stage.schedule.store.nextScheduledAt() == nil)
    }

    @Test("is refused with what is wrong with it, more than 30 days ahead, and where info asks for now")
    func refused() async throws {
        let stage = try RouterStage()
        let edge = ManualClock.start + Self.month
        #expect(try await stage.send("POST", "/events", body("\(edge)")).status == 200)
        let cases: [(String, String)] = [
            (body("\(edge + 1)"), "30 days"), (body("9223372036854775807"), "30 days"), (body(#""tomorrow""#), "deliver_at must be"),
            (body(more: #","info":"subscription_count""#), "info tells"),
            (#"{"name":"n","channel":"a b","data":"d","deliver_at":\#(Self.later)}"#, "channel"),
        ]
        for (body, text) in cases {
            let answer = try await stage.send("POST", "/events", body)
            #expect(answer.status == 400 && answer.error.contains(text), "\(answer.text)")
        }
        stage.delivery.refuse(PublishRefusal(status: 404, sentence: "there is no session"))
        let answer = try await stage.send("POST", "/events", body())
        #expect(answer.status == 404 && answer.error == "there is no session")
        stage.delivery.refuse(nil)
        stage.delivery.setFull(true)
        #expect(try await stage.send("POST", "/events", body()).status == 503)
        stage.delivery.setFull(false)
        stage.schedule.fail(ScheduleError.full(app: "1"))
        let full = try await stage.send("POST", "/events", body())
        #expect(full.status == 429 && full.error.contains("10000 events that wait"), "\(full.text)")
        stage.schedule.fail(ScriptedDelivery.BrokenStore())
        #expect(try await stage.send("POST", "/events", body()).status == 503)
        #expect(try await stage.schedule.store.scheduled(app: "1", after: nil, limit: 10).count == 1)
    }

    @Test("under an idempotency key is kept once, also when it is sent again after its time")
    func keyed() async throws {
        let stage = try RouterStage()
        let key = ["idempotency-key": "k"]
        let first = try await stage.send("POST", "/events", body(), headers: key)
        #expect(first.status == 200)
        let kept = try #require(try await stage.schedule.store.answer(app: "1", key: "k", since: 0))
        #expect(kept.body == first.body && kept.status == 200)
        #expect(try await stage.schedule.store.scheduled(app: "1", after: nil, limit: 10).first?.idempotencyKey == "k")
        stage.delivery.keep(kept)
        for seconds in [5, 100] as [Int64] {
            stage.clock.advance(seconds: seconds)
            let again = try await stage.send("POST", "/events", body(), headers: key)
            #expect(again.body == first.body && again[header: "Idempotency-Replayed"] == "true")
        }
        #expect(try await stage.send("POST", "/events", body(channel: "room"), headers: key).status == 422)
        #expect(stage.delivery.trials == 1 && stage.delivery.taken == 0)
    }

    @Test("may stand in the query, and in every item of a batch")
    func forms() async throws {
        let stage = try RouterStage()
        let query = try await stage.send(
            "POST", "/events", #"{"name":"n","channel":"room","data":"d"}"#, query: [(name: "deliver_at", value: "2026-01-09T02:00:00Z")])
        #expect(query.json["deliver_at"] == "2026-01-09T02:00:00.000Z", "\(query.text)")
        func item(_ deliverAt: Int64?) -> String {
            #"{"name":"n","channel":"room","data":"d"\#(deliverAt.map { ",\"deliver_at\":\($0)" } ?? "")}"#
        }
        let batch = try await stage.send("POST", "/batch_events", #"{"batch":[\#(item(Self.later)),\#(item(Self.later + 1)),\#(item(0))]}"#)
        let times = batch.json["batch"]?.arrayValue?.map { $0["deliver_at"] } ?? []
        #expect(times == ["2026-01-09T01:01:00.250Z", "2026-01-09T01:01:00.251Z", "1970-01-01T00:00:00.000Z"], "\(batch.text)")
        #expect(Set(batch.json["batch"]?.arrayValue?.compactMap { $0["scheduled_id"]?.stringValue } ?? []).count == 3)
        let mixed = try await stage.send("POST", "/batch_events", #"{"batch":[\#(item(Self.later)),\#(item(nil))]}"#)
        #expect(mixed.status == 400 && mixed.error.contains("apart"))
        // All of them now.
        #expect(try await stage.send("POST", "/batch_events", #"{"batch":[\#(item(0)),\#(item(nil))]}"#).text == "{}")
        #expect(stage.publications == 2)
    }

    @Test("is listed page by page until it is cancelled, which works once")
    func listed() async throws {
        let stage = try RouterStage()
        var ids: [String] = []
        for index in 0..<5 as Range<Int64> {
            let answer = try await stage.send("POST", "/events", body("\(Self.later + index / 2)"))
            ids.append(try #require(answer.json["scheduled_id"]?.stringValue))
        }
        let foreign = try await stage.send("POST", "/events", body(), app: "2")
        #expect(foreign.status == 200)
        var (cursor, found): (String?, [String]) = ("", [])
        while let after = cursor, found.count < 100 {
            let query = [(name: "limit", value: "2")] + (after.isEmpty ? [] : [(name: "after", value: after)])
            let page = try await stage.send("GET", "/scheduled", query: query)
            found += page.json["scheduled"]?.arrayValue?.compactMap { $0["scheduled_id"]?.stringValue } ?? []
            cursor = page.json["next"]?.stringValue
        }
        #expect(found.sorted() == ids.sorted() && found.count == 5)
        let one = try await stage.send("GET", "/scheduled/\(ids[0])")
        #expect(
            one.json == [
                "scheduled_id": .string(ids[0]), "deliver_at": "2026-01-09T01:01:00.250Z", "created_at": "2026-01-09T01:00:00.250Z",
                "state": "waiting", "name": "n", "channels": ["defined-1"], "data": "aA/",
            ])
        #expect(try await stage.send("DELETE", "/scheduled/\(ids[0])", app: "2").status == 404)
        #expect(try await stage.send("DELETE", "/scheduled/\(ids[0])").text == "{}")
        let again = try await stage.send("DELETE", "/scheduled/\(ids[0])")
        #expect(again.status == 404 && again.error.contains("cancelled already"))
        let cancelled = try await stage.send("GET", "/scheduled/\(ids[0])")
        #expect(
            cancelled.json["state"] == "cancelled" && cancelled.json["ended_at"] == "2026-01-09T01:00:00.250Z"
                && cancelled.json["data"] == nil)
        #expect(try await stage.send("GET", "/scheduled").json["scheduled"]?.arrayValue?.count == 4)
        for (method, path, status) in [
            ("DELETE", "/scheduled/x", 404), ("GET", "/scheduled/x", 404), ("POST", "/scheduled", 405),
            ("PUT", "/scheduled/\(ids[1])", 405),
        ] { #expect(try await stage.send(method, path).status == status, "\(method) \(path)") }
        for query in [("after", "x"), ("after", "1"), ("limit", "1001"), ("state", "done")] {
            #expect(try await stage.send("GET", "/scheduled", query: [(name: query.0, value: query.1)]).status == 400)
        }
    }

    @Test("that was refused when its time came says why, and one that was published which events it became")
    func ended() async throws {
        let stage = try RouterStage()
        let answers = [try await stage.send("POST", "/events", body()), try await stage.send("POST", "/events", body())]
        let ids = answers.compactMap { $0.json["scheduled_id"]?.stringValue }
        try await stage.schedule.store.failScheduled(id: ids[0], outcome: "there is no session", now: Self.later)
        _ = try await stage.schedule.store.commit(
            [], answers: [], scheduled: [ScheduledTake(id: ids[1], at: Self.later, events: ["e1", "e2"])])
        let failed = try await stage.send("GET", "/scheduled", query: [(name: "state", value: "failed")])
        #expect(failed.json["scheduled"]?.arrayValue?.map { $0["error"] } == ["there is no session"])
        #expect(try await stage.send("GET", "/scheduled").json == ["scheduled": [], "next": .null])
        #expect(try await stage.send("GET", "/scheduled/\(ids[1])").json["event_ids"] == ["e1", "e2"])
        for id in ids { #expect(try await stage.send("DELETE", "/scheduled/\(id)").status == 404) }
    }
}
