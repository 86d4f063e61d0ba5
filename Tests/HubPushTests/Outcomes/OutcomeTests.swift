import HubDelivery
import HubHTTPClient
import Testing

@testable import HubPush

private func answer(_ status: Int, _ body: String, _ headers: [String: String] = [:], version: HTTPAnswer.Version = .http2) -> HTTPAnswer {
    HTTPAnswer(status: status, version: version, headers: headers, body: Array(body.utf8))
}

@Suite("APNsOutcome")
struct APNsOutcomeTests {
    enum Kind: Equatable {
        case accepted
        case retry(RetryCause)
        case dead, rejected
    }

    private func kind(_ outcome: PushOutcome) -> Kind? {
        switch outcome {
        case .accepted: .accepted
        case .retry(_, let reason): RetryCause(reason: reason).map { .retry($0) }
        case .dead: .dead
        case .rejected: .rejected
        case .skippedUnconfigured: nil
        }
    }

    @Test(
        "each row of the table",
        arguments: [
            (200, "", .accepted, .none), (400, "BadCollapseId", .rejected, .none), (400, "BadDeviceToken", .dead, .tryOtherEnvironment),
            (400, "BadExpirationDate", .rejected, .none), (400, "BadMessageId", .rejected, .none), (400, "BadPriority", .rejected, .none),
            (400, "InvalidPushType", .rejected, .none), (400, "DuplicateHeaders", .rejected, .none),
            (400, "PayloadEmpty", .rejected, .none),
            (400, "BadTopic", .retry(.lane), .stopTopic), (400, "MissingTopic", .retry(.lane), .stopTopic),
            (400, "TopicDisallowed", .retry(.lane), .stopTopic),
            (400, "DeviceTokenNotForTopic", .dead, .judgeToken), (400, "MissingDeviceToken", .rejected, .none),
            (400, "IdleTimeout", .retry(.transport), .resendOnNewConnection), (403, "BadCertificate", .rejected, .stopLane),
            (403, "BadCertificateEnvironment", .rejected, .stopLane), (403, "ExpiredProviderToken", .retry(.lane), .replaceProviderToken),
            (403, "InvalidProviderToken", .retry(.lane), .stopLane), (403, "MissingProviderToken", .retry(.lane), .stopLane),
            (403, "Forbidden", .rejected, .stopLane), (403, "UnrelatedKeyIdInToken", .retry(.lane), .resendOnNewConnection),
            (403, "BadEnvironmentKeyIdInToken", .retry(.lane), .stopLane), (404, "BadPath", .rejected, .none),
            (405, "MethodNotAllowed", .rejected, .none), (410, "Unregistered", .dead, .none), (410, "ExpiredToken", .dead, .none),
            (413, "PayloadTooLarge", .rejected, .none), (429, "TooManyProviderTokenUpdates", .retry(.lane), .keepOlderProviderToken),
            (429, "TooManyRequests", .retry(.deviceThrottled), .none),
            (500, "InternalServerError", .retry(.apnsUnavailable), .newConnection),
            (503, "ServiceUnavailable", .retry(.apnsUnavailable), .newConnection),
            (503, "Shutdown", .retry(.apnsUnavailable), .newConnection),
            (418, "SomethingNew", .rejected, .none), (403, "SomethingNew", .rejected, .none),
            (599, "SomethingNew", .retry(.apnsUnavailable), .newConnection),
            (410, "", .dead, .none), (502, "", .retry(.apnsUnavailable), .newConnection),
        ] as [(Int, String, Kind, GatewayVerdict.Action)])
    func rows(status: Int, reason: String, expected: Kind, action: GatewayVerdict.Action) {
        let verdict = APNsOutcome.verdict(answer(status, "{\"reason\":\"\(reason)\"}"), requestID: "id", now: now)
        #expect(kind(verdict.outcome) == expected)
        #expect(verdict.action == action)
    }

    @Test("410 carries the moment the token died, in milliseconds")
    func timestamp() {
        let verdict = APNsOutcome.verdict(
            answer(410, "{\"reason\":\"Unregistered\",\"timestamp\":1767920000123}"), requestID: "id", now: now)
        #expect(verdict.outcome == .dead(reason: "Unregistered", since: 1_767_920_000_123))
        #expect(
            APNsOutcome.verdict(answer(410, "{\"reason\":\"Unregistered\"}"), requestID: "id", now: now).outcome
                == .dead(reason: "Unregistered", since: nil))
    }

    @Test("an accepted push has APNs' id, or ours")
    func accepted() {
        #expect(
            APNsOutcome.verdict(answer(200, "", ["apns-id": "theirs"]), requestID: "ours", now: now).outcome
                == .accepted(providerID: "theirs"))
        #expect(APNsOutcome.verdict(answer(200, ""), requestID: "ours", now: now).outcome == .accepted(providerID: "ours"))
    }

    @Test("an answer over HTTP/1 is not APNs'", arguments: [200, 410, 400])
    func http1(status: Int) {
        let verdict = APNsOutcome.verdict(answer(status, "{\"reason\":\"BadDeviceToken\"}", version: .http1), requestID: "id", now: now)
        #expect(kind(verdict.outcome) == .retry(.transport))
        #expect(verdict.alarm == .apnsWithoutHTTP2)
    }

    @Test("Retry-After is passed on in both forms, HTML does not confuse, and unknown reasons are cleaned")
    func details() {
        let seconds = APNsOutcome.verdict(answer(503, "<html>", ["retry-after": "30"]), requestID: "id", now: now).outcome
        #expect(seconds == .retry(after: .seconds(30), reason: "apns unavailable: http 503"))
        let date = APNsOutcome.verdict(answer(429, "", ["retry-after": "Fri, 09 Jan 2026 01:00:45 GMT"]), requestID: "id", now: now).outcome
        #expect(date == .retry(after: .seconds(45), reason: "device throttled: http 429"))
        let odd = APNsOutcome.verdict(answer(400, "{\"reason\":\"a b\\nc <x>\"}"), requestID: "id", now: now).outcome
        #expect(odd == .rejected(reason: "a?b?c??x?"))
    }
}

@Suite("FCMOutcome")
struct FCMOutcomeTests {
    private static func body(_ status: Int, rpc: String?, code: String?, message: String = "m", extra: String = "") -> String {
        let details =
            code.map {
                ",\"details\":[\(extra){\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"\($0)\"}]"
            } ?? ""
        let rpcPart = rpc.map { ",\"status\":\"\($0)\"" } ?? ""
        return "{\"error\":{\"code\":\(status),\"message\":\"\(message)\"\(rpcPart)\(details)}}"
    }

    @Test(
        "each row of the table",
        arguments: [
            (
                400,
                body(
                    400, rpc: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
                    message: "The registration token is not a valid FCM registration token"),
                .dead(reason: "INVALID_ARGUMENT: not a valid registration token", since: nil, isCertain: false), .judgeTokenOfKnownShape
            ),
            (
                400, body(400, rpc: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT", message: "Invalid value SECRET"),
                .rejected(reason: "INVALID_ARGUMENT"), .none
            ),
            (
                400,
                "{\"error\":{\"code\":400,\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"message.data[0].value\",\"description\":\"SECRET\"}]}]}}",
                .rejected(reason: "INVALID_ARGUMENT (message.data[0].value)"), .none
            ),
            (
                404, body(404, rpc: "NOT_FOUND", code: "UNREGISTERED"), .dead(reason: "UNREGISTERED", since: nil, isCertain: false),
                .judgeToken
            ),
            (
                404, body(404, rpc: "NOT_FOUND", code: nil),
                .retry(after: nil, reason: "lane: NOT_FOUND: check the service account's project"), .stopLane
            ),
            (404, "<html>", .retry(after: nil, reason: "lane: http 404: check the service account's project"), .stopLane),
            (
                403, body(403, rpc: "PERMISSION_DENIED", code: "SENDER_ID_MISMATCH"),
                .rejected(reason: "SENDER_ID_MISMATCH: the token belongs to another Firebase project"), .markForeign
            ),
            (
                403, body(403, rpc: "PERMISSION_DENIED", code: nil),
                .retry(
                    after: nil,
                    reason: "lane: PERMISSION_DENIED: enable the Firebase Cloud Messaging API and give the account the role to send"),
                .stopLane
            ),
            (
                401,
                body(
                    401, rpc: "UNAUTHENTICATED", code: "THIRD_PARTY_AUTH_ERROR",
                    extra:
                        "{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.ApnsError\",\"statusCode\":403,\"reason\":\"InvalidProviderToken\"},"
                ),
                .rejected(
                    reason: "THIRD_PARTY_AUTH_ERROR (APNs: InvalidProviderToken): check the APNs key uploaded to the Firebase project"),
                .none
            ),
            (
                401, body(401, rpc: "UNAUTHENTICATED", code: nil),
                .retry(after: nil, reason: "lane: UNAUTHENTICATED: the access token was refused"), .replaceAccessToken
            ),
            (401, "", .retry(after: nil, reason: "lane: UNAUTHENTICATED: the access token was refused"), .replaceAccessToken),
            (
                429, body(429, rpc: "RESOURCE_EXHAUSTED", code: "QUOTA_EXCEEDED"),
                .retry(after: .seconds(60), reason: "throttled: QUOTA_EXCEEDED"), .none
            ),
            (429, "", .retry(after: .seconds(60), reason: "throttled: http 429"), .none),
            (503, body(503, rpc: "UNAVAILABLE", code: "UNAVAILABLE"), .retry(after: nil, reason: "unavailable: UNAVAILABLE"), .none),
            (500, body(500, rpc: "INTERNAL", code: "INTERNAL"), .retry(after: nil, reason: "unavailable: INTERNAL"), .none),
            (502, "<html>Bad Gateway</html>", .retry(after: nil, reason: "unavailable: http 502"), .none),
            (500, body(500, rpc: nil, code: "UNSPECIFIED_ERROR"), .rejected(reason: "UNSPECIFIED_ERROR"), .none),
            (400, body(400, rpc: nil, code: "UNSPECIFIED_ERROR"), .rejected(reason: "UNSPECIFIED_ERROR"), .none),
            (418, "", .rejected(reason: "http 418"), .none),
            (200, "{\"name\":\"projects/p/messages/1\"}", .accepted(providerID: "projects/p/messages/1"), .none),
            (200, " {\n \"name\" : \"projects/p/messages/0:1%a\"\n}\n", .accepted(providerID: "projects/p/messages/0:1%a"), .none),
            (200, "{\"other\":[1],\"name\":\"a\\u0062\"}", .accepted(providerID: "ab"), .none),
            (200, "{\"name\":\"a\\u0062\"}", .accepted(providerID: "ab"), .none),
            (200, "{\"name\":\"a\"", .retry(after: nil, reason: "transport: 200 without a message name"), .none),
            (200, "{\"name\":\"a\"} x", .retry(after: nil, reason: "transport: 200 without a message name"), .none),
            (200, "{\"name\":7}", .retry(after: nil, reason: "transport: 200 without a message name"), .none),
            (200, "", .retry(after: nil, reason: "transport: 200 without a message name"), .none),
            (200, "{\"name\":\"\"}", .retry(after: nil, reason: "transport: 200 without a message name"), .none),
        ] as [(Int, String, PushOutcome, GatewayVerdict.Action)])
    func rows(status: Int, body: String, expected: PushOutcome, action: GatewayVerdict.Action) {
        let verdict = FCMOutcome.verdict(answer(status, body), now: now)
        #expect(verdict.outcome == expected)
        #expect(verdict.action == action)
    }

    @Test("Retry-After beats the default wait")
    func retryAfter() {
        let verdict = FCMOutcome.verdict(answer(429, "", ["retry-after": "5"]), now: now)
        #expect(verdict.outcome == .retry(after: .seconds(5), reason: "throttled: http 429"))
    }
}

@Suite("GatewayVerdict")
struct GatewayVerdictTests {
    @Test(
        "calls without an answer",
        arguments: [
            (HTTPClientError(reason: .transport(.couldNotConnect), delivery: .notSent, detail: "d"), "transport: d (not sent)"),
            (
                HTTPClientError(reason: .transport(.operationTimedOut), delivery: .outcomeUnknown, detail: "d"),
                "transport: d (outcome unknown)"
            ),
            (HTTPClientError(reason: .queueFull, delivery: .notSent, detail: "d"), "lane: d"),
            (HTTPClientError(reason: .waitedTooLong, delivery: .notSent, detail: "d"), "lane: d"),
            (HTTPClientError(reason: .shutDown, delivery: .notSent, detail: "d"), "lane: d"),
        ])
    func errors(error: HTTPClientError, reason: String) {
        #expect(GatewayVerdict(error).outcome == .retry(after: nil, reason: reason))
    }

    @Test("an invalid call is not retried")
    func invalid() {
        let error = HTTPClientError(reason: .invalidCall, delivery: .notSent, detail: "d")
        #expect(GatewayVerdict(error).outcome == .rejected(reason: "the request cannot be sent: d"))
    }
}
