import HubCore
import HubJSON
import Testing

@testable import GatewaySimulators

@Suite("FCM") struct FCMTests {
    @Test("a message with every kind of block is accepted, named and recorded")
    func accepted() throws {
        let fixture = try Fixture()
        let message = try JSONValue(parsing: Self.complete)
        let answer = try fixture.sendFCM(message, on: fixture.fcmClient())
        #expect(answer.status == 200, "\(answer.text)")
        let name = try #require(try answer.json["name"]?.stringValue)
        #expect(name.wholeMatch(of: /projects\/tandem-simulated\/messages\/.+/) != nil)
        let record = try #require(fixture.gateways.requests(provider: .fcm, token: "T").first)
        #expect(record.identifier == name && record.status == 200)
        #expect(record.json?["message"]?["data"]?["seq"] == "42")
        #expect(fixture.gateways.requests(provider: .oauth).count == 1)
    }

    static let complete = #"""
        {"token":"T","data":{"nid":"01JX","type":"session_started","empty":"","collapse_key":"k"},
         "notification":{"title":"Session Started! 🎯","body":"The quiz session has begun.","image":null},
         "android":{"priority":"high","ttl":"600.5s","collapse_key":"s123.phase","restrictedPackageName":"com.example",
          "notification":{"channel_id":"session_notifications","tag":"s123.phase","sound":"default","notificationCount":"3",
           "notification_priority":"PRIORITY_HIGH","event_time":"2026-01-09T01:00:00Z","color":"#4CAF50","visibility":"PUBLIC",
           "vibrate_timings":["1s","0.5s"],"light_settings":{"color":{"red":1,"alpha":0.5},"light_on_duration":"1s"}}},
         "apns":{"headers":{"apns-priority":"10","apns-push-type":"alert"},"payload":{"aps":{"alert":{"title":"T"}},"data":{"n":1}}},
         "webpush":{"headers":{"TTL":"600"},"fcm_options":{"link":"https://example.com"},"notification":{"vibrate":[1]}},
         "fcm_options":{"analytics_label":"session_started"}}
        """#.replacing(#""empty":"""#, with: #""seq":"42","empty":"""#)

    struct Case: CustomTestStringConvertible, Sendable {
        let message: String
        /// The field of the BadRequest; nil when there is none.
        let field: String?
        var errorCode: String? = "INVALID_ARGUMENT"
        var testDescription: String { String(message.prefix(80)) }
    }

    static let refusals = [
        // The JSON front end: no FcmError among the details.
        Case(message: #"{"token":"T","data":{"a":"x","n":1}}"#, field: "message.data[1].value", errorCode: nil),
        Case(message: #"{"token":"T","data":{"a":{"b":"c"}}}"#, field: "message.data[0].value", errorCode: nil),
        Case(message: #"{"token":"T","data":{"a":null}}"#, field: "message.data[0].value", errorCode: nil),
        Case(message: #"{"token":"T","colour":"red"}"#, field: "message", errorCode: nil),
        Case(message: #"{"tokens":["T"]}"#, field: "message", errorCode: nil),
        Case(message: #"{"token":"T","notification":{"subtitle":"x"}}"#, field: "message.notification", errorCode: nil),
        Case(message: #"{"token":"T","notification":{"title":5}}"#, field: "message.notification.title", errorCode: nil),
        Case(message: #"{"token":"T","android":{"priority":"URGENT"}}"#, field: "message.android.priority", errorCode: nil),
        Case(message: #"{"token":"T","android":{"ttl":600}}"#, field: "message.android.ttl", errorCode: nil),
        Case(message: #"{"token":"T","android":{"ttl":"10m"}}"#, field: "message.android.ttl", errorCode: nil),
        Case(
            message: #"{"token":"T","android":{"notification":{"event_time":"tomorrow"}}}"#,
            field: "message.android.notification.event_time", errorCode: nil),
        Case(
            message: #"{"token":"T","android":{"notification":{"sticky":"yes"}}}"#, field: "message.android.notification.sticky",
            errorCode: nil),
        Case(
            message: #"{"token":"T","android":{"notification":{"body_loc_args":[1]}}}"#,
            field: "message.android.notification.body_loc_args[0]", errorCode: nil),
        Case(message: #"{"token":"T","apns":{"headers":{"apns-priority":10}}}"#, field: "message.apns.headers[0].value", errorCode: nil),
        Case(message: #"{"token":"T","apns":{"payload":"x"}}"#, field: "message.apns.payload", errorCode: nil),
        Case(message: #"{"token":"T","topic":"news"}"#, field: "message", errorCode: nil),
        Case(message: #"[]"#, field: "message", errorCode: nil),
        // FCM itself.
        Case(message: #"{"data":{"a":"b"}}"#, field: "message.token"),
        Case(message: #"{"token":""}"#, field: "message.token"),
        Case(message: #"{"token":"\#(Fixture.token)"}"#, field: "message.token"),
        Case(message: #"{"topic":"/topics/news"}"#, field: "message.topic"),
        Case(message: #"{"condition":"news"}"#, field: "message.condition"),
        Case(message: #"{"condition":"'a' in topics && ('b' in topics"}"#, field: "message.condition"),
        Case(message: #"{"token":"T","data":{"from":"x"}}"#, field: "message.data"),
        Case(message: #"{"token":"T","data":{"google.x":"x"}}"#, field: "message.data"),
        Case(message: #"{"token":"T","android":{"data":{"gcm.x":"x"}}}"#, field: "message.android.data"),
        Case(message: #"{"token":"T","android":{},"android_v2":{}}"#, field: "message.android_v2"),
        Case(message: #"{"token":"T","android":{"ttl":"2419201s"}}"#, field: "message.android.ttl"),
        Case(message: #"{"token":"T","android":{"ttl":"-1s"}}"#, field: "message.android.ttl"),
        Case(message: #"{"token":"T","android":{"notification":{"color":"red"}}}"#, field: "message.android.notification.color"),
        Case(
            message: #"{"token":"T","apns":{"headers":{"apns-priority":"10"},"payload":{"aps":{"content-available":1}}}}"#,
            field: "message.apns.headers"),
        Case(message: #"{"token":"T","webpush":{"fcm_options":{"link":"http://x"}}}"#, field: "message.webpush.fcm_options.link"),
        Case(message: #"{"token":"T","fcm_options":{"analytics_label":"a b"}}"#, field: "message.fcm_options.analytics_label"),
        Case(message: #"{"token":"T","data":{"k":"\#(String(repeating: "ä", count: 2048))"}}"#, field: "message"),
        Case(message: #"{"topic":"news","data":{"k":"\#(String(repeating: "a", count: 2048))"}}"#, field: "message"),
    ]

    @Test("each mistake in a message is refused with the field that is wrong", arguments: refusals)
    func refused(_ example: Case) throws {
        let request = try JSONValue(parsing: #"{"message":"# + example.message + "}")
        let error = try #require(throws: FCMError.self) { try FCMMessageCheck.check(request) }
        let body = try JSONValue(parsing: error.response.body)["error"]
        #expect(body?["code"] == 400 && body?["status"] == "INVALID_ARGUMENT")
        let details = body?["details"]?.arrayValue ?? []
        let fcm = details.first { $0["@type"] == "type.googleapis.com/google.firebase.fcm.v1.FcmError" }
        let badRequest = details.first { $0["@type"] == "type.googleapis.com/google.rpc.BadRequest" }
        #expect(fcm?["errorCode"]?.stringValue == example.errorCode)
        #expect(badRequest?["fieldViolations"]?.arrayValue?.first?["field"]?.stringValue == example.field)
    }

    @Test(
        "what stands at a bound is accepted",
        arguments: [
            #"{"token":"T","data":{"k":"\#(String(repeating: "a", count: 4095))"}}"#,
            #"{"topic":"a-b_c.d~e%","data":{"k":"\#(String(repeating: "a", count: 2047))"}}"#, #"{"fid":"F"}"#,
            #"{"condition":"'a' in topics && ('b' in topics || !('c' in topics))"}"#,
            #"{"token":"T","android":{"ttl":"0s"}}"#, #"{"token":"T","android":{"ttl":"2419200s"}}"#,
            #"{"token":"T","topic":null,"data":null}"#,
            #"{"token":"T","apns":{"headers":{"apns-priority":"5"},"payload":{"aps":{"content-available":1}}}}"#,
        ])
    func bounds(_ message: String) throws {
        _ = try FCMMessageCheck.check(JSONValue(parsing: #"{"message":"# + message + "}"))
    }

    @Test("without a living access token the answer is UNAUTHENTICATED, with no FcmError")
    func unauthenticated() throws {
        let fixture = try Fixture()
        let client = try fixture.fcmClient()
        let body = Array(#"{"message":{"token":"T"}}"#.utf8)
        let token = try fixture.accessToken(client)
        let good = [("authorization", "Bearer \(token)")]
        #expect(try client.send("POST", Fixture.sendPath, good, body: body).status == 200)
        fixture.gateways.revokeAccessTokens()
        for headers in [good, [], [("authorization", "Bearer x")]] {
            let answer = try client.send("POST", Fixture.sendPath, headers, body: body)
            #expect(answer.status == 401)
            #expect(try answer.json["error"]?["status"] == "UNAUTHENTICATED")
            #expect(try answer.json["error"]?["details"] == nil)
        }
    }

    @Test("another project is not found, a validation has a fake name, a body that is no JSON is INVALID_ARGUMENT")
    func others() throws {
        let fixture = try Fixture()
        let client = try fixture.fcmClient()
        let headers = [("authorization", "Bearer \(try fixture.accessToken(client))")]
        let body = Array(#"{"validate_only":true,"message":{"token":"T"}}"#.utf8)
        let other = try client.send("POST", "/v1/projects/other/messages:send", headers, body: body)
        #expect(other.status == 404)
        #expect(try other.json["error"]?["status"] == "NOT_FOUND")
        let validated = try client.send("POST", Fixture.sendPath, headers, body: body)
        #expect(try validated.json == ["name": "projects/tandem-simulated/messages/fake_message_id"])
        let broken = try client.send("POST", Fixture.sendPath, headers, body: Array("{".utf8))
        #expect(broken.status == 400)
        #expect(try broken.json["error"]?["status"] == "INVALID_ARGUMENT")
    }

    @Test(
        "a token's beginning scripts its error",
        arguments: [
            ("unregistered-1", 404, "NOT_FOUND", "UNREGISTERED"), ("mismatch-1", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
            ("thirdparty-1", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
            ("quota-1", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), ("unavailable-1", 503, "UNAVAILABLE", "UNAVAILABLE"),
            ("internal-1", 500, "INTERNAL", "INTERNAL"), ("invalid-1", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            ("notfound-1", 404, "NOT_FOUND", nil), ("permission-1", 403, "PERMISSION_DENIED", nil),
            ("unauthenticated-1", 401, "UNAUTHENTICATED", nil),
        ] as [(String, Int, String, String?)])
    func conventions(_ token: String, _ httpStatus: Int, _ status: String, _ errorCode: String?) throws {
        let fixture = try Fixture()
        let answer = try fixture.sendFCM(["token": .string(token)], on: fixture.fcmClient())
        #expect(answer.status == httpStatus)
        #expect(answer.headers["retry-after"] == (token.hasPrefix("quota-") ? "60" : nil))
        let error = try answer.json["error"]
        #expect(error?["code"]?.intValue == Int64(httpStatus) && error?["status"]?.stringValue == status)
        #expect(error?["details"]?.arrayValue?.first?["errorCode"]?.stringValue == errorCode)
        #expect(fixture.gateways.requests(provider: .fcm).map(\.reason) == [errorCode ?? status])
    }

    @Test("a scripted fault beats the convention, and its details can be left out")
    func scripted() throws {
        let fixture = try Fixture()
        let client = try fixture.fcmClient()
        try fixture.gateways.setFault(
            GatewayFault(status: 503, retryAfter: "Fri, 09 Jan 2026 01:00:00 GMT", times: 1, withoutDetails: true),
            token: "unregistered-1")
        let first = try fixture.sendFCM(["token": "unregistered-1"], on: client)
        #expect(first.status == 503 && first.headers["retry-after"] == "Fri, 09 Jan 2026 01:00:00 GMT")
        #expect(try first.json["error"]?["details"] == nil)
        #expect(try fixture.sendFCM(["token": "unregistered-1"], on: client).status == 404)
        let page = try fixture.sendFCM(["token": "html-1"], on: client)
        #expect(page.status == 502 && page.text.hasPrefix("<html>"))
        #expect(try fixture.sendFCM(["token": "reset-1"], on: client).endCode == 2)
    }
}
