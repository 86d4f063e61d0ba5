import LoadTesting
import Testing

@Suite("Latencies")
struct LatenciesTests {
    private func recorded(_ microseconds: some Sequence<Int>) -> Latencies {
        var latencies = Latencies()
        for value in microseconds { latencies.record(from: 1000, to: 1000 + UInt64(value) * 1000) }
        return latencies
    }

    @Test("threads' parts joined are the whole")
    func merge() {
        var joined = recorded(1...500)
        joined.add(recorded(501...1000))
        joined.add(Latencies())
        #expect(joined.report(as: "x") == recorded(1...1000).report(as: "x"))
        #expect(joined.count == 1000)
        #expect(joined.percentile(50) == 500)
        #expect(joined.percentile(100) == 1000)
        #expect(joined.maximum == 1000)
    }

    @Test("an end before its beginning counts as 0, and what is beyond the scale as its end")
    func edges() {
        var latencies = Latencies()
        latencies.record(from: 10, to: 9)
        #expect(latencies.maximum == 0)
        latencies.record(from: 0, to: .max)
        #expect(latencies.count == 2)
        #expect(latencies.maximum >= 3_600_000_000)
    }

    @Test("a report rises to the highest, and of nothing is empty")
    func report() {
        let report = recorded([100, 100, 100, 5000]).report(as: "x")
        #expect(report.minimum == 100)
        #expect(report.percentiles.last == .init(percent: 100, microseconds: report.maximum))
        #expect(report.percentiles.map(\.microseconds) == report.percentiles.map(\.microseconds).sorted())
        #expect(Latencies().report(as: "x").percentiles.isEmpty)
    }

    @Test("what was taken is gone")
    func reset() {
        var latencies = recorded(1...10)
        latencies.reset()
        #expect(latencies.count == 0)
        #expect(latencies.percentile(99) == 0)
    }
}
