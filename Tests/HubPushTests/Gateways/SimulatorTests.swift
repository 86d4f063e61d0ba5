import Foundation
import GatewaySimulators
import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubPush

@Suite("APNs over TLS and HTTP/2", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct APNsSimulatorTests {
    @Test("alerts and silent pushes are accepted as APNs wants them", arguments: [PushKind.alert, .silent])
    func accepted(kind: PushKind) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let message = simulation.message(kind: kind)
        let id = RequestID.make(nid: message.nid, device: "device-1")
        #expect(await simulation.apns.outcome(message, apnsTarget()) == .accepted(providerID: id))
        let request = try #require(simulation.gateways.requests(provider: .apns).first)
        #expect(request.path == "/3/device/" + apnsTarget().token)
        #expect(request.header("apns-id") == id)
        #expect(request.header("apns-push-type") == (kind == .alert ? "alert" : "background"))
        #expect(request.header("apns-priority") == (kind == .alert ? "10" : "5"))
        #expect(request.header("apns-collapse-id") == "g.q17")
        #expect(request.header("accept") == nil)
        #expect(request.json?["nid"]?.stringValue == message.nid)
        #expect(simulation.apns.counters(.sandbox).answeredOverHTTP1 == 0)
    }

    @Test(
        "every kind of push passes the simulator's strict reading of the payload",
        arguments: [
            #"{"notification": {"title": "T", "body": "B", "image": "https://x/y.png"}, "data": {"p": {"a": [1]}}, "apns": {"sound": {"critical": 1, "name": "s", "volume": 0.5}, "badge": 0, "alert": {"subtitle": "S", "loc-key": "k", "loc-args": ["1"]}, "relevance-score": 0.5, "filter-criteria": "f"}}"#,
            #"{"data": {"a": 1}}"#, #"{"notification": {"title": "T"}, "data": {"a": 1}, "kind": "data"}"#,
            #"{"live_activity": {"event": "start", "content-state": {"s": 1}, "attributes-type": "Quiz", "attributes": {}}, "notification": {"title": "T"}}"#,
            #"{"live_activity": {"event": "update", "content-state": {"s": 1}, "stale-date": 5}}"#,
            #"{"live_activity": {"event": "end", "dismissal-date": 5}, "data": {"a": 1}}"#,
            #"{"notification": {"body": "B"}, "apns": {"headers": {"apns-push-type": "voip"}}}"#,
            #"{"android": {"title": "T"}, "data": {"a": 1}}"#, #"{"apns": {"badge": 3}}"#,
        ])
    func everyKind(request: String) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let json = try #require(try JSONValue(parsing: Array(request.utf8)).objectValue)
        let message = try NotificationContent(json: json).message(
            nid: UUID().uuidString.lowercased(), event: UUID().uuidString.lowercased(), group: "g",
            expiresAt: simulation.clock.wallMilliseconds + 600_000,
            committedAt: simulation.clock.wallMilliseconds)
        let outcome = await simulation.apns.outcome(message, apnsTarget())
        #expect(outcome.name == "accepted", "\(outcome)")
        let relayed = await simulation.fcm.outcome(message, fcmTarget("device", platform: .ios))
        #expect(relayed.name == "accepted", "\(simulation.gateways.requests(provider: .fcm).map(\.reason))")
    }

    @Test("a Live Activity's dead token is no dead device")
    func deadActivity() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var message = simulation.message()
        message.apns = ["event": "update", "content-state": ["s": 1]]
        message.liveActivityToken = apnsTarget(9).token
        try simulation.gateways.setFault(.init(reason: "Unregistered", timestamp: 1_700_000_000_123), token: apnsTarget(9).token)
        #expect(await simulation.apns.outcome(message, apnsTarget(1)) == .rejected(reason: "the Live Activity's token: Unregistered"))
        let request = try #require(simulation.gateways.requests(provider: .apns).first)
        #expect(request.header("apns-topic") == "com.example.app.push-type.liveactivity")
    }

    @Test("410 carries the time of death, BadDeviceToken does not")
    func dead() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "Unregistered", timestamp: 1_700_000_000_123), token: apnsTarget(1).token)
        try simulation.gateways.setFault(.init(reason: "BadDeviceToken"), token: apnsTarget(2).token)
        #expect(
            await simulation.apns.outcome(simulation.message(), apnsTarget(1)) == .dead(reason: "Unregistered", since: 1_700_000_000_123))
        let bad = await simulation.apns.outcome(simulation.message(), apnsTarget(2))
        #expect(bad.name == "dead" && bad.reason?.hasPrefix("BadDeviceToken") == true)
    }

    @Test("a burst waits for the first success and then shares one connection, each push once")
    func burst() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let accepted = await burst(simulation, count: 500)
        #expect(accepted == 500)
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.count == 500)
        #expect(Set(requests.map(\.identifier)).count == 500)
        #expect(Set(requests.map(\.connection)).count == 1)
        #expect(simulation.apns.counters(.sandbox).inFlightPeak > 1)
    }

    private func burst(_ simulation: Simulation, count: Int) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<count {
                group.addTask {
                    if case .accepted = await simulation.apns.outcome(simulation.message(), apnsTarget(number)) { true } else { false }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    @Test("SETTINGS 1, 500 and 1 again under load: nothing is lost or arrives twice, and no storm of refusals or connections")
    func changingSettings() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        async let accepted = burst(simulation, count: 700)
        for (count, limit) in [(50, 1), (150, 500), (600, 1)] {
            #expect(
                await eventually { simulation.gateways.requests(provider: .apns).count > count }, "\(simulation.apns.counters(.sandbox))")
            simulation.gateways.setAPNsStreamsMax(limit)
        }
        #expect(await accepted == 700)
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.count == 700 && Set(requests.map(\.identifier)).count == 700)
        #expect(Set(requests.map(\.connection)).count <= 2)
        let counters = simulation.apns.counters(.sandbox)
        #expect(counters.failed == 0 && counters.answeredOverHTTP1 == 0, "\(counters)")
        // Requests under way when the limit fell are refused unread, and sent again once.
        #expect(counters.repeatedByLibcurl <= APNsLane.inFlightMax, "\(counters)")
    }

    @Test("thousands of answers over one connection do not end it")
    func manyAnswers() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await burst(simulation, count: 2500) == 2500)
        #expect(Set(simulation.gateways.requests(provider: .apns).map(\.connection)).count == 1)
    }

    @Test("a GOAWAY with a last stream in the middle of a hundred: each notification arrives exactly once")
    func goAwayUnprocessed() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        // Opens the window.
        _ = await simulation.apns.outcome(simulation.message(), apnsTarget(999))
        try simulation.gateways.setFault(.init(action: .goawayUnprocessed, times: 1), token: apnsTarget(50).token)
        let messages = (0..<100).map { _ in simulation.message() }
        var missing = Set(messages.indices)
        for _ in 0..<3 where !missing.isEmpty {
            let outcomes = await withTaskGroup(of: (Int, PushOutcome).self) { group in
                for index in missing { group.addTask { (index, await simulation.apns.outcome(messages[index], apnsTarget(index))) } }
                return await group.reduce(into: [Int: PushOutcome]()) { $0[$1.0] = $1.1 }
            }
            for (index, outcome) in outcomes {
                switch outcome {
                case .accepted: missing.remove(index)
                case .retry(_, let reason): #expect(RetryCause(reason: reason) == .transport)
                default: Issue.record("\(outcome.name)")
                }
            }
        }
        #expect(missing.isEmpty)
        let accepted = simulation.gateways.requests(provider: .apns).filter { $0.status == 200 && $0.token != apnsTarget(999).token }
        #expect(accepted.count == 100 && Set(accepted.map(\.identifier)).count == 100, "\(simulation.apns.counters(.sandbox))")
    }

    @Test("a GOAWAY in the middle: what was cut off is told as a retry, and sent again arrives under the same id")
    func goAway() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(action: .goaway, times: 1), token: apnsTarget(50).token)
        let messages = (0..<100).map { _ in simulation.message() }
        var missing = Set(messages.indices)
        // One attempt per call is the contract; the caller's next attempt has to find them all.
        for _ in 0..<2 {
            let outcomes = await withTaskGroup(of: (Int, PushOutcome).self) { group in
                for index in missing { group.addTask { (index, await simulation.apns.outcome(messages[index], apnsTarget(index))) } }
                return await group.reduce(into: [Int: PushOutcome]()) { $0[$1.0] = $1.1 }
            }
            for (index, outcome) in outcomes {
                switch outcome {
                case .accepted: missing.remove(index)
                case .retry(_, let reason): #expect(RetryCause(reason: reason) == .transport)
                default: Issue.record("\(outcome.name)")
                }
            }
        }
        #expect(missing.isEmpty)
        let accepted = simulation.gateways.requests(provider: .apns).filter { $0.status == 200 }
        #expect(Set(accepted.map(\.identifier)).count == 100)
    }

    @Test("an expired provider token waits for the floor, then is signed anew for a new connection and the push sent again")
    func expired() async throws {
        let simulation = try Simulation(behind: 1200)
        defer { simulation.stop() }
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(1)).name == "accepted")
        try simulation.gateways.setFault(.init(reason: "ExpiredProviderToken", times: 2), token: "*", provider: .apns)
        let early = await simulation.apns.outcome(simulation.message(), apnsTarget(1))
        #expect(early == .retry(after: .seconds(1200), reason: "lane: ExpiredProviderToken"))
        simulation.clock.advance(seconds: 1200)
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(1)).name == "accepted")
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.map(\.status) == [200, 403, 403, 200])
        #expect(requests.map(\.connection).last != requests.map(\.connection).first)
        #expect(Set(requests.map { $0.header("authorization") }).count == 2)
        #expect(requests[2].header("apns-id") == requests[3].header("apns-id"))
        #expect(simulation.apns.counters(.sandbox).renewals == 1)
    }

    @Test("a wrong key stops the lane instead of burning every push")
    func invalidProviderToken() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "InvalidProviderToken"), token: "*", provider: .apns)
        for _ in 0..<2 { #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "retry") }
        #expect(simulation.gateways.requests(provider: .apns).count == 1)
        #expect(simulation.apns.stoppedReason(.sandbox)?.contains("APNS_KEY_PATH") == true)
        #expect(simulation.apns.stoppedReason(.production) == nil)
    }

    @Test(
        "5xx and 429 are retried as asked",
        arguments: [
            (GatewayFault(reason: "InternalServerError"), RetryCause.apnsUnavailable, nil),
            (GatewayFault(reason: "ServiceUnavailable", retryAfter: "30"), .apnsUnavailable, .seconds(30)),
            (GatewayFault(reason: "TooManyRequests"), .deviceThrottled, nil), (GatewayFault(action: .html), .apnsUnavailable, nil),
            (GatewayFault(action: .reset), .transport, nil),
        ] as [(GatewayFault, RetryCause, Duration?)])
    func retried(fault: GatewayFault, cause: RetryCause, after: Duration?) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(fault, token: apnsTarget().token)
        guard case .retry(let asked, let reason) = await simulation.apns.outcome(simulation.message(), apnsTarget()) else {
            Issue.record("not a retry")
            return
        }
        #expect(RetryCause(reason: reason) == cause)
        #expect(asked == after)
        #expect(!reason.contains(apnsTarget().token))
    }

    @Test("a certificate nobody vouches for: not sent")
    func untrusted() async throws {
        let simulation = try Simulation(trusts: false)
        defer { simulation.stop() }
        guard case .retry(_, let reason) = await simulation.apns.outcome(simulation.message(), apnsTarget()) else {
            Issue.record("trusted")
            return
        }
        #expect(reason.contains("(not sent)"))
        #expect(simulation.gateways.requests(provider: .apns).isEmpty)
    }
}

@Suite("FCM over TLS and HTTP/2", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct FCMSimulatorTests {
    @Test(
        "pushes to every platform pass FCM's checks",
        arguments: [
            (DevicePlatform.android, PushKind.alert), (.android, .silent), (.ios, .alert), (.ios, .silent), (.web, .alert),
        ])
    func accepted(platform: DevicePlatform, kind: PushKind) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let message = simulation.message(kind: kind, data: ["game_id": 7, "parameters": ["radius_m": 3000], "empty": ""])
        guard case .accepted(let name, _) = await simulation.fcm.outcome(message, fcmTarget("device", platform: platform)) else {
            Issue.record("not accepted: \(simulation.gateways.requests(provider: .fcm).map(\.reason))")
            return
        }
        #expect(name.hasPrefix("projects/"))
        #expect(simulation.fcm.counters.answeredOverHTTP1 == 0)
        #expect(simulation.gateways.requests(provider: .fcm).first?.json?.at("message", "data", "game_id") == "7")
    }

    @Test(
        "scripted tokens end as the table says",
        arguments: [
            ("unregistered-1", "dead"), ("mismatch-1", "rejected"), ("thirdparty-1", "rejected"), ("quota-1", "retry"),
            ("unavailable-1", "retry"), ("internal-1", "retry"), ("notfound-1", "retry"), ("permission-1", "retry"),
            ("html-1", "retry"), ("reset-1", "retry"), ("invalid-1", "rejected"),
        ])
    func scripted(token: String, name: String) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let outcome = await simulation.fcm.outcome(simulation.message(), fcmTarget(token))
        #expect(outcome.name == name)
        #expect(outcome.reason?.contains(token) != true)
        if token == "quota-1" { #expect(outcome == .retry(after: .seconds(60), reason: "throttled: QUOTA_EXCEEDED")) }
    }

    @Test("a thousand pushes make one token request; revoked tokens cost one more")
    func tokens() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let accepted = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1000 {
                group.addTask { await simulation.fcm.outcome(simulation.message(), fcmTarget("device-\(number)")).name == "accepted" }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(accepted == 1000)
        #expect(simulation.gateways.requests(provider: .oauth).count == 1)
        simulation.gateways.revokeAccessTokens()
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("device")).name == "accepted")
        #expect(simulation.gateways.requests(provider: .oauth).count == 2)
    }

    @Test("invalid_grant stops the lane")
    func invalidGrant() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(status: 400, reason: "invalid_grant"), token: "oauth")
        for _ in 0..<2 { #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("device")).name == "retry") }
        #expect(simulation.gateways.requests(provider: .oauth).count == 1)
    }
}
