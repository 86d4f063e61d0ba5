import HubCore
import HubDelivery
import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubPush

private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// FCM and its token endpoint in one local server; what they answer is the test's.
private final class LocalFCM: Sendable {
    struct Behaviour: Sendable {
        var token: @Sendable (Int) -> LocalHTTPServer.Reply = {
            .answer(200, body: "{\"access_token\":\"token-\($0)\",\"expires_in\":3600}")
        }
        var send: @Sendable (LocalHTTPServer.Request) -> LocalHTTPServer.Reply = { _ in
            .answer(200, body: "{\"name\":\"projects/p/messages/1\"}")
        }
    }

    let server: LocalHTTPServer
    let gateway: FCMGateway
    let clock = ManualClock()

    init(_ behaviour: Behaviour = Behaviour()) throws {
        let tokens = Mutex(0)
        server = try LocalHTTPServer { request in
            guard request.path == "/token" else { return behaviour.send(request) }
            return behaviour.token(
                tokens.withLock {
                    $0 += 1
                    return $0
                })
        }
        let configuration = try FCMConfiguration(
            serviceAccount: ServiceAccount.file(key: rsaKey, tokenURI: server.url + "/token"), url: server.url + "/")
        gateway = try FCMGateway(configuration, time: clock, logger: quiet)
    }

    func stop() {
        gateway.shutdown(grace: .zero)
        server.stop()
    }
}

@Suite("FCMGateway", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct FCMGatewayTests {
    @Test("a push arrives at the project's address with the access token")
    func sends() async throws {
        let fcm = try LocalFCM()
        defer { fcm.stop() }
        #expect(await fcm.gateway.outcome(message(), target()) == .accepted(providerID: "projects/p/messages/1"))
        let request = try #require(fcm.server.requests.last)
        #expect(request.path == "/v1/projects/demo-project/messages:send")
        #expect(request.headers["authorization"] == "Bearer token-1")
        #expect(request.headers["content-type"] == "application/json")
        #expect(try json(request.body).at("message", "token") == "TOKEN")
    }

    @Test("a thousand pushes at once make one token request")
    func singleFlight() async throws {
        let fcm = try LocalFCM()
        defer { fcm.stop() }
        let accepted = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1000 {
                group.addTask {
                    if case .accepted = await fcm.gateway.outcome(message(), target(device: "d\(number)")) { true } else { false }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(accepted == 1000)
        #expect(fcm.gateway.tokenRequests == 1)
    }

    @Test("a refused access token is replaced once and the push sent again")
    func unauthenticated() async throws {
        let fcm = try LocalFCM(
            .init(send: { request in
                request.headers["authorization"] == "Bearer token-1"
                    ? .answer(401, body: "{\"error\":{\"code\":401,\"status\":\"UNAUTHENTICATED\"}}")
                    : .answer(200, body: "{\"name\":\"n\"}")
            }))
        defer { fcm.stop() }
        #expect(await fcm.gateway.outcome(message(), target()) == .accepted(providerID: "n"))
        #expect(fcm.gateway.tokenRequests == 2)
        #expect(fcm.gateway.stoppedReason == nil)
    }

    @Test("an account whose every token is refused stops the lane after one resend")
    func alwaysUnauthenticated() async throws {
        let fcm = try LocalFCM(.init(send: { _ in .answer(401) }))
        defer { fcm.stop() }
        guard case .retry = await fcm.gateway.outcome(message(), target()) else {
            Issue.record("not a retry")
            return
        }
        #expect(fcm.gateway.tokenRequests == 2)
        #expect(fcm.gateway.stoppedReason?.contains("UNAUTHENTICATED") == true)
        guard case .retry(let after, _) = await fcm.gateway.outcome(message(), target()) else { return }
        #expect(after == .seconds(60))
        #expect(fcm.server.requests.count == 4)
    }

    @Test("invalid_grant stops the lane without asking again")
    func invalidGrant() async throws {
        let fcm = try LocalFCM(.init(token: { _ in .answer(400, body: "{\"error\":\"invalid_grant\"}") }))
        defer { fcm.stop() }
        let first = await fcm.gateway.outcome(message(), target())
        #expect(first == .retry(after: nil, reason: "lane: token endpoint: invalid_grant: check the service account and the clock"))
        guard case .retry(let after, let reason) = await fcm.gateway.outcome(message(), target()) else {
            Issue.record("the lane is open")
            return
        }
        #expect(after == .seconds(60))
        #expect(reason.contains("invalid_grant"))
        #expect(fcm.gateway.tokenRequests == 1)
    }

    @Test("a token endpoint that is down makes pushes wait, not fail")
    func tokenUnavailable() async throws {
        let fcm = try LocalFCM(
            .init(token: { number in number == 1 ? .answer(503) : .answer(200, body: "{\"access_token\":\"t\",\"expires_in\":3600}") }))
        defer { fcm.stop() }
        #expect(await fcm.gateway.outcome(message(), target()) == .retry(after: nil, reason: "lane: token endpoint: http 503"))
        #expect(await fcm.gateway.outcome(message(), target()) == .retry(after: .seconds(10), reason: "lane: token endpoint: http 503"))
        #expect(fcm.gateway.tokenRequests == 1)
        fcm.clock.advance(seconds: 10)
        #expect(await fcm.gateway.outcome(message(), target()) == .accepted(providerID: "projects/p/messages/1"))
    }

    @Test("what cannot be encoded is rejected without a request")
    func rejected() async throws {
        let fcm = try LocalFCM()
        defer { fcm.stop() }
        guard case .rejected(let reason) = await fcm.gateway.outcome(message(data: ["from": "x"]), target()) else {
            Issue.record("not rejected")
            return
        }
        #expect(reason.contains("\"from\""))
        #expect(fcm.server.requests.isEmpty)
    }

    @Test("shutting down completes every push, and so does what comes later")
    func shutsDown() async throws {
        let fcm = try LocalFCM(.init(send: { _ in .silence }))
        let ends = Mutex<[PushOutcome]>([])
        for _ in 0..<3 { fcm.gateway.send(message(), to: target()) { outcome in ends.withLock { $0.append(outcome) } } }
        #expect(await eventually { fcm.server.requests.count >= 2 })
        fcm.stop()
        #expect(await eventually { ends.withLock { $0.count } == 3 })
        for outcome in ends.withLock({ $0 }) {
            if case .retry = outcome { continue }
            Issue.record("\(outcome.name)")
        }
        guard case .retry = await fcm.gateway.outcome(message(), target()) else {
            Issue.record("sent after shutdown")
            return
        }
    }
}

@Suite("APNsGateway", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct APNsGatewayTests {
    @Test(
        "only hexadecimal tokens become paths",
        arguments: [
            (String(repeating: "aB", count: 32), "/3/device/" + String(repeating: "ab", count: 32)), ("ab", "/3/device/ab"), ("", nil),
            ("abc", nil), ("zz", nil), ("ab/../cd", nil), (String(repeating: "ab", count: 101), nil), ("äb", nil),
            ("fcm:token-like_thing", nil),
        ] as [(String, String?)])
    func paths(token: String, path: String?) {
        #expect(APNsGateway.path(token) == path)
    }

    @Test("the environment alone chooses the host")
    func hosts() {
        #expect(APNsLane.host(.production) == "https://api.push.apple.com")
        #expect(APNsLane.host(.sandbox) == "https://api.sandbox.push.apple.com")
    }

    @Test("a server that speaks HTTP/1 is not believed")
    func http1() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let configuration = try APNsConfiguration(
            keyPEM: .ecKey, keyID: "KEY1234567", teamID: "TEAM123456", topic: "com.example.app", url: server.url)
        let gateway = try APNsGateway(configuration, time: ManualClock(), logger: quiet)
        defer { gateway.shutdown(grace: .zero) }
        guard case .retry(_, let reason) = await gateway.outcome(message(), target(.apns, platform: .ios, token: "abcd")) else {
            Issue.record("believed")
            return
        }
        #expect(RetryCause(reason: reason) == .transport)
        #expect(!reason.contains("abcd"))
        let dead = await gateway.outcome(message(), target(.apns, platform: .ios, token: "not hex"))
        #expect(dead == .dead(reason: "not an APNs device token: it is not hexadecimal", since: nil))
    }
}

/// Answers what it is told to, at once.
private struct FixedGateway: ClosablePushGateway {
    let outcome: PushOutcome
    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) { completion(outcome) }
    func shutdown(grace: Duration) {}
}

@Suite("PushRouter", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct PushRouterTests {
    @Test("each provider's pushes go its own way and are counted")
    func routes() async {
        let router = PushRouter(
            apns: FixedGateway(outcome: .dead(reason: "x", since: nil)), fcm: FixedGateway(outcome: .accepted(providerID: "y")),
            logger: quiet)
        #expect(await router.outcome(message(), target(.apns)) == .dead(reason: "x", since: nil))
        #expect(await router.outcome(message(), target(.fcm)) == .accepted(providerID: "y"))
        #expect(await router.outcome(message(), target(.fcm)) == .accepted(providerID: "y"))
        #expect(router.counts[.apns]?.dead == 1)
        #expect(router.counts[.fcm]?.accepted == 2)
    }

    @Test("without credentials a push is logged by its ids, without token, text or data")
    func unconfigured() async {
        let lines = KeepingLogHandler.Lines()
        let logger = Logger(label: "test") { _ in KeepingLogHandler(lines: lines) }
        let router = PushRouter(apns: nil, fcm: nil, logger: logger)
        let outcome = await router.outcome(
            message(title: "SECRET-TITLE", body: "SECRET-BODY", data: ["k": "SECRET-DATA"]), target(.apns, token: "SECRET-TOKEN"))
        #expect(outcome == .skippedUnconfigured)
        #expect(router.counts[.apns]?.skippedUnconfigured == 1)
        #expect(!router.isConfigured(.apns))
        let text = lines.all.withLock { $0.joined() }
        #expect(text.contains("info"))
        #expect(text.contains(message().nid))
        #expect(text.contains(message().event))
        #expect(!text.contains("SECRET"))
    }
}
