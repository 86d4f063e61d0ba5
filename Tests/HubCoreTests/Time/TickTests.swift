import Testing

@testable import HubCore

@Suite("Ticks", .serialized)
struct TickTests {
    private let began = ContinuousClock.now

    private func next(_ period: Duration, after passed: Duration) -> Duration {
        Tick.next(period, at: began + passed, since: began) - began
    }

    @Test("a task waits for the next period, also where it was late")
    func next() {
        let quarter = Duration.milliseconds(250)
        #expect(next(quarter, after: .zero) == quarter)
        #expect(next(quarter, after: .milliseconds(249)) == quarter)
        #expect(next(quarter, after: quarter) == quarter * 2)
        #expect(next(quarter, after: .milliseconds(870)) == .seconds(1))
    }

    @Test("periods that divide another one begin with it")
    func together() {
        for period in [100, 250, 500].map({ Duration.milliseconds($0) }) {
            #expect(next(period, after: .milliseconds(59_990)) == .seconds(60))
        }
    }

    @Test("a short wait ends before a long one that began first", .timeLimit(.minutes(1)))
    func earlier() async throws {
        let long = Task { try await Tick.wait(.seconds(3_600)) }
        try await Task.sleep(for: .milliseconds(50))
        for _ in 0..<5 { try await Tick.wait(.milliseconds(10)) }
        long.cancel()
    }

    @Test("many tasks wait side by side", .timeLimit(.minutes(1)))
    func many() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 1...100 {
                group.addTask { for _ in 0..<3 { try await Tick.wait(.milliseconds(task)) } }
            }
            try await group.waitForAll()
        }
    }

    @Test("a cancelled wait ends at once")
    func cancelled() async {
        let wait = Task { try await Tick.wait(.seconds(3_600)) }
        wait.cancel()
        await #expect(throws: CancellationError.self) { try await wait.value }
    }
}
