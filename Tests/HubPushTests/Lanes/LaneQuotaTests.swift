import GatewaySimulators
import HubCore
import HubDelivery
import HubTesting
import Testing

@testable import HubPush

private let second = nanosecondsPerSecond
private let minute = 60 * nanosecondsPerSecond

/// FCM says that the project's quota is spent.
@Suite("LaneRate at the end of a quota")
struct LaneRateQuotaTests {
    /// A lane at its full rate after a minute of bulk.
    private func busy(perMinute: Int = 600_000) -> LaneRate {
        var rate = LaneRate(perMinute: perMinute)
        _ = taken(&rate, from: 0, seconds: 60)
        return rate
    }

    private func taken(_ rate: inout LaneRate, from: UInt64, seconds: Double, isUrgent: Bool = false) -> Int {
        var count = 0
        for step in 0..<Int(seconds * 10) {
            while rate.take(isUrgent: isUrgent, now: from + UInt64(step) * second / 10) { count += 1 }
        }
        return count
    }

    @Test("nothing goes out for as long as the gateway asks, a minute where it asks for nothing, an hour at most")
    func holds() {
        for (asked, wait) in [(nil, 60), (5, 5), (0, 1), (90, 90), (86_400, 3_600)] as [(Int?, UInt64)] {
            var rate = LaneRate(perMinute: 600_000)
            _ = rate.spent(for: asked.map { .seconds($0) }, sentAt: 0, now: 0)
            #expect(rate.room(now: 0) == (0, 0))
            #expect(rate.wait(now: 0) == .seconds(Int(wait)))
            #expect(rate.allowed(now: 0) == 0)
            #expect(rate.take(isUrgent: true, now: wait * second - 1) == false)
            #expect(rate.take(isUrgent: true, now: (wait + 1) * second) == true)
        }
    }

    @Test("a later complaint holds longer, an earlier end does not shorten")
    func longest() {
        var rate = LaneRate(perMinute: 600_000)
        _ = rate.spent(for: .seconds(60), sentAt: 0, now: second)
        _ = rate.spent(for: .seconds(5), sentAt: 0, now: 2 * second)
        #expect(rate.wait(now: 2 * second) == .seconds(59))
        _ = rate.spent(for: .seconds(90), sentAt: 0, now: 3 * second)
        #expect(rate.wait(now: 3 * second) == .seconds(90))
    }

    @Test("the rate halves once for all that was under way, and again when what was sent afterwards is refused too, down to a twentieth")
    func halves() {
        var rate = busy()
        #expect(rate.spent(for: nil, sentAt: minute, now: minute) == true)
        for number in 0..<600 {
            let isCut = rate.spent(for: .seconds(1), sentAt: minute - UInt64(number), now: minute + UInt64(number))
            #expect(!isCut)
        }
        var now = 2 * minute
        #expect(abs(rate.ceiling(now: now) - 4_000) < 1)
        for expected in [2_000.0, 1_000, 500, 400, 400] {
            #expect(rate.spent(for: .seconds(1), sentAt: now, now: now) == true)
            now += second
            #expect(abs(rate.ceiling(now: now) - expected) < 1)
        }
    }

    @Test("what was held back does not go out in one go after the wait, urgent or not", arguments: [false, true])
    func noBurst(isUrgent: Bool) {
        var rate = busy()
        _ = rate.spent(for: .seconds(60), sentAt: minute, now: minute)
        #expect(taken(&rate, from: minute, seconds: 60, isUrgent: isUrgent) == 0)
        let first = taken(&rate, from: 2 * minute, seconds: 1, isUrgent: isUrgent)
        #expect((100...1_000).contains(first))
    }

    @Test("a tenth of the rate comes back each minute, up to the whole and no further")
    func recovers() {
        var rate = busy()
        _ = rate.spent(for: .seconds(60), sentAt: minute, now: minute)
        let start = 2 * minute
        for (minutes, expected) in [(0, 4_000.0), (1, 4_800), (2, 5_600), (5, 8_000), (9, 8_000)] as [(UInt64, Double)] {
            #expect(abs(rate.ceiling(now: start + minutes * minute) - expected) < 1)
        }
        _ = taken(&rate, from: start, seconds: 60)
        let second = taken(&rate, from: start + minute, seconds: 60)
        #expect((4_800 * 60 - 20_000...5_600 * 60).contains(second))
        _ = taken(&rate, from: start + 2 * minute, seconds: 240)
        let whole = taken(&rate, from: start + 6 * minute, seconds: 60)
        #expect((460_000...480_800).contains(whole))
    }

    @Test("a complaint about what was sent before the wait keeps what has come back")
    func late() {
        var rate = busy()
        _ = rate.spent(for: .seconds(1), sentAt: minute, now: minute)
        #expect(rate.spent(for: .seconds(1), sentAt: minute, now: 2 * minute + second) == false)
        #expect(abs(rate.ceiling(now: 2 * minute + 2 * second) - 4_800) < 1)
    }

    @Test("a lane without a quota waits as asked, and then has no rate")
    func unlimited() {
        var rate = LaneRate(perMinute: nil)
        _ = rate.spent(for: .seconds(10), sentAt: 0, now: 0)
        #expect(rate.take(isUrgent: true, now: 9 * second) == false)
        #expect(rate.room(now: 10 * second) == (.max, .max))
        #expect(rate.allowed(now: 10 * second) == nil)
    }

    @Test("an outage during the wait does not shorten it")
    func outage() {
        var rate = busy()
        _ = rate.spent(for: .seconds(60), sentAt: minute, now: minute)
        rate.recover(now: minute + 10 * second)
        #expect(rate.room(now: minute + 59 * second) == (0, 0))
        #expect(rate.room(now: 2 * minute + second).count <= 20)
        #expect(rate.spent(for: .seconds(1), sentAt: 2 * minute + second, now: 2 * minute + second) == true)
        #expect(rate.room(now: 2 * minute + 3 * second).urgent <= 20)
    }
}

@Suite("LaneAdmission at the end of a quota")
struct LaneAdmissionQuotaTests {
    private let spent = PushOutcome.retry(after: .seconds(90), reason: RetryCause.throttled.reason("QUOTA_EXCEEDED"))

    private func candidates(_ count: Int) -> [PushCandidate] {
        (0..<count).map { PushCandidate(target: fcmTarget("t\($0)"), isUrgent: true) }
    }

    @Test("the project's quota holds the whole lane and is told once; a device's and a topic's hold nobody else")
    func whose() {
        var pace = LaneAdmission(perMinute: 600_000, hasDeviceBuckets: true)
        let device = PushOutcome.retry(after: .seconds(90), reason: RetryCause.deviceThrottled.reason("QUOTA_EXCEEDED"))
        #expect(pace.note(device, fcmTarget("other"), sentAt: 0, now: 0) == nil)
        for form in [TargetForm.topic, .condition] {
            var news = fcmTarget("news")
            news.form = form
            #expect(pace.note(spent, news, sentAt: 0, now: 0) == nil)
        }
        #expect(pace.admit(candidates(2), window: 200, now: 0) == [.go, .go])

        #expect(pace.note(spent, fcmTarget("t0"), sentAt: 0, now: 0) == .slowed)
        #expect(pace.note(spent, fcmTarget("t1"), sentAt: 0, now: 0) == nil)
        #expect(pace.admit(candidates(2), window: 200, now: 0) == [.wait(again: .seconds(90)), .wait(again: .seconds(90))])
        #expect(pace.room(isUnproven: false, window: 200, now: 0) == PushRoom(count: 0, urgent: 0, again: .seconds(90)))
        #expect(pace.admit(candidates(2), window: 200, now: 91 * second) == [.go, .go])
    }

    @Test("an answer that ends an outage and complains of the quota does both")
    func trial() {
        var pace = LaneAdmission(perMinute: 600_000, hasDeviceBuckets: true)
        let down = PushOutcome.retry(after: nil, reason: RetryCause.unavailable.reason("http 503"))
        for _ in 0..<LaneBreaker.failuresMax { _ = pace.note(down, fcmTarget("t"), sentAt: 0, now: 0) }
        #expect(pace.admit(candidates(1), window: 200, now: 5 * second) == [.go])
        #expect(pace.note(spent, fcmTarget("t0"), sentAt: 5 * second, now: 6 * second) == .recovered)
        #expect(pace.admit(candidates(1), window: 200, now: 7 * second) == [.wait(again: .seconds(89))])
    }
}

@Suite("FCM's quota")
struct FCMQuotaTests {
    @Test("a 429 of FCM's holds the lane as long as it asks and lowers its rate")
    func lane() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(reason: "QUOTA_EXCEEDED", retryAfter: "90"), token: "d0")
        let outcome = await simulation.fcm.outcome(simulation.message(), fcmTarget("d0"))
        #expect(outcome == .retry(after: .seconds(90), reason: "throttled: QUOTA_EXCEEDED"))
        let candidates = (0..<3).map { PushCandidate(target: fcmTarget("d\($0)"), isUrgent: true) }
        #expect(simulation.fcm.admit(candidates).allSatisfy { $0 == .wait(again: .seconds(90)) })
        #expect(simulation.fcm.figures.rate == 0)
        simulation.clock.advance(seconds: 91)
        #expect(simulation.fcm.admit(candidates).allSatisfy { $0 == .go })
        #expect((simulation.fcm.figures.rate ?? 0) <= 4_100)
        #expect(simulation.lines.text.contains("push lane slows down"))
    }
}

@Suite("FCM's quota of several service accounts")
struct FCMSharedQuotaTests {
    /// Another account, by its text; of the same project unless that is changed.
    private func other(_ simulation: Simulation, _ changes: [String: String], perMinute: Int = 600_000) throws -> FCMConfiguration {
        let account = try JSONValue(parsing: simulation.fcmConfiguration.serviceAccount)
        var members = try #require(account.objectValue)
        for (name, value) in changes { members[name] = .string(value) }
        return try FCMConfiguration(
            serviceAccount: JSONValue.object(members).serialized(), url: simulation.fcmConfiguration.url,
            caFile: simulation.fcmConfiguration.caFile, messagesPerMinute: perMinute)
    }

    private func candidates(_ count: Int) -> [PushCandidate] {
        (0..<count).map { PushCandidate(target: fcmTarget("d\($0)"), isUrgent: false) }
    }

    @Test("two accounts of one project have one bucket, and lanes and access tokens of their own; another project has its own bucket")
    func shared() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let lanes = PushLanes(time: simulation.clock, logger: simulation.logger, reports: simulation.reports)
        defer { PushLanes.close(lanes.retire(allBut: []), grace: .zero) }
        // 500 at once.
        let first = try lanes.gateway(other(simulation, [:], perMinute: 5_000))
        let second = try lanes.gateway(other(simulation, ["client_id": "another"], perMinute: 5_000))
        let stranger = try lanes.gateway(other(simulation, ["project_id": "another-project"]))
        #expect(lanes.count == 3 && first !== second)
        #expect(first.admit(candidates(500)).count { $0 == .go } == 500)
        #expect(second.admit(candidates(500)).count { $0 == .go } < 500)
        #expect(first.room(on: fcmTarget("d").route).count == 0)
        #expect(stranger.room(on: fcmTarget("d").route).count > 200)

        for gateway in [first, second] {
            #expect(await gateway.outcome(simulation.message(), fcmTarget("good")).name == "accepted")
            #expect(gateway.tokenRequests == 1)
        }
        // One lane's spent quota holds the other one, one lane's missing right does not.
        try simulation.gateways.setFault(.init(reason: "QUOTA_EXCEEDED", retryAfter: "90"), token: "spent")
        #expect(await first.outcome(simulation.message(), fcmTarget("spent")).name == "retry")
        #expect(second.admit(candidates(1)) == [.wait(again: .seconds(90))])
        try simulation.gateways.setFault(.init(reason: "PERMISSION_DENIED"), token: "denied")
        _ = await first.outcome(simulation.message(), fcmTarget("denied"))
        #expect(first.stoppedReason != nil && second.stoppedReason == nil)
    }

    @Test("a new key goes on with its project's bucket, and of different settings the least counts")
    func reload() throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let lanes = PushLanes(time: simulation.clock, logger: simulation.logger, reports: simulation.reports)
        defer { PushLanes.close(lanes.retire(allBut: []), grace: .zero) }
        let old = try lanes.gateway(other(simulation, [:], perMinute: 5_000))
        for _ in 0..<2 { _ = old.admit(candidates(500)) }
        #expect(old.room(on: fcmTarget("d").route).count == 0)
        let renewed = try other(simulation, ["client_id": "another"], perMinute: 5_000)
        let new = try lanes.gateway(renewed)
        PushLanes.close(lanes.retire(allBut: [PushCredentials(fcm: renewed)]), grace: .zero)
        #expect(lanes.count == 1 && new.room(on: fcmTarget("d").route).count == 0)

        let small = try other(simulation, ["client_id": "third"], perMinute: 600)
        _ = try lanes.gateway(small)
        PushLanes.close(lanes.retire(allBut: [PushCredentials(fcm: renewed), PushCredentials(fcm: small)]), grace: .zero)
        #expect((new.figures.rate ?? 0) <= 8)
    }
}
