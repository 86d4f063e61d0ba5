import DeliverySimulation
import HubTesting
import Testing

/// A slice of what `make simulate` runs.
@Suite("Simulation")
struct SimulationTests {
    private static func settings(_ seed: UInt64, pairs: Int) -> SimulationSettings {
        var settings = SimulationSettings(seed: seed, pairs: pairs)
        (settings.channels, settings.participantsPerChannel) = (10, 20)
        (settings.crashInterval, settings.changeInterval) = (20_000, 500)
        return settings
    }

    @Test("nobody is missed, and nobody is told twice without a reason")
    func slice() async throws {
        let seed: UInt64 = 2026
        let pairs = Extent.isShort ? 5000 : 20_000
        let report = try await onOwnThread { Simulation(Self.settings(seed, pairs: pairs)).run() }
        #expect(report.isClean, "seed \(seed): \(report)")
        // Events for one role, and those that a session's end refused, have fewer recipients.
        #expect(report.pairs >= pairs / 2 && report.crashes > 0 && report.seenOnSocket > pairs / 20 && report.pushed > pairs / 20)
    }

    @Test("the same seed gives the same run")
    func replayable() async throws {
        let reports = try await onOwnThread {
            [Simulation(Self.settings(7, pairs: 2000)).run(), Simulation(Self.settings(7, pairs: 2000)).run()]
        }
        let (first, second) = (reports[0], reports[1])
        #expect(first.description == second.description)
    }

    @Test("every broken rule is caught", .serialized, arguments: BrokenRule.allCases)
    func broken(rule: BrokenRule) async throws {
        // One run may miss a rule whose conditions are rare in it; the next runs do not. The first seed finds each of them early today.
        let first: UInt64 = rule == .retryWithdrawn ? 23 : rule == .networkProcessProves ? 46 : 26
        let isCaught = try await onOwnThread {
            (first...first + 8).contains { seed in
                var settings = Self.settings(seed, pairs: 20_000)
                if !rule.concernsChanges { settings.changeInterval = 0 }
                // Rare in a small world: pages without any other device, and receipts during an attempt that is repeated.
                if [.networkProcessProves, .retryWithdrawn].contains(rule) {
                    (settings.pairs, settings.participantsPerChannel) = (100_000, 50)
                }
                settings.broken = rule
                return !Simulation(settings).run(stopsAtFirst: true).isClean
            }
        }
        #expect(isCaught)
    }
}
