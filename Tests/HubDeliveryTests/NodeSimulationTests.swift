import DeliverySimulation
import HubTesting
import Testing

/// A slice of what `make simulate NODES=3` runs.
@Suite("Simulation of several nodes", .serialized)
struct NodeSimulationTests {
    private static func settings(_ seed: UInt64, pairs: Int) -> NodeSettings {
        var settings = NodeSettings(seed: seed, pairs: pairs)
        settings.faultInterval = 12_000
        return settings
    }

    @Test("nobody is missed, and nobody is told twice without a reason")
    func slice() async throws {
        let pairs = Extent.isShort ? 5000 : 20_000
        let report = try await onOwnThread { NodeSimulation(Self.settings(2026, pairs: pairs)).run() }
        #expect(report.isClean, "\(report)")
        #expect(!report.changes.isEmpty && report.seenOnSocket > pairs / 20 && report.pushed > pairs / 20)
    }

    @Test("every broken rule between nodes is caught", arguments: NodeRule.allCases)
    func broken(rule: NodeRule) async throws {
        let isCaught = try await onOwnThread {
            var settings = NodeSettings(seed: 1, pairs: 40_000)
            settings.broken = rule
            return !NodeSimulation(settings).run(stopsAtFirst: true).isClean
        }
        #expect(isCaught)
    }
}
