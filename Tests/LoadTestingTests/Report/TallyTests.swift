import Testing

@testable import LoadTesting

@Suite("Tally and Verdict")
struct TallyTests {
    private func mark(_ sequence: UInt32, stream: Int = 0, due: UInt64 = 10) -> EventMark {
        EventMark(kind: 0, stream: stream, due: due, sequence: sequence)
    }

    /// Failures of a run in which one connection heard these of two sequences of five.
    private func failures(_ arrivals: [(UInt32, Int)], closed: [Int: UInt64] = [:]) -> [String] {
        var tally = Tally(kinds: [MeasuredKind("event", streams: 2)], slots: 4)
        defer { tally.free() }
        tally.begin(3, hearsAll: true)
        for (sequence, stream) in arrivals { tally.take(mark(sequence, stream: stream), slot: 3, now: 20) }
        let missing = tally.missing(3, kind: 0, ends: [5, 5], firstStream: 0)
        var report = LoadReport(scenario: "x", target: "x", dialect: "x", started: "", seconds: 1)
        var links = WorkerCounts()
        links.closedByServer = closed
        return Verdict.judge(&report, kinds: tally.counts, numbered: [0], missing: missing, links: links)
    }

    private let all: [(UInt32, Int)] = (0..<5).flatMap { [($0, 0), ($0, 1)] }

    @Test("a complete run has no failures")
    func clean() {
        #expect(failures(all).isEmpty)
    }

    @Test("an event that is lost anywhere fails the run, also the last one", arguments: 0..<10)
    func lost(place: Int) {
        var arrivals = all
        arrivals.remove(at: place)
        #expect(failures(arrivals) == ["1 EVENTS WERE LOST."])
    }

    @Test("an event that comes twice, or late, or to the wrong one, fails the run")
    func others() {
        #expect(failures(all + [(4, 1)]) == ["1 events arrived twice."])
        #expect(failures([(1, 0), (0, 0)] + all.filter { $0.1 == 1 || $0.0 > 1 }) == ["1 events arrived out of their publisher's order."])
        #expect(failures(all + [(0, 2)]).count == 1)
    }

    @Test("what a slow consumer missed is its own, what others missed is not")
    func slow() {
        #expect(failures(Array(all.dropLast()), closed: [4100: 1]).isEmpty)
        #expect(failures(Array(all.dropLast()), closed: [1006: 1]).count == 2)
    }

    @Test("only what was due in the measured time is in the latencies, all of it in the counts")
    func measured() {
        var tally = Tally(kinds: [MeasuredKind("event", streams: 1), MeasuredKind("other")], slots: 1)
        defer { tally.free() }
        tally.begin(0, hearsAll: false)
        tally.measured = 100..<200
        for (index, due) in ([99, 100, 199, 200] as [UInt64]).enumerated() {
            tally.take(mark(UInt32(index + 7), due: due), slot: 0, now: 1_000_000)
        }
        tally.record(1, from: 150, to: 160)
        #expect(tally.counts[0].received == 4)
        #expect(tally.counts[0].measured == 2)
        #expect(tally.counts[0].lost == 0)
        #expect(tally.takeLatencies().map(\.count) == [2, 1])
        #expect(tally.takeLatencies().map(\.count) == [0, 0])
    }

    @Test("a table that grows keeps what it knows")
    func grow() {
        var tally = Tally(kinds: [MeasuredKind("event", streams: 3)], slots: 2)
        defer { tally.free() }
        tally.begin(1, hearsAll: true)
        tally.take(mark(0, stream: 2), slot: 1, now: 20)
        tally.grow(slots: 64)
        tally.take(mark(1, stream: 2), slot: 1, now: 20)
        tally.begin(63, hearsAll: true)
        tally.take(mark(1, stream: 2), slot: 63, now: 20)
        #expect(tally.counts[0].lost == 1)
        #expect(tally.missing(1, kind: 0, ends: [0, 0, 2], firstStream: 0) == 0)
    }
}
