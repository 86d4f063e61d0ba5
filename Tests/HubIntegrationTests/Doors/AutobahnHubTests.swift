import HubTesting
import Synchronization
import Testing

/// The conversations of `AutobahnCases` that need no echo, at a whole hub's `/app/KEY`.
@Suite struct AutobahnHubTests {
    @Test("every case that ends in a close ends so at a hub, and those about PINGs too")
    func closes() async throws {
        try await Stage.run { stage in
            let port = try await stage.hub().port
            let cases = AutobahnCases.withoutEcho + WireCases.all.filter(\.needsNoEcho)
            let outcomes = await withTaskGroup(of: [(WireCase, WireClient.Outcome?)].self) { group in
                let lanes = 8
                for lane in 0..<lanes {
                    group.addTask(executorPreference: BlockingThreads.shared) {
                        stride(from: lane, to: cases.count, by: lanes).map { index in
                            let client = WireClient(port: port, path: "/app/app-key?protocol=7&client=test&version=1")
                            return (cases[index], client?.hold(cases[index], echoes: false))
                        }
                    }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            for (item, outcome) in outcomes where outcome?.complaints != [] {
                Issue.record("\(item): \(outcome?.complaints.joined(separator: "; ") ?? "no upgrade")")
            }
            let passed = outcomes.filter { $0.1?.complaints == [] }.map(\.0)
            let (autobahn, closes) = (passed.filter { $0.section > 0 }, passed.filter { $0.section > 0 && $0.isAboutClosing })
            print("passed at /app/KEY: \(autobahn.count) of Autobahn's cases, \(closes.count) of them about closing")
            print("passed at /app/KEY: \(passed.count - autobahn.count) others")
            #expect(outcomes.count == cases.count && AutobahnCases.withoutEcho.count == 151)
        }
    }
}
