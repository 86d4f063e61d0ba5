import DeliverySimulation
import HubTesting
import Testing

/// A slice of what `make simulate NODES=3` runs, which also looks for the broken rules.
@Suite("Simulation of several nodes")
struct NodeSimulationTests {
    @Test("nobody is missed, and nobody is told twice without a reason")
    func slice() async throws {
        let pairs = Extent.isShort ? 5000 : 20_000
        let report = try await onOwnThread { NodeSimulation(NodeSettings(seed: 1, pairs: pairs)).run() }
        #expect(report.isClean, "\(report)")
        #expect(!report.changes.isEmpty && report.seenOnSocket > pairs / 20 && report.pushed > pairs / 20)
    }

    @Test("a new owner that asks nobody who is present is caught")
    func broken() async throws {
        let isCaught = try await onOwnThread {
            var settings = NodeSettings(seed: 1, pairs: 40_000)
            settings.broken = .noAttend
            return !NodeSimulation(settings).run(stopsAtFirst: true).isClean
        }
        #expect(isCaught)
    }
}
