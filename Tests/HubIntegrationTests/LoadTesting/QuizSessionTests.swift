import Foundation
import HubCore
import HubJSON
import Testing

/// The hub's promise, with real clients, the official backend library and both gateways. Present people get the event over the socket,
/// absent ones get one notification, and nobody gets both or neither.
@Suite struct QuizSessionTests {
    private static let title = "Session Started! 🎯"
    private static let text = "The quiz session has begun. Join now to participate!"

    private func run(_ scenario: String, loops: Int = 2, configuration: String? = nil) async throws -> JSONValue {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let arguments = try configuration.map { ["--config", try stage.write($0, to: "tandem.yaml")] } ?? []
            let hub = try await stage.hub(loops: loops, gateways: gateways, arguments: arguments)
            return try await stage.python("load_testing/quiz.py", scenario, hub: hub, gateways: gateways)
        }
    }

    @Test(arguments: [1, 2]) func eachParticipantIsToldOnce(loops: Int) async throws {
        let result = try await run("main", loops: loops)
        #expect(result["present"] == ["Ada": true, "Ben": false, "Cleo": true])
        // A is there: the event, no push.
        #expect(result["events_a"]?.count == 1)
        #expect(result.at("pushes", "a") == [])
        // B is absent: one push by FCM. C is in the background: one push by APNs, and the frame on its open socket, which nobody sees.
        #expect(result.at("pushes", "b")?.count == 1)
        #expect(result.at("pushes", "c")?.count == 1)
        #expect(result["events_c"] == 1)
        #expect(result["all_pushes"] == 2)
        // An app's state is neither sent to others nor echoed.
        #expect(result["state_frames"] == 0)
        let event = try required(result.at("answer", "event_id"), "event_id").stringValue
        try checkFCM(try required(result.at("pushes", "b")?[0], "B's push"), result, event: event)
        try checkAPNs(try required(result.at("pushes", "c")?[0], "C's push"), result, event: event)
    }

    /// Checks the data of this event's notifications (the quiz guide's payload).
    private func checkData(_ data: JSONValue?, _ result: JSONValue, event: String?) throws {
        #expect(data?["type"] == "session_started")
        let session = try required(result.at("session", "session_id"), "session_id").intValue
        #expect(data?["session_id"] == .string("\(session ?? 0)"))
        #expect(data?["join_code"] == "ABC123")
        #expect(data?["current_question_index"] == "0")
        #expect(data?["time_per_question"] == "30")
        let startedAt = try required(data?["started_at"], "started_at").stringValue ?? ""
        let moment = try Date(startedAt, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let (before, after) = (result["before"]?.number ?? 0, result["after"]?.number ?? 0)
        // The text has milliseconds, the clock of the script has more.
        #expect(moment.timeIntervalSince1970 >= before - 0.001 && moment.timeIntervalSince1970 <= after)
        #expect(data?["event_id"]?.stringValue == event && event != nil)
        #expect(UUID(uuidString: data?["nid"]?.stringValue ?? "") != nil)
    }

    private func checkFCM(_ push: JSONValue, _ result: JSONValue, event: String?) throws {
        #expect(push["status"] == 200 && push["provider"] == "fcm" && push["method"] == "POST")
        let message = try required(push.at("body", "message"), "message")
        #expect(message["notification"] == ["title": .string(Self.title), "body": .string(Self.text)])
        #expect(message.at("android", "priority") == "HIGH")
        #expect(message.at("android", "notification", "channel_id") == "session_notifications")
        #expect(message["apns"] == nil && message["topic"] == nil)
        let data = try required(message["data"], "data")
        #expect(data.objectValue?.values.allSatisfy { $0.stringValue != nil } == true, "FCM takes strings only")
        try checkData(data, result, event: event)
        #expect(data["seq"] == "1")
        let sentAt = Double(data["ts"]?.stringValue ?? "") ?? 0
        #expect(sentAt >= (result["before"]?.number ?? 0) * 1000 - 1 && sentAt <= (result["after"]?.number ?? 0) * 1000)
    }

    private func checkAPNs(_ push: JSONValue, _ result: JSONValue, event: String?) throws {
        #expect(push["status"] == 200 && push["provider"] == "apns")
        #expect(push["path"]?.stringValue == "/3/device/" + String(repeating: "c", count: 64))
        let headers = push["headers"]
        #expect(headers?["apns-push-type"] == "alert" && headers?["apns-priority"] == "10" && headers?["apns-topic"] == "com.example.app")
        #expect(UUID(uuidString: headers?["apns-id"]?.stringValue ?? "") != nil)
        let body = try required(push["body"], "body")
        #expect(body.at("aps", "alert") == ["title": .string(Self.title), "body": .string(Self.text)])
        #expect(body.at("aps", "sound") == "default")
        try checkData(body, result, event: event)
        #expect(body["seq"] == 1)
    }

    @Test func whoeverComesBackIsToldOverTheSocketOnly() async throws {
        let result = try await run("foreground")
        // Events of one publish each, and all pushes so far.
        #expect(result["event_background"] == [1, 1])
        #expect(result["event_foreground"] == [1, 1])
        #expect(result["http_background"] == [1, 2])
        #expect(result["http_foreground"] == [1, 2])
    }

    @Test func nobodyNeedsAToken() async throws {
        let result = try await run("without_token")
        #expect(result["events"] == 1 && result["pushes"] == 0)
        #expect(result.at("answer", "event_id")?.stringValue != nil)
    }

    @Test(arguments: [1, 2]) func aSecondSocketCountsAsTheSamePerson(loops: Int) async throws {
        let result = try await run("several_sockets", loops: loops)
        #expect(result["together"] == [2, 2, 0])
        // One push when only the socket in the background was left, one when none was.
        #expect(result["later"] == 2)
        #expect(result["second"] == 3)
    }

    @Test func whoeverCausedTheEventIsNotTold() async throws {
        #expect(try await run("actor") == ["actor": 0, "other": 1, "pushes": 0])
    }

    @Test func deadTokensAreNotAskedAgain() async throws {
        let result = try await run("dead_tokens")
        #expect(result["apns"] == [410])
        #expect(result["fcm"] == [404])
        // Registered again after the moment that APNs named: the token lives.
        #expect(result["kept"] == [410, 200, 200, 200])
        #expect(result["renewed"] == [200])
    }

    @Test func withoutCredentialsPushesAreLogged() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let result = try await stage.python("load_testing/quiz.py", "unconfigured", hub: hub)
            #expect(result["events"] == 1)
            #expect(result.at("answer", "event_id")?.stringValue != nil)
            func lines(_ provider: String) -> [Substring] {
                hub.log.split(separator: "\n").filter { $0.contains("push not sent") && $0.contains("push.provider=\(provider)") }
            }
            try await eventually("both pushes to be logged") { !lines("fcm").isEmpty && !lines("apns").isEmpty }
            // Ada is there and has a token too: hers would be a third.
            #expect(lines("fcm").count == 1 && lines("apns").count == 1)
            for token in try required(result["tokens"], "tokens").arrayValue ?? [] {
                #expect(!hub.log.contains(token.stringValue ?? "-"), "a device token is in the log")
            }
            #expect(!hub.log.contains("example.com"), "an e-mail is in the log")
            #expect(hub.process.output.contains("FCM is not configured") && hub.process.output.contains("APNs is not configured"))
        }
    }

    @Test func anUnknownSessionIsRefused() async throws {
        let result = try await run("unknown_session")
        #expect(result["error"]?.stringValue?.hasPrefix("404") == true && result["error"]?.stringValue?.contains("nowhere") == true)
        #expect(result["events"] == 0 && result["pushes"] == 0)
    }

    @Test func publishedDataDecidesTheNotificationsData() async throws {
        let result = try await run("data_variants")
        let bodies = try required(result["bodies"], "bodies")
        #expect(bodies[0]?["started_at"] == "2026-03-01T18:00:00Z" && bodies[0]?["current_question_index"] == "3")
        #expect(bodies[1]?["current_question_index"] == "0" && bodies[1]?["seq"] == "2")
        // Two of the four events were for the socket only.
        #expect(result["pushes"] == 2)
    }

    @Test func anUnavailableGatewayIsTriedAgain() async throws {
        let result = try await run("retried")
        #expect(result["statuses"] == [503, 200])
        #expect(result["ids"] == 1)
    }

    @Test func phonesAndTheirOwners() async throws {
        let result = try await run("devices")
        #expect(result["absent"] == ["shared": 1, "phone": 1, "pad": 1, "refreshed": 1, "old": 0])
        #expect(result["present"] == ["shared": 2, "phone": 1, "pad": 1, "refreshed": 2, "old": 0])
    }

    @Test func severalEventsInOneRequest() async throws {
        let result = try await run("batch")
        let batch = try required(result.at("answer", "batch"), "batch")
        #expect(batch.count == 3 && batch[0] == [:] && batch[1]?["event_id"]?.stringValue != nil && batch[2] == [:])
        #expect(result.at("both", "event_ids")?.objectValue?.count == 2)
        // One channel without a session refuses the whole request.
        #expect(result["refused"] == ["404", "404"])
        #expect(result["plain"] == 1 && result["told"] == 1)
        #expect(result["pushes"] == [2, 1])
    }

    @Test(arguments: [1, 2]) func whoeverFallsSilentIsAbsent(loops: Int) async throws {
        let result = try await run(
            "gone_silent", loops: loops,
            configuration: "apps: [ { id: \"1\", key: app-key, secret: app-secret, ping_interval: 1s, pong_timeout: 1s } ]\n")
        #expect(result == ["pushes": 1, "silent": true])
    }
}
