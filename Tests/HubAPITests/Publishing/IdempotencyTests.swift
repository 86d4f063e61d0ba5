import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("An idempotency key")
struct IdempotencyTests {
    static let event = #"{"name":"n","channel":"room","data":"d"}"#
    static let key = ["idempotency-key": "order-17"]

    @Test("gets its first answer again, byte for byte, without a second publish")
    func replay() async throws {
        for (path, body) in [
            ("/events", Self.event), ("/events", #"{"name":"n","channels":["defined-1","room"],"data":"d","info":"subscription_count"}"#),
            ("/batch_events", #"{"batch":[{"name":"n","channel":"defined-1","data":"d"},{"name":"n","channel":"room","data":"d"}]}"#),
        ] {
            let stage = try RouterStage()
            let first = try await stage.send("POST", path, body, headers: Self.key)
            #expect(first.status == 200 && first[header: "Idempotency-Replayed"] == nil, "\(first.text)")
            // Signed anew, as every retry is.
            stage.clock.advance(seconds: 5)
            for _ in 0..<3 {
                let again = try await stage.send("POST", path, body, headers: Self.key)
                #expect(again.status == 200 && again.body == first.body && again[header: "Idempotency-Replayed"] == "true")
            }
            #expect(stage.delivery.taken == 1 && stage.publications == 0)
            #expect(try await stage.send("POST", path, body, headers: ["idempotency-key": "order-18"]).status == 200)
            #expect(stage.delivery.taken == 2)
        }
    }

    @Test("may be a member of the event, and the header beats it")
    func member() async throws {
        let stage = try RouterStage()
        let body = #"{"name":"n","channel":"room","data":"d","idempotency_key":"order-17"}"#
        _ = try await stage.send("POST", "/events", body)
        #expect(try await stage.send("POST", "/events", body)[header: "Idempotency-Replayed"] == "true")
        #expect(stage.delivery.taken == 1)
        #expect(try await stage.send("POST", "/events", body, headers: ["idempotency-key": "other"])[header: "Idempotency-Replayed"] == nil)
        #expect(stage.delivery.taken == 2)
        // Other routes do not look into what they are given.
        #expect(try await stage.send("POST", "/events", #"{"name":"n","channel":"room","data":"d","idempotency_key":null}"#).status == 200)
        #expect(stage.delivery.taken == 2 && stage.publications == 1)
    }

    @Test("belongs to one request: another one is refused")
    func otherRequest() async throws {
        let stage = try RouterStage()
        _ = try await stage.send("POST", "/events", Self.event, headers: Self.key)
        for (path, body, query) in [
            ("/events", #"{"name":"n","channel":"room","data":"D"}"#, []),
            ("/batch_events", #"{"batch":[{"name":"n","channel":"room","data":"d"}]}"#, []),
            ("/events", Self.event, [("info", "subscription_count")]),
        ] as [(String, String, [(String, String)])] {
            let response = try await stage.send(
                "POST", path, body, query: query.map { (name: $0.0, value: $0.1) }, headers: Self.key)
            #expect(response.status == 422 && response.error.contains("different request"), "\(path) \(body): \(response.text)")
            #expect(response[header: "Idempotency-Replayed"] == nil)
        }
        #expect(stage.delivery.taken == 1)
    }

    @Test("makes whoever comes while it is under way wait for the one answer, up to a bound")
    func underWay() async throws {
        let stage = try RouterStage()
        stage.delivery.hold()
        let first = stage.start("POST", "/events", Self.event, headers: Self.key)
        #expect(await eventually { stage.delivery.taken == 1 })
        let waiting = (0..<AnswerBook.waitingMax).map { _ in stage.start("POST", "/events", Self.event, headers: Self.key) }
        let tooMany = try await stage.send("POST", "/events", Self.event, headers: Self.key)
        #expect(tooMany.status == 409 && tooMany.error.contains("wait"))
        let other = try await stage.send("POST", "/events", #"{"name":"n","channel":"room","data":"D"}"#, headers: Self.key)
        #expect(other.status == 422)
        #expect(first.response == nil && waiting.allSatisfy { $0.response == nil })
        stage.delivery.release()
        #expect(await eventually { first.response != nil && waiting.allSatisfy { $0.response != nil } })
        #expect(first.response?.status == 200 && first.response?[header: "Idempotency-Replayed"] == nil)
        for waiter in waiting {
            #expect(waiter.response?.body == first.response?.body && waiter.response?[header: "Idempotency-Replayed"] == "true")
        }
        #expect(stage.delivery.taken == 1)
    }

    @Test("does not remember a refusal: a corrected retry works")
    func refusals() async throws {
        let stage = try RouterStage()
        #expect(try await stage.send("POST", "/events", #"{"name":"n","channel":"room"}"#, headers: Self.key).status == 400)
        stage.delivery.refuse(PublishRefusal(status: 404, sentence: "there is no session"))
        stage.delivery.hold()
        let first = stage.start("POST", "/events", Self.event, headers: Self.key)
        #expect(await eventually { stage.delivery.taken == 1 })
        let waiter = stage.start("POST", "/events", Self.event, headers: Self.key)
        stage.delivery.release()
        #expect(await eventually { first.response != nil && waiter.response != nil })
        for response in [first.response, waiter.response] {
            #expect(response?.status == 404 && response?.error == "there is no session" && response?[header: "Idempotency-Replayed"] == nil)
        }
        stage.delivery.refuse(nil)
        stage.delivery.setFull(true)
        #expect(try await stage.send("POST", "/events", Self.event, headers: Self.key).status == 503)
        stage.delivery.setFull(false)
        stage.delivery.setBroken(true)
        let broken = try await stage.send("POST", "/events", Self.event, headers: Self.key)
        #expect(broken.status == 503 && broken.error.contains("nothing was sent"))
        stage.delivery.setBroken(false)
        // Another body under the key is no different request, because none was accepted.
        let corrected = #"{"name":"n","channel":"room","data":"corrected"}"#
        let accepted = try await stage.send("POST", "/events", corrected, headers: Self.key)
        #expect(accepted.status == 200 && accepted[header: "Idempotency-Replayed"] == nil)
        #expect(stage.delivery.taken == 2)
    }

    @Test("has 1 to 255 printable characters")
    func bounds() async throws {
        let stage = try RouterStage()
        for key in ["", " \t", String(repeating: "k", count: 256), "a\tb", "a\u{0}b", "schlüssel", "a\u{7F}"] {
            let response = try await stage.send("POST", "/events", Self.event, headers: ["idempotency-key": key])
            #expect(response.status == 400 && response.error.contains("1 to 255 printable"), "\(key)")
        }
        #expect(try await stage.send("POST", "/events", #"{"name":"n","channel":"room","data":"d","idempotency_key":""}"#).status == 400)
        #expect(try await stage.send("POST", "/events", #"{"name":"n","channel":"room","data":"d","idempotency_key":7}"#).status == 400)
        #expect(stage.delivery.taken == 0 && stage.publications == 0)
        for key in ["k", String(repeating: "k", count: 255), "order 17: \"~\""] {
            #expect(try await stage.send("POST", "/events", Self.event, headers: ["idempotency-key": key]).status == 200)
        }
    }

    @Test("is the same with white space around it")
    func whiteSpace() async throws {
        let stage = try RouterStage()
        for (key, isReplayed) in [("order 17", nil), ("order 17 \t", "true"), (" order 17", "true"), ("order  17", nil), ("Order 17", nil)]
        {
            let response = try await stage.send("POST", "/events", Self.event, headers: ["idempotency-key": key])
            #expect(response.status == 200 && response[header: "Idempotency-Replayed"] == isReplayed, "'\(key)'")
        }
    }

    @Test("of another app is another key")
    func perApp() async throws {
        let stage = try RouterStage()
        for app in ["1", "2"] {
            let response = try await stage.send("POST", "/events", Self.event, headers: Self.key, app: app)
            #expect(response.status == 200 && response[header: "Idempotency-Replayed"] == nil)
        }
        #expect(stage.delivery.taken == 2)
    }

    @Test("is forgotten after 24 hours")
    func life() async throws {
        let stage = try RouterStage()
        _ = try await stage.send("POST", "/events", Self.event, headers: Self.key)
        stage.clock.advance(seconds: AnswerRecord.lifeMilliseconds / 1000)
        #expect(try await stage.send("POST", "/events", Self.event, headers: Self.key)[header: "Idempotency-Replayed"] == "true")
        stage.clock.advance(seconds: 1)
        #expect(try await stage.send("POST", "/events", Self.event, headers: Self.key)[header: "Idempotency-Replayed"] == nil)
        #expect(stage.delivery.taken == 2)
    }

    @Test("costs a publish without one nothing: it goes to the loops at once and asks nobody")
    func absence() throws {
        let stage = try RouterStage()
        #expect(stage.start("POST", "/events", Self.event).response?.text == "{}")
        #expect(stage.start("POST", "/batch_events", #"{"batch":[{"name":"n","channel":"room","data":"d"}]}"#).response?.text == "{}")
        #expect(stage.publications == 2 && stage.delivery.taken == 0 && stage.delivery.recalls == 0)
    }

    @Test("is refused when too many others are under way")
    func tooMany() async throws {
        let book = AnswerBook(time: ManualClock()) { _, _, _ in nil }
        for index in 0..<AnswerBook.underWayMax {
            let key = try #require(IdempotencyKey("k\(index)", app: "1"))
            book.once(key, digest: [], later: LateAnswer { Issue.record("\($0)") }) { _ in }
        }
        let pending = PendingAnswer()
        book.once(try #require(IdempotencyKey("one more", app: "1")), digest: [], later: LateAnswer { pending.answer($0) }) { _ in }
        #expect(pending.response?.status == 503)
    }

    @Test("names what a request asks, and not how it was signed")
    func digest() {
        func digest(
            _ method: String = "POST", _ path: String = "/p", _ query: [(name: String, value: String)] = [], _ body: String = ""
        ) -> [UInt8] {
            IdempotencyKey.digest(of: HTTPRequest(method: method, path: path, query: query, body: Array(body.utf8)))
        }
        let plain = digest()
        #expect(digest("POST", "/p", [("auth_key", "k"), ("AUTH_timestamp", "1"), ("body_md5", "x")]) == plain)
        let others = [
            digest("PUT"), digest("POST", "/p2"), digest("POST", "/p", [("a", "b")]), digest("POST", "/p", [("ab", "")]),
            digest("POST", "/p", [("a", ""), ("b", "")]), digest("POST", "/p", [], "a"),
        ]
        #expect(Set(others + [plain]).count == 7)
    }
}
