import Foundation
import GatewaySimulators
import HubCore
import HubDelivery
import HubTesting
import Logging
import Testing

@testable import HubPush

extension PushTarget {
    func of(app: String) -> PushTarget {
        var target = self
        target.app = app
        return target
    }
}

@Suite("Credentials of several apps", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct RouterCredentialTests {
    /// Two simulations: two teams and two projects.
    private func stage() throws -> (Simulation, Simulation) { (try Simulation(), try Simulation()) }

    private func credentials(_ simulation: Simulation) -> PushCredentials {
        PushCredentials(apns: simulation.apnsConfiguration, fcm: simulation.fcmConfiguration)
    }

    @Test("an app's pushes go by its own credentials, everybody else's by the common ones")
    func routes() async throws {
        let (common, own) = try stage()
        defer {
            common.stop()
            own.stop()
        }
        let router = try PushRouter(
            PushCredentialSet(common: credentials(common), apps: ["2": credentials(own)]), time: common.clock, logger: common.logger,
            reports: common.reports)
        defer { router.shutdown(grace: .zero) }
        #expect(await router.outcome(common.message(), apnsTarget(1).of(app: "1")).name == "accepted")
        #expect(await router.outcome(common.message(), apnsTarget(2).of(app: "2")).name == "accepted")
        #expect(await router.outcome(common.message(), fcmTarget("f2").of(app: "2")).name == "accepted")
        #expect(common.gateways.requests().map(\.token) == [apnsTarget(1).token])
        #expect(own.gateways.requests(provider: .apns).map(\.token) == [apnsTarget(2).token])
        #expect(own.gateways.requests(provider: .fcm).map(\.token) == ["f2"])
    }

    @Test("equal credentials share their lanes, whatever their topics; another key has its own")
    func shared() throws {
        let (common, own) = try stage()
        defer {
            common.stop()
            own.stop()
        }
        var otherTopic = common.apnsConfiguration
        otherTopic.topic = "com.example.other"
        let router = try PushRouter(
            PushCredentialSet(
                common: credentials(common),
                apps: [
                    "2": PushCredentials(apns: otherTopic, fcm: common.fcmConfiguration),
                    "3": PushCredentials(apns: own.apnsConfiguration, fcm: common.fcmConfiguration),
                ]), time: common.clock, logger: common.logger, reports: common.reports)
        defer { router.shutdown(grace: .zero) }
        // Two environments for each of two keys, and one FCM project.
        #expect(router.laneCount == 5)
    }

    @Test("a topic that is wrong stops its app and no other, though they share the lane")
    func topics() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var wrong = simulation.apnsConfiguration
        wrong.topic = "com.example.app.wrong"
        let router = try PushRouter(
            PushCredentialSet(common: credentials(simulation), apps: ["2": PushCredentials(apns: wrong)]), time: simulation.clock,
            logger: simulation.logger, reports: simulation.reports)
        defer { router.shutdown(grace: .zero) }
        #expect(PushEnd(await router.outcome(simulation.message(), apnsTarget(1).of(app: "2"))) == .retry(.lane))
        #expect(PushEnd(await router.outcome(simulation.message(), apnsTarget(1).of(app: "2"))) == .retry(.lane))
        #expect(await router.outcome(simulation.message(), apnsTarget(1).of(app: "1")).name == "accepted")
        #expect(simulation.gateways.requests(provider: .apns).count == 2)
        #expect(simulation.alarms == [.apnsBadTopic])
    }

    @Test("replaced credentials take the next push, what is in flight ends on the old lane, and unchanged lanes stay")
    func rotation() async throws {
        let (old, new) = try stage()
        defer {
            old.stop()
            new.stop()
        }
        let router = try PushRouter(
            PushCredentialSet(common: credentials(old)), time: old.clock, logger: old.logger, reports: old.reports)
        defer { router.shutdown(grace: .zero) }
        #expect(await router.outcome(old.message(), apnsTarget(1)).name == "accepted")
        #expect(await router.outcome(old.message(), fcmTarget("f1")).name == "accepted")
        try old.gateways.setFault(.init(delayMilliseconds: 500), token: apnsTarget(2).token)
        async let slow = router.outcome(old.message(), apnsTarget(2))
        #expect(await eventually { old.gateways.requests(provider: .apns).count == 2 })

        var mixed = credentials(old)
        mixed.apns = new.apnsConfiguration
        #expect(try router.replace(PushCredentialSet(common: mixed)) == 2)
        #expect(router.laneCount == 3)
        #expect(await router.outcome(new.message(), apnsTarget(3)).name == "accepted")
        #expect(await router.outcome(new.message(), fcmTarget("f2")).name == "accepted")
        #expect(await slow.name == "accepted")
        #expect(new.gateways.requests(provider: .apns).map(\.token) == [apnsTarget(3).token])
        #expect(Set(old.gateways.requests(provider: .fcm).map(\.connection)).count == 1)
        #expect(old.gateways.requests(provider: .oauth).count == 1)
        // The same again changes nothing.
        #expect(try router.replace(PushCredentialSet(common: mixed)) == 0)
    }

    @Test("two hundred pushes under way while credentials change: none is lost")
    func rotationUnderLoad() async throws {
        let (old, new) = try stage()
        defer {
            old.stop()
            new.stop()
        }
        let router = try PushRouter(
            PushCredentialSet(common: credentials(old)), time: old.clock, logger: old.logger, reports: old.reports)
        defer { router.shutdown(grace: .zero) }
        async let outcomes = router.outcomes((0..<200).map { (old.message(), apnsTarget($0)) })
        #expect(await eventually { old.gateways.requests(provider: .apns).count > 20 })
        try router.replace(PushCredentialSet(common: credentials(new)))
        for outcome in await outcomes { #expect(["accepted", "retry"].contains(outcome.name)) }
        let accepted = await outcomes.count { $0.name == "accepted" }
        let received = (old.gateways.requests(provider: .apns) + new.gateways.requests(provider: .apns)).count { $0.status == 200 }
        #expect(received == accepted)
    }

    @Test("credentials that cannot be used leave the former ones in force")
    func unusable() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let router = try PushRouter(
            PushCredentialSet(common: credentials(simulation)), time: simulation.clock, logger: simulation.logger,
            reports: simulation.reports)
        defer { router.shutdown(grace: .zero) }
        var bad = credentials(simulation)
        bad.apns?.keyPEM = "no key"
        #expect(throws: PushConfigurationError.self) { try router.replace(PushCredentialSet(common: bad)) }
        #expect(router.laneCount == 3)
        #expect(await router.outcome(simulation.message(), apnsTarget(1)).name == "accepted")
    }

    @Test("a sandbox with a key of its own signs with it")
    func sandboxKey() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var configuration = simulation.apnsConfiguration
        configuration.sandboxKey = APNsKey(pem: .ecKey, id: "SANDBOX123")
        let gateway = try APNsGateway(configuration, time: simulation.clock, logger: simulation.logger, reports: simulation.reports)
        defer { gateway.shutdown(grace: .zero) }
        #expect(await gateway.outcome(simulation.message(), apnsTarget(1, environment: .production)).name == "accepted")
        // The simulators know nothing of this key.
        #expect(await gateway.outcome(simulation.message(), apnsTarget(1, environment: .sandbox)).name == "retry")
        let credentials = simulation.gateways.requests(provider: .apns).map { $0.credential?["header"]?["kid"] }
        #expect(credentials == [.string(configuration.keyID), "SANDBOX123"])
        #expect(gateway.stoppedReason(.production) == nil && gateway.stoppedReason(.sandbox) != nil)
    }

    @Test("without credentials every push ends as skipped, and is counted")
    func unconfigured() async throws {
        let clock = ManualClock()
        let router = try PushRouter(
            PushCredentialSet(common: PushCredentials()), time: clock, logger: Logger(label: "t") { _ in SwiftLogNoOpLogHandler() },
            reports: PushReports(time: clock))
        for target in [apnsTarget(1), fcmTarget("f"), fcmTarget("g").of(app: "7")] {
            #expect(await router.outcome(message(), target) == .skippedUnconfigured)
        }
        #expect(router.counts[.apns]?.skippedUnconfigured == 1 && router.counts[.fcm]?.skippedUnconfigured == 2)
        #expect(router.laneCount == 0)
    }
}

@Suite("PushCounts and PushReports", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct PushCountTests {
    @Test(
        "reasons are of a closed set of words",
        arguments: [
            (PushOutcome.accepted(providerID: "x"), ""), (.skippedUnconfigured, ""),
            (.rejected(reason: "BadTopic: check APNS_TOPIC"), "BadTopic"), (.dead(reason: "UNREGISTERED", since: nil), "UNREGISTERED"),
            (.rejected(reason: "a?b?token-of-somebody"), "other"), (.rejected(reason: ""), "other"),
            (.retry(after: nil, reason: "throttled: QUOTA_EXCEEDED"), "QUOTA_EXCEEDED"),
            (.retry(after: nil, reason: "device throttled: TooManyRequests"), "TooManyRequests"),
            (.retry(after: nil, reason: "device throttled: something"), "device_throttled"),
            (.retry(after: nil, reason: "transport: connection refused (not sent)"), "transport"),
            (.retry(after: nil, reason: "lane: stopped: BadTopic: check"), "lane"),
            (.retry(after: nil, reason: "lane: token endpoint: invalid_grant: check"), "invalid_grant"),
            (.retry(after: nil, reason: "store"), "other"),
        ])
    func words(outcome: PushOutcome, word: String) {
        #expect(PushReason.word(of: outcome) == word)
    }

    @Test("counts are by outcome and reason, and however many reasons there are, few labels")
    func labels() {
        var counts = PushCounts()
        for index in 0..<1000 { counts.note(.rejected(reason: "Reason\(index)")) }
        counts.note(.rejected(reason: "BadTopic"))
        counts.note(.accepted(providerID: "x"))
        #expect(
            counts.causes == [
                .init(outcome: "rejected", reason: "other"): 1000, .init(outcome: "rejected", reason: "BadTopic"): 1,
                .init(outcome: "accepted", reason: ""): 1,
            ])
        #expect(counts.rejected == 1001)
    }

    @Test("an alarm is told once in ten minutes for each lane, and counted every time")
    func alarms() {
        let clock = ManualClock()
        let reports = PushReports(time: clock)
        let lines = KeepingLogHandler.Lines()
        reports.onAlarm { alarm, lane, _ in lines.all.withLock { $0.append("\(alarm.rawValue) \(lane)") } }
        for _ in 0..<3 { reports.raise(.apnsBadTopic, lane: "a", "x") }
        reports.raise(.apnsBadTopic, lane: "b", "x")
        clock.advance(seconds: 600)
        reports.raise(.apnsBadTopic, lane: "a", "x")
        #expect(lines.all.withLock { $0 } == ["apns_bad_topic a", "apns_bad_topic b", "apns_bad_topic a"])
        #expect(reports.alarms == [.apnsBadTopic: 5])
    }
}

@Suite("Secrets", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct SecretAcceptanceTests {
    @Test("whatever happens, no secret and no token is in a log, a reason, an alarm or a description")
    func mixed() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let faults = (APNsErrorTableTests.rows.map { ($0.fault, true) } + FCMErrorTableTests.rows.map { ($0.fault, false) })
        var texts: [String] = []
        var tokens: [String] = []
        for (number, (fault, isAPNs)) in faults.enumerated() {
            var target = isAPNs ? apnsTarget(1000 + number) : fcmTarget("fcm-secret-token-\(number)")
            target.device = "device-\(number)"
            tokens.append(target.token)
            try simulation.gateways.setFault(fault, token: target.token)
            let gateway: any PushGateway = isAPNs ? simulation.apns : simulation.fcm
            texts.append("\(await gateway.outcome(simulation.message(data: ["k": "SECRET-DATA"]), target))")
            texts.append("\(target) \(String(reflecting: target))")
            var dumped = ""
            dump(target, to: &dumped)
            texts.append(dumped)
            simulation.clock.advance(seconds: 700)
        }
        // Credentials that are wrong, of which errors speak.
        for text in [simulation.apnsConfiguration.keyPEM, String(decoding: simulation.fcmConfiguration.serviceAccount, as: UTF8.self)] {
            let bytes = Array(text.utf8).map { $0 == UInt8(ascii: "M") ? UInt8(ascii: "?") : $0 }
            do {
                _ = try APNsConfiguration(
                    keyPEM: String(decoding: bytes, as: UTF8.self), keyID: "KEY1234567", teamID: "TEAM123456", topic: "t")
            } catch { texts.append("\(error)") }
            do { _ = try FCMConfiguration(serviceAccount: bytes) } catch { texts.append("\(error)") }
        }
        for value in [simulation.apnsConfiguration as Any, simulation.fcmConfiguration, simulation.apnsConfiguration.key(.sandbox)] {
            var dumped = ""
            dump(value, to: &dumped)
            texts.append("\(value) \(String(reflecting: value)) \(dumped)")
        }
        let device = Device(
            app: "1", user: "u", id: "d", platform: .ios, provider: .apns, token: tokens[0], environment: .sandbox, registeredAt: 1)
        var dumped = ""
        dump(device, to: &dumped)
        texts.append("\(device) \(dumped)")
        texts += [simulation.lines.text, simulation.alarmDetails]
        let all = texts.joined(separator: "\n")
        #expect(simulation.lines.all.withLock { $0.count } >= faults.count)

        // Key material: every line of a PEM longer than its frame.
        let account = try json(simulation.fcmConfiguration.serviceAccount)
        let pems = [simulation.apnsConfiguration.keyPEM, account["private_key"]?.stringValue ?? ""]
        var secrets = tokens + ["SECRET-DATA", "ya29."]
        for line in pems.joined(separator: "\n").split(separator: "\n") where !line.hasPrefix("-----") { secrets.append(String(line)) }
        #expect(secrets.count > faults.count + 10)
        // Provider tokens are three parts of base64; their header is the same for all.
        let header = simulation.gateways.requests(provider: .apns).first?.credential?["header"]?.serialized() ?? []
        secrets.append(Data(header).base64EncodedString().replacingOccurrences(of: "=", with: ""))
        let printed = secrets.filter { all.contains($0) }
        #expect(printed.isEmpty)
    }
}

@Suite("tandem check --live", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct CredentialCheckTests {
    private func ask(
        _ simulation: Simulation, apns: APNsConfiguration? = nil, fcm: FCMConfiguration? = nil
    ) async throws -> [CredentialChecks.Answer] {
        let credentials = PushCredentials(apns: apns ?? simulation.apnsConfiguration, fcm: fcm ?? simulation.fcmConfiguration)
        return try await CredentialChecks(PushCredentialSet(common: credentials), time: simulation.clock, logger: simulation.logger).run()
    }

    @Test("right credentials are called good, nothing is delivered, and one line stands for each gateway and environment")
    func good() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let answers = try await ask(simulation)
        #expect(answers.map(\.provider) == [.apns, .apns, .fcm])
        #expect(answers.map(\.environment) == [.production, .sandbox, nil])
        #expect(answers.map(\.check.verdict) == [.good, .good, .good], "\(answers)")
        #expect(answers.allSatisfy { $0.check.advice == nil })
        #expect(simulation.gateways.requests(provider: .apns).allSatisfy { $0.reason == "BadDeviceToken" })
        let message = try #require(simulation.gateways.requests(provider: .fcm).first)
        #expect(message.json?["validate_only"] == true && message.status == 200)
    }

    @Test(
        "a wrong topic, key, team or environment is refused with what to do",
        arguments: [
            ("topic", "APNS_TOPIC"), ("key", "APNS_KEY_PATH"), ("team", "APNS_TEAM_ID"),
        ])
    func wrongAPNs(what: String, advice: String) async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        var configuration = simulation.apnsConfiguration
        switch what {
        case "topic": configuration.topic = "com.example.another"
        case "key": configuration.keyPEM = .ecKey
        default: configuration.teamID = "WRONGTEAM1"
        }
        let answers = try await ask(simulation, apns: configuration)
        for answer in answers.prefix(2) {
            #expect(answer.check.verdict == .refused)
            #expect(answer.check.advice?.contains(advice) == true, "\(answer)")
        }
        #expect(answers.last?.check.verdict == .good)
    }

    @Test("a key for one environment says so for the other")
    func oneEnvironment() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "BadEnvironmentKeyIdInToken"), token: "*", provider: .apns)
        let check = CredentialCheck.apns(
            asked: "x", APNsOutcome.verdict(status: 403, reason: "BadEnvironmentKeyIdInToken", timestamp: nil, after: nil).outcome)
        #expect(check.verdict == .otherEnvironmentOnly)
    }

    @Test("a disabled API, another project and a revoked account are refused with what to do")
    func wrongFCM() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "PERMISSION_DENIED"), token: "*", provider: .fcm)
        var check = try #require(try await ask(simulation).last?.check)
        #expect(check.verdict == .refused && check.advice?.contains("enable the Firebase Cloud Messaging API") == true, "\(check)")
        simulation.gateways.removeAllFaults()

        let account = try json(simulation.fcmConfiguration.serviceAccount)
        func changed(_ name: String, _ value: String) throws -> FCMConfiguration {
            var members = account.objectValue ?? [:]
            members[name] = .string(value)
            return try FCMConfiguration(
                serviceAccount: JSONValue.object(members).serialized(), url: simulation.fcmConfiguration.url,
                caFile: simulation.fcmConfiguration.caFile)
        }
        check = try #require(try await ask(simulation, fcm: changed("project_id", "another-project")).last?.check)
        #expect(check.verdict == .refused && check.advice?.contains("project_id") == true, "\(check)")
        check = try #require(try await ask(simulation, fcm: changed("private_key", rsaKey.pem)).last?.check)
        #expect(check.verdict == .refused && check.advice?.contains("clock") == true, "\(check)")
        try simulation.gateways.setFault(.init(status: 503, reason: "x"), token: "oauth")
        check = try #require(try await ask(simulation).last?.check)
        #expect(check.verdict == .failed && check.advice?.contains("token_uri") == true, "\(check)")
    }

    @Test("a host that cannot be reached is told as such")
    func unreachable() async throws {
        let simulation = try Simulation()
        simulation.stop()
        let answers = try await ask(simulation)
        #expect(answers.map(\.check.verdict) == [.failed, .failed, .failed])
        #expect(answers.allSatisfy { $0.check.advice?.contains("reaches") == true }, "\(answers)")
    }

    @Test("apps with equal credentials are asked about once")
    func several() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let credentials = PushCredentials(apns: simulation.apnsConfiguration, fcm: simulation.fcmConfiguration)
        var other = credentials
        other.apns?.topic = "com.example.app.other"
        let set = PushCredentialSet(common: credentials, apps: ["2": credentials, "3": other])
        let answers = try await CredentialChecks(set, time: simulation.clock, logger: simulation.logger).run()
        #expect(answers.map(\.place) == ["push", "push", "push", "app 3", "app 3"])
        #expect(answers.map(\.check.verdict) == [.good, .good, .good, .refused, .refused])
    }
}
