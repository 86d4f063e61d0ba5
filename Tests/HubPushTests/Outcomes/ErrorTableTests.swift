import GatewaySimulators
import HubCore
import HubDelivery
import HubTesting
import Testing

@testable import HubPush

/// A push's end as the outbox sees it.
enum PushEnd: Equatable {
    case accepted
    case retry(RetryCause)
    /// Dead for certain; not certain: held until other answers speak.
    case dead(isCertain: Bool)
    case rejected

    init?(_ outcome: PushOutcome) {
        switch outcome {
        case .accepted: self = .accepted
        case .retry(_, let reason):
            guard let cause = RetryCause(reason: reason) else { return nil }
            self = .retry(cause)
        case .dead(_, _, let isCertain): self = .dead(isCertain: isCertain)
        case .rejected: self = .rejected
        case .skippedUnconfigured: return nil
        }
    }
}

/// A row of a table: what the gateway answers, and all that has to follow.
struct ErrorRow: CustomTestStringConvertible, Sendable {
    var fault: GatewayFault
    var end: PushEnd
    /// Requests that one push makes: 2 where it is sent again.
    var requests = 1
    /// Connections they used.
    var connections = 1
    var isStopped = false
    var alarm: PushAlarm?
    /// `Retry-After` that the outcome passes on.
    var after: Duration?

    var testDescription: String { "\(fault.action) \(fault.status ?? 0) \(fault.reason ?? "") \(fault.message ?? "")" }
}

@Suite("APNs' error table", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct APNsErrorTableTests {
    static let rows: [ErrorRow] =
        [
            ErrorRow(fault: .init(), end: .accepted),
            ErrorRow(fault: .init(reason: "BadDeviceToken"), end: .dead(isCertain: false)),
            ErrorRow(fault: .init(reason: "DeviceTokenNotForTopic"), end: .dead(isCertain: false)),
            ErrorRow(fault: .init(reason: "IdleTimeout"), end: .retry(.transport), requests: 2, connections: 2),
            ErrorRow(fault: .init(reason: "IdleTimeout", times: 1), end: .accepted, requests: 2, connections: 2),
            ErrorRow(fault: .init(reason: "BadCertificate"), end: .rejected, isStopped: true, alarm: .apnsForbidden),
            ErrorRow(fault: .init(reason: "BadCertificateEnvironment"), end: .rejected, isStopped: true, alarm: .apnsForbidden),
            ErrorRow(fault: .init(reason: "Forbidden"), end: .rejected, isStopped: true, alarm: .apnsForbidden),
            // The floor between two signings forbids another token now, so the lane waits.
            ErrorRow(
                fault: .init(reason: "ExpiredProviderToken"), end: .retry(.lane), isStopped: true, alarm: .apnsProviderTokenExpired,
                after: .seconds(1200)),
            ErrorRow(
                fault: .init(reason: "UnrelatedKeyIdInToken"), end: .retry(.lane), requests: 2, connections: 2, alarm: .apnsBadKey),
            ErrorRow(fault: .init(reason: "UnrelatedKeyIdInToken", times: 1), end: .accepted, requests: 2, connections: 2),
            ErrorRow(
                fault: .init(reason: "BadEnvironmentKeyIdInToken"), end: .retry(.lane), isStopped: true,
                alarm: .apnsWrongEnvironmentKey),
            ErrorRow(fault: .init(reason: "Unregistered", timestamp: 5), end: .dead(isCertain: true)),
            ErrorRow(fault: .init(reason: "ExpiredToken"), end: .dead(isCertain: true)),
            ErrorRow(fault: .init(reason: "PayloadTooLarge"), end: .rejected),
            ErrorRow(fault: .init(reason: "TooManyProviderTokenUpdates"), end: .retry(.lane), alarm: .apnsTokenUpdates),
            ErrorRow(fault: .init(reason: "TooManyRequests"), end: .retry(.deviceThrottled)),
            ErrorRow(fault: .init(reason: "TooManyRequests", retryAfter: "7"), end: .retry(.deviceThrottled), after: .seconds(7)),
            ErrorRow(fault: .init(reason: "InternalServerError"), end: .retry(.apnsUnavailable)),
            ErrorRow(fault: .init(reason: "ServiceUnavailable", retryAfter: "30"), end: .retry(.apnsUnavailable), after: .seconds(30)),
            ErrorRow(fault: .init(reason: "Shutdown"), end: .retry(.apnsUnavailable)),
            ErrorRow(fault: .init(status: 418, reason: "SomethingNew"), end: .rejected),
            ErrorRow(fault: .init(status: 403, reason: "SomethingNew"), end: .rejected),
            ErrorRow(fault: .init(status: 599, reason: "SomethingNew"), end: .retry(.apnsUnavailable)),
            ErrorRow(fault: .init(action: .html), end: .retry(.apnsUnavailable)),
            ErrorRow(fault: .init(action: .reset), end: .retry(.transport)),
        ]
        + ["BadTopic", "MissingTopic", "TopicDisallowed"].map {
            ErrorRow(fault: .init(reason: $0), end: .retry(.lane), isStopped: true, alarm: .apnsBadTopic)
        }
        + ["InvalidProviderToken", "MissingProviderToken"].map {
            ErrorRow(fault: .init(reason: $0), end: .retry(.lane), isStopped: true, alarm: .apnsBadKey)
        }
        + [
            "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "InvalidPushType", "DuplicateHeaders", "PayloadEmpty",
            "MissingDeviceToken", "BadPath", "MethodNotAllowed",
        ].map { ErrorRow(fault: .init(reason: $0), end: .rejected) }

    @Test("each row: outcome, resends, connections, whether the lane goes on, and the alarm", arguments: rows)
    func row(_ row: ErrorRow) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let target = apnsTarget(isProven: true)
        // The connection is opened and primed before.
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(2)).name == "accepted")
        simulation.gateways.clearRequests()
        try simulation.gateways.setFault(row.fault, token: target.token)
        let outcome = await simulation.apns.outcome(simulation.message(), target)
        #expect(PushEnd(outcome) == row.end, "\(outcome)")
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.count == row.requests)
        #expect(Set(requests.map(\.connection)).count == row.connections)
        #expect(Set(requests.map { $0.header("apns-id") }).count == 1)
        #expect((simulation.apns.stoppedReason(.sandbox) != nil) == row.isStopped)
        #expect(simulation.apns.stoppedReason(.production) == nil)
        #expect(simulation.alarms == (row.alarm.map { [$0] } ?? []))
        if case .retry(let after, _) = outcome { #expect(after == row.after) }
        if case .dead(_, let since, _) = outcome, let timestamp = row.fault.timestamp { #expect(since == timestamp) }
        #expect(outcome.reason?.contains(target.token) != true)
        #expect(simulation.dead.isEmpty)
        // Unless the lane waits for somebody, the next push goes out as if nothing had been.
        let next = await simulation.apns.outcome(simulation.message(), apnsTarget(2))
        #expect(next.name == (row.isStopped ? "retry" : "accepted"))
    }

    @Test("a lane that waited for its topic lets one push through after a minute, and goes on when it is accepted")
    func reopens() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "BadTopic", times: 1), token: "*", provider: .apns)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget())) == .retry(.lane))
        guard case .retry(let after, _) = await simulation.apns.outcome(simulation.message(), apnsTarget()) else {
            Issue.record("sent")
            return
        }
        #expect(after == .seconds(60))
        simulation.clock.advance(seconds: 60)
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "accepted")
        #expect(simulation.apns.stoppedReason(.sandbox) == nil)
    }

    @Test("an event with less than a quarter of an hour left has one more try over another connection after a 5xx")
    func serverFault() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "accepted")
        try simulation.gateways.setFault(.init(reason: "InternalServerError", times: 1), token: apnsTarget().token)
        let outcome = await simulation.apns.outcome(simulation.message(), apnsTarget())
        let now = simulation.clock.wallMilliseconds
        let next = RetryPolicy.next(attempt: 1, outcome: outcome, now: now, firstAttemptAt: now, expiresAt: now + 300_000, random: 0.5)
        #expect(next == .at(now + 2_000))
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "accepted")
        let connections = simulation.gateways.requests(provider: .apns).map(\.connection)
        #expect(connections.first == connections[1] && connections[1] != connections[2])
    }
}

@Suite("FCM's error table", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct FCMErrorTableTests {
    static let date = "Fri, 09 Jan 2015 01:00:45 GMT"
    static let rows: [ErrorRow] = [
        ErrorRow(fault: .init(), end: .accepted),
        ErrorRow(fault: .init(reason: "UNSPECIFIED_ERROR"), end: .rejected),
        ErrorRow(fault: .init(reason: "INVALID_ARGUMENT", message: "Invalid value at 'message.android.ttl'"), end: .rejected),
        // Only google.rpc.BadRequest: nothing about the token.
        ErrorRow(
            fault: .init(status: 400, reason: "INVALID_ARGUMENT", message: "Invalid value", withoutDetails: true), end: .rejected),
        ErrorRow(fault: .init(reason: "UNREGISTERED"), end: .dead(isCertain: false)),
        ErrorRow(fault: .init(reason: "UNREGISTERED", withoutDetails: true), end: .retry(.lane), isStopped: true, alarm: .fcmNotFound),
        ErrorRow(fault: .init(reason: "NOT_FOUND"), end: .retry(.lane), isStopped: true, alarm: .fcmNotFound),
        ErrorRow(fault: .init(reason: "SENDER_ID_MISMATCH"), end: .rejected),
        ErrorRow(fault: .init(reason: "PERMISSION_DENIED"), end: .retry(.lane), isStopped: true, alarm: .fcmPermissionDenied),
        ErrorRow(fault: .init(reason: "THIRD_PARTY_AUTH_ERROR"), end: .rejected, alarm: .fcmThirdPartyAuth),
        ErrorRow(fault: .init(reason: "UNAUTHENTICATED"), end: .retry(.lane), requests: 2, isStopped: true, alarm: .fcmUnauthenticated),
        ErrorRow(fault: .init(reason: "UNAUTHENTICATED", times: 1), end: .accepted, requests: 2),
        ErrorRow(fault: .init(reason: "QUOTA_EXCEEDED"), end: .retry(.throttled), after: .seconds(60)),
        ErrorRow(fault: .init(reason: "QUOTA_EXCEEDED", retryAfter: "90"), end: .retry(.throttled), after: .seconds(90)),
        ErrorRow(fault: .init(reason: "QUOTA_EXCEEDED", retryAfter: date), end: .retry(.throttled), after: .zero),
        ErrorRow(fault: .init(reason: "QUOTA_EXCEEDED", message: "Device message rate exceeded"), end: .retry(.deviceThrottled)),
        ErrorRow(
            fault: .init(reason: "QUOTA_EXCEEDED", message: "Topic message rate exceeded"), end: .retry(.throttled), after: .seconds(60)),
        ErrorRow(fault: .init(reason: "RESOURCE_EXHAUSTED"), end: .retry(.throttled), after: .seconds(60)),
        ErrorRow(fault: .init(reason: "UNAVAILABLE"), end: .retry(.unavailable)),
        ErrorRow(fault: .init(reason: "UNAVAILABLE", retryAfter: "12"), end: .retry(.unavailable), after: .seconds(12)),
        ErrorRow(fault: .init(status: 503, reason: "UNAVAILABLE", withoutDetails: true), end: .retry(.unavailable)),
        ErrorRow(fault: .init(reason: "INTERNAL"), end: .retry(.unavailable)),
        ErrorRow(fault: .init(action: .html), end: .retry(.unavailable)),
        ErrorRow(fault: .init(action: .html, status: 404), end: .retry(.lane), isStopped: true, alarm: .fcmNotFound),
        ErrorRow(fault: .init(action: .reset), end: .retry(.transport)),
        ErrorRow(fault: .init(status: 418, reason: "SOMETHING_NEW"), end: .rejected),
    ]

    @Test("each row of FCM's error table, with and without details", arguments: rows)
    func row(_ row: ErrorRow) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("other")).name == "accepted")
        simulation.gateways.clearRequests()
        try simulation.gateways.setFault(row.fault, token: "device")
        let outcome = await simulation.fcm.outcome(simulation.message(), fcmTarget("device"))
        #expect(PushEnd(outcome) == row.end, "\(outcome)")
        #expect(simulation.gateways.requests(provider: .fcm).count == row.requests)
        #expect((simulation.fcm.stoppedReason != nil) == row.isStopped)
        #expect(simulation.alarms == (row.alarm.map { [$0] } ?? []))
        if case .retry(let after, _) = outcome { #expect(after == row.after) }
        #expect(simulation.dead.isEmpty)
        let next = await simulation.fcm.outcome(simulation.message(), fcmTarget("other"))
        #expect(next.name == (row.isStopped ? "retry" : "accepted"))
    }

    @Test("INVALID_ARGUMENT about the token counts only for an event that somebody else's token was accepted for")
    func invalidArgument() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "INVALID_ARGUMENT"), token: "bad")
        #expect(PushEnd(await simulation.fcm.outcome(simulation.message(event: "e1"), fcmTarget("bad"))) == .rejected)
        #expect(await simulation.fcm.outcome(simulation.message(event: "e1"), fcmTarget("good")).name == "accepted")
        #expect(PushEnd(await simulation.fcm.outcome(simulation.message(event: "e2"), fcmTarget("bad"))) == .rejected)
        #expect(PushEnd(await simulation.fcm.outcome(simulation.message(event: "e1"), fcmTarget("bad"))) == .dead(isCertain: false))
        simulation.clock.advance(seconds: 5)
        simulation.fcm.sweep()
        #expect(simulation.dead == ["bad"])
    }

    @Test("tokens of another project are kept, not asked about again, and more than a few raise an alarm")
    func senderMismatch() async throws {
        let simulation = try Simulation(behind: 3500)
        defer { simulation.stop() }
        for number in 0..<6 {
            try simulation.gateways.setFault(.init(reason: "SENDER_ID_MISMATCH"), token: "t\(number)")
            #expect(simulation.alarms.isEmpty)
            for _ in 0..<2 { #expect(PushEnd(await simulation.fcm.outcome(simulation.message(), fcmTarget("t\(number)"))) == .rejected) }
        }
        #expect(simulation.alarms == [.fcmSenderMismatch])
        #expect(simulation.gateways.requests(provider: .fcm).count == 6)
        #expect(simulation.dead.isEmpty)
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("good")).name == "accepted")
        simulation.clock.advance(seconds: 3600)
        simulation.gateways.removeAllFaults()
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("t0")).name == "accepted")
    }

    @Test("a topic is never called dead")
    func topics() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var target = fcmTarget("news")
        target.form = .topic
        try simulation.gateways.setFault(.init(reason: "UNREGISTERED"), token: "*")
        let outcome = await simulation.fcm.outcome(simulation.message(), target)
        #expect(PushEnd(outcome) == .rejected, "\(outcome)")
    }
}
