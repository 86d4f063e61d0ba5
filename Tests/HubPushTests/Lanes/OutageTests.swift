import GatewaySimulators
import HubDelivery
import HubTesting
import Testing

@testable import HubPush

/// Gateways that stop answering, and come back.
@Suite("Outages")
struct OutageTests {
    @Test("FCM answers 503: the lane waits with an alarm, tries one push after the hold, and ramps up when it is answered")
    func fcm() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let candidates = (0..<100).map { PushCandidate(target: fcmTarget("d\($0)"), isUrgent: false) }
        #expect(simulation.fcm.admit(candidates).allSatisfy { $0 == .go })
        for number in 0..<20 { try simulation.gateways.setFault(.init(status: 503, reason: "UNAVAILABLE"), token: "d\(number)") }
        let outcomes = await simulation.fcm.outcomes((0..<20).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(outcomes.allSatisfy { $0.name == "retry" })
        #expect(simulation.alarms == [.fcmOutage] && simulation.alarmDetails.contains("UNAVAILABLE"))
        #expect(simulation.fcm.room(on: fcmTarget("d").route) == PushRoom(count: 0, urgent: 0, again: .seconds(5)))
        #expect(simulation.fcm.admit(candidates).allSatisfy { $0 == .wait(again: .seconds(5)) })

        simulation.clock.advance(seconds: 5)
        #expect(simulation.fcm.admit(candidates).count { $0 == .go } == 1)
        simulation.gateways.removeAllFaults()
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("d0")).name == "accepted")
        let room = simulation.fcm.room(on: fcmTarget("d").route)
        #expect(room.count <= 1 && room.urgent <= 1)
        simulation.clock.advance(seconds: 61)
        _ = simulation.fcm.room(on: fcmTarget("d").route)
        simulation.clock.advance(seconds: 1)
        // The refusals have narrowed the client's window too, by how much depends on how they came together.
        #expect(simulation.fcm.room(on: fcmTarget("d").route).count > 10)
    }

    @Test("a token endpoint that is down is an outage of the lane")
    func tokenEndpoint() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        try simulation.gateways.setFault(.init(status: 500, reason: "x"), token: "oauth")
        _ = await simulation.fcm.outcomes((0..<20).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(simulation.alarms == [.fcmOutage])
    }

    @Test("an outage of one APNs environment leaves the other one open")
    func apns() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for number in 0..<12 {
            try simulation.gateways.setFault(.init(status: 503, reason: "ServiceUnavailable"), token: apnsTarget(number).token)
        }
        for number in 0..<12 { _ = await simulation.apns.outcome(simulation.message(), apnsTarget(number)) }
        #expect(simulation.alarms == [.apnsOutage])
        #expect(simulation.apns.room(on: apnsTarget().route).count == 0)
        #expect(simulation.apns.room(on: apnsTarget(environment: .production).route).count > 0)
        let both = [apnsTarget(50), apnsTarget(50, environment: .production)].map { PushCandidate(target: $0, isUrgent: true) }
        let router = PushRouter(apns: simulation.apns, fcm: nil, logger: simulation.logger)
        #expect(router.admit(both) == [.wait(again: .seconds(5)), .go])
    }

    @Test("bad tokens narrow the share of unproven ones, and not the lane")
    func quarantine() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let unproven = apnsTarget().route
        let proven = apnsTarget(isProven: true).route
        // Warm, so that the client's window is open.
        #expect(await simulation.apns.outcome(simulation.message(), apnsTarget(1_000, isProven: true)).name == "accepted")
        let before = (simulation.apns.room(on: unproven).count, simulation.apns.room(on: proven).count)
        #expect(before.0 == Quarantine.Share.apns.first && before.1 == 200 * LaneAdmission.handedFactor)
        for number in 0..<3 {
            try simulation.gateways.setFault(.init(status: 400, reason: "BadDeviceToken"), token: apnsTarget(number).token)
            _ = await simulation.apns.outcome(simulation.message(), apnsTarget(number))
        }
        #expect(simulation.apns.room(on: unproven).count <= Quarantine.Share.apns.first / 8 + 1)
        // A slow machine may have opened a new connection meanwhile, whose window is smaller.
        #expect(simulation.apns.room(on: proven).count > simulation.apns.room(on: unproven).count)
    }

    @Test("a router asks each provider about its own, and lets go what has no credentials")
    func router() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let router = PushRouter(apns: nil, fcm: simulation.fcm, logger: simulation.logger)
        for _ in 0..<20 { #expect(router.admit([PushCandidate(target: fcmTarget("d"), isUrgent: false)]) == [.go]) }
        let mixed = [fcmTarget("d"), apnsTarget(1), fcmTarget("other")].map { PushCandidate(target: $0, isUrgent: false) }
        let admissions = router.admit(mixed)
        #expect(admissions[1] == .go && admissions[2] == .go)
        if case .deviceWait = admissions[0] {} else { Issue.record("\(admissions[0])") }
        #expect(router.room(on: apnsTarget().route) == .unlimited)
    }
}
