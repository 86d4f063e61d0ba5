import Foundation
import GatewaySimulators
import HubCore
import HubCrypto
import HubDelivery
import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubPush

extension PushGateway {
    /// The outcomes of pushes sent beside each other, in the order of the targets.
    func outcomes(_ pushes: [(message: PushMessage, target: PushTarget)]) async -> [PushOutcome] {
        await withTaskGroup(of: (Int, PushOutcome).self) { group in
            for (index, push) in pushes.enumerated() {
                group.addTask { (index, await self.outcome(push.message, push.target)) }
            }
            return await group.reduce(into: [(Int, PushOutcome)]()) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}

@Suite("Credentials", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct CredentialAcceptanceTests {
    @Test("two connections, one provider token, and a signature of 64 bytes that the public key verifies")
    func oneToken() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for environment in [APNsEnvironment.production, .sandbox] {
            #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(environment: environment)).name == "accepted")
        }
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.map(\.environment) == [.production, .sandbox])
        #expect(Set(requests.compactMap { $0.header("authorization") }).count == 1)
        #expect(requests[0].credential?["header"] == ["alg": "ES256", "kid": .string(simulation.apnsConfiguration.keyID)])
        #expect(requests[0].credential?["claims"]?.objectValue?.keys.sorted() == ["iat", "iss"])

        let key = ES256PrivateKey.generate()
        let token = APNsProviderToken(key: key, keyID: "KEY1234567", teamID: "TEAM123456", time: ManualClock())
        guard case .token(let text) = try token.current() else {
            Issue.record("no token")
            return
        }
        let parts = text.split(separator: ".")
        let signature = try #require(Base64URL.decode(parts[2]))
        #expect(signature.count == 64)
        #expect(try ES256PublicKey(pem: key.publicKeyPEM).isValid(signature: signature, for: Array("\(parts[0]).\(parts[1])".utf8)))
    }

    @Test("a flood of ExpiredProviderToken signs nothing within 20 minutes, and once after them")
    func flood() async throws {
        let simulation = try Simulation(behind: 1200)
        defer { simulation.stop() }
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "accepted")
        try simulation.gateways.setFault(.init(reason: "ExpiredProviderToken"), token: "*", provider: .apns)
        for minute in 0..<19 {
            let outcomes = await simulation.apns.outcomes((0..<50).map { (simulation.message(), apnsTarget($0, isProven: true)) })
            #expect(outcomes.allSatisfy { $0.name == "retry" }, "minute \(minute)")
            simulation.clock.advance(seconds: 60)
        }
        func tokens() -> Set<String> { Set(simulation.gateways.requests(provider: .apns).compactMap { $0.header("authorization") }) }
        #expect(tokens().count == 1)
        simulation.gateways.removeAllFaults()
        try simulation.gateways.setFault(.init(reason: "ExpiredProviderToken", times: 1), token: "*", provider: .apns)
        simulation.clock.advance(seconds: 600)
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget()).name == "accepted")
        #expect(tokens().count == 2)
        #expect(simulation.alarms.contains(.apnsProviderTokenExpired))
    }

    @Test("the signing schedule: 45 minutes to the next signing, never one older than an hour, never two within 20 minutes")
    func schedule() {
        let minute = 60 * nanosecondsPerSecond
        var schedule = APNsTokenSchedule()
        #expect(schedule.decide(now: 0) == .sign)
        schedule.signed("a", now: 0)
        #expect(schedule.decide(now: 45 * minute - 1) == .use("a"))
        #expect(schedule.decide(now: 45 * minute) == .sign)
        schedule.signed("b", now: 45 * minute)
        // Back to the older one, which has ten minutes to live, and none may be signed for twenty.
        schedule.tooManyUpdates(now: 50 * minute)
        #expect(schedule.decide(now: 59 * minute) == .use("a"))
        #expect(schedule.decide(now: 61 * minute) == .wait(9 * minute))
        #expect(schedule.decide(now: 70 * minute) == .sign)
    }

    @Test("a thousand concurrent sends make one token request, and one more before it expires")
    func refreshStorm() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let accepted = await simulation.fcm.outcomes((0..<1000).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(accepted.allSatisfy { $0.name == "accepted" })
        #expect(simulation.gateways.requests(provider: .oauth).count == 1)
        // Less than five minutes are left: the old one goes on serving while one other is fetched.
        simulation.clock.advance(seconds: 3599 - 299)
        let again = await simulation.fcm.outcomes((0..<200).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(again.allSatisfy { $0.name == "accepted" })
        #expect(await eventually { simulation.gateways.requests(provider: .oauth).count == 2 })
    }

    @Test("invalid_grant stops the lane with an alarm, and every push waits instead of failing")
    func invalidGrant() async throws {
        let simulation = try Simulation(behind: 600)
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(status: 400, reason: "invalid_grant"), token: "oauth")
        let outcomes = await simulation.fcm.outcomes((0..<100).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(outcomes.allSatisfy { $0.name == "retry" })
        #expect(simulation.gateways.requests(provider: .oauth).count == 1)
        #expect(simulation.fcm.stoppedReason?.contains("invalid_grant") == true)
        #expect(simulation.alarms == [.fcmAccountRefused])
        // Put right: the next trial gets through.
        simulation.gateways.removeAllFaults()
        simulation.clock.advance(seconds: 600)
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("d")).name == "accepted")
    }

    @Test(
        "a token endpoint that is busy makes pushes wait",
        arguments: [
            GatewayFault(status: 408, reason: "x"), .init(status: 429, reason: "x"), .init(status: 500, reason: "x"),
            .init(status: 503, reason: "x", retryAfter: "20"), .init(status: 504, reason: "x"),
            .init(status: 400, reason: "internal_failure"),
            .init(status: 400, reason: "server_error"), .init(status: 400, reason: "temporarily_unavailable"), .init(action: .html),
        ])
    func busyTokenEndpoint(fault: GatewayFault) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var once = fault
        once.times = 1
        try simulation.gateways.setFault(once, token: "oauth")
        #expect(PushEnd(await simulation.fcm.outcome(simulation.message(), fcmTarget("d"))) == .retry(.lane))
        #expect(simulation.fcm.stoppedReason == nil)
        #expect(simulation.alarms.isEmpty)
        simulation.clock.advance(seconds: 20)
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("d")).name == "accepted")
    }

    @Test("a service account from an environment variable, with its line breaks written as \\n, signs as well")
    func escapedPEM() throws {
        let file = ServiceAccount.file(key: rsaKey, tokenURI: "https://127.0.0.1/token") { members in
            members["private_key"] = .string(rsaKey.pem.replacingOccurrences(of: "\n", with: "\\n"))
        }
        #expect(try FCMConfiguration(serviceAccount: file).projectID == "demo-project")
    }
}

@Suite("Bad device tokens", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct BadTokenAcceptanceTests {
    @Test(
        "a token nobody ever accepted is tried once in the other environment, and that is told",
        arguments: [
            (APNsEnvironment.production, SimulatedEnvironment.production, APNsEnvironment.sandbox),
            (.sandbox, .sandbox, .production),
        ])
    func crossTry(registered: APNsEnvironment, fails: SimulatedEnvironment, right: APNsEnvironment) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let target = apnsTarget(environment: registered)
        try simulation.gateways.setFault(.init(reason: "BadDeviceToken", environment: fails), token: target.token)
        let message = simulation.message()
        let id = RequestID.make(nid: message.nid, device: target.device)
        #expect(await simulation.apns.outcome(message, target) == .accepted(providerID: id, environment: right))
        let requests = simulation.gateways.requests(provider: .apns)
        #expect(requests.map(\.status) == [400, 200])
        #expect(requests.map(\.environment?.rawValue) == [registered.rawValue, right.rawValue])
        #expect(Set(requests.map { $0.header("apns-id") }) == [id])
        #expect(simulation.dead.isEmpty)
    }

    @Test("a token that was accepted before is not tried elsewhere; bad in both is removed when others are fine")
    func bothBad() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "BadDeviceToken"), token: apnsTarget(1).token)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget(1, isProven: true))) == .dead(isCertain: false))
        #expect(simulation.gateways.requests(provider: .apns).count == 1)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget(2, isProven: true))) == .accepted)
        try simulation.gateways.setFault(.init(reason: "BadDeviceToken"), token: apnsTarget(3).token)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget(3))) == .dead(isCertain: false))
        #expect(simulation.gateways.requests(provider: .apns).count == 4)
        #expect(simulation.dead.isEmpty)
        simulation.clock.advance(seconds: 5)
        simulation.apns.side(.sandbox).tokens.sweep()
        #expect(simulation.dead == [apnsTarget(1).token, apnsTarget(3).token])
        #expect(simulation.alarms.isEmpty)
    }

    @Test(
        "invented tokens stop nobody: the next push reaches everybody whose token worked before, and the invented ones are removed",
        arguments: [12, 500])
    func invented(count: Int) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let honest = (0..<150).map { apnsTarget($0) }
        #expect(await simulation.apns.outcomes(honest.map { (simulation.message(), $0) }).allSatisfy { $0.name == "accepted" })
        let invented = (1_000..<1_000 + count).map { apnsTarget($0) }
        for target in invented { try simulation.gateways.setFault(.init(reason: "BadDeviceToken"), token: target.token) }
        let refused = await simulation.apns.outcomes(invented.map { (simulation.message(), $0) })
        #expect(refused.allSatisfy { PushEnd($0) == .dead(isCertain: false) })
        #expect(simulation.alarms.isEmpty && simulation.apns.stoppedReason(.sandbox) == nil)

        let known = honest.map { PushCandidate(target: $0.proven, isUrgent: true) }
        #expect(simulation.apns.admit(known).allSatisfy { $0 == .go })
        let outcomes = await simulation.apns.outcomes(known.map { (simulation.message(), $0.target) })
        #expect(outcomes.count { $0.name == "accepted" } == 150)
        simulation.clock.advance(seconds: 5)
        simulation.apns.side(.sandbox).tokens.sweep()
        #expect(Set(simulation.dead) == Set(invented.map(\.token)))
    }

    @Test("a wrong topic at a first start is told, deletes nobody, and each push waits until it was put right")
    func firstStart() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let newcomers = (0..<10).map { apnsTarget($0) }
        for target in newcomers { try simulation.gateways.setFault(.init(reason: "DeviceTokenNotForTopic"), token: target.token) }
        var outcomes: [PushOutcome] = []
        for target in newcomers { outcomes.append(await simulation.apns.outcome(simulation.message(), target)) }
        #expect(outcomes.dropFirst(2).allSatisfy { PushEnd($0) == .retry(.lane) })
        #expect(simulation.alarms == [.apnsBadTokens] && simulation.alarmDetails.contains("APNS_TOPIC"))
        simulation.clock.advance(seconds: 60)
        simulation.apns.side(.sandbox).tokens.sweep()
        #expect(simulation.dead.isEmpty)
        // Put right: nobody has to wait for a trial.
        simulation.gateways.removeAllFaults()
        #expect(await simulation.apns.outcomes(newcomers.map { (simulation.message(), $0) }).allSatisfy { $0.name == "accepted" })
    }

    @Test("where the other environment cannot be asked, the token is kept")
    func otherStopped() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "BadEnvironmentKeyIdInToken", environment: .sandbox), token: "*", provider: .apns)
        _ = await simulation.apns.outcome(simulation.message(), apnsTarget(2))
        try simulation.gateways.setFault(.init(reason: "BadDeviceToken", environment: .production), token: apnsTarget(1).token)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget(1, environment: .production))) == .rejected)
        simulation.clock.advance(seconds: 60)
        simulation.apns.side(.production).tokens.sweep()
        #expect(simulation.dead.isEmpty)
    }

    @Test("a fifth of a batch is bad: the guard trips, the lane stops with an alarm, nothing is removed")
    func fifth() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for number in stride(from: 0, to: 400, by: 5) {
            try simulation.gateways.setFault(.init(reason: "BadDeviceToken"), token: apnsTarget(number).token)
        }
        let outcomes = await simulation.apns.outcomes((0..<400).map { (simulation.message(), apnsTarget($0, isProven: true)) })
        #expect(outcomes.contains { $0.name == "accepted" })
        #expect(simulation.alarms == [.apnsBadTokens])
        #expect(simulation.apns.stoppedReason(.sandbox)?.contains("APNS_TOPIC") == true)
        #expect(simulation.apns.stoppedReason(.production) == nil)
        simulation.clock.advance(seconds: 30)
        simulation.apns.side(.sandbox).tokens.sweep()
        #expect(simulation.dead.isEmpty)
        #expect(PushEnd(await simulation.apns.outcome(simulation.message(), apnsTarget(1))) == .retry(.lane))
        // Put right: after the hold one push goes through, and the lane goes on.
        simulation.gateways.removeAllFaults()
        simulation.clock.advance(seconds: 30)
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(1)).name == "accepted")
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(2)).name == "accepted")
    }

    @Test("FCM: beyond 30 % unregistered tokens are kept with an alarm, and sending goes on")
    func unregistered() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for number in stride(from: 0, to: 200, by: 2) {
            try simulation.gateways.setFault(.init(reason: "UNREGISTERED"), token: "d\(number)")
        }
        let outcomes = await simulation.fcm.outcomes((0..<200).map { (simulation.message(), fcmTarget("d\($0)", isProven: true)) })
        #expect(outcomes.count { $0.name == "accepted" } == 100)
        #expect(simulation.alarms == [.fcmUnregistered])
        simulation.clock.advance(seconds: 30)
        simulation.fcm.sweep()
        #expect(simulation.dead.isEmpty)
        #expect(simulation.fcm.stoppedReason == nil)
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("d1")).name == "accepted")
    }

    @Test("FCM: dead tokens go on being removed, however many invented ones are called dead")
    func inventedOfFCM() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let honest = (0..<150).map { fcmTarget("h\($0)", isProven: true) }
        #expect(await simulation.fcm.outcomes(honest.map { (simulation.message(), $0) }).allSatisfy { $0.name == "accepted" })
        let invented = (0..<500).map { fcmTarget("unregistered-\($0)") }
        let refused = await simulation.fcm.outcomes(invented.map { (simulation.message(), $0) })
        #expect(refused.allSatisfy { PushEnd($0) == .dead(isCertain: false) })
        try simulation.gateways.setFault(.init(reason: "UNREGISTERED"), token: "h7")
        #expect(PushEnd(await simulation.fcm.outcome(simulation.message(), honest[7])) == .dead(isCertain: false))
        simulation.clock.advance(seconds: 5)
        simulation.fcm.sweep()
        #expect(Set(simulation.dead) == Set(invented.map(\.token) + ["h7"]))
        #expect(simulation.alarms.isEmpty)
    }

    @Test("FCM: where none was ever accepted, tokens that are called dead are kept, and it is told")
    func firstStartOfFCM() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for number in 0..<20 { _ = await simulation.fcm.outcome(simulation.message(), fcmTarget("unregistered-\(number)")) }
        #expect(simulation.alarms == [.fcmUnregistered])
        simulation.clock.advance(seconds: 3600)
        simulation.fcm.sweep()
        #expect(simulation.dead.isEmpty)
    }
}
