import GatewaySimulators
import HubDelivery
import HubTesting
import Testing

@testable import HubPush

/// Counters of lanes, for metrics.
@Suite("Lane figures")
struct LaneCountersTests {
    @Test("a lane tells its state, its rate and its connections, and an outage and a stop apart")
    func states() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(simulation.fcm.figures.state == .open && simulation.fcm.figures.provider == .fcm && simulation.fcm.figures.inFlight == 0)
        #expect((simulation.fcm.figures.rate ?? 0) > 0, "FCM has a quota")
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("good")).name == "accepted")
        #expect(simulation.fcm.figures.connectionsOpened == 1 && simulation.fcm.figures.answeredOverHTTP1 == 0)

        for number in 0..<20 { try simulation.gateways.setFault(.init(status: 503, reason: "UNAVAILABLE"), token: "d\(number)") }
        _ = await simulation.fcm.outcomes((0..<20).map { (simulation.message(), fcmTarget("d\($0)")) })
        #expect(simulation.fcm.figures.state == .outage)

        let lane = simulation.apns.side(.sandbox).lane
        #expect(lane.figures.rate == nil, "APNs has none")
        try simulation.gateways.setFault(.init(status: 403, reason: "InvalidProviderToken"), token: apnsTarget(1).token)
        _ = await simulation.apns.outcome(simulation.message(), apnsTarget(1))
        #expect(lane.figures.state == .stopped)
        #expect(simulation.apns.side(.production).lane.figures.state == .open)
    }

    @Test("no lane's name holds a secret")
    func names() throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for name in [simulation.fcm.figures.name, simulation.apns.side(.production).lane.title] {
            #expect(!name.contains("BEGIN") && !name.contains("@") && name.utf8.count < 100, "\(name)")
        }
    }
}
