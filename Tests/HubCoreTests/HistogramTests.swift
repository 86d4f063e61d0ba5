import HubCore
import Testing

@Suite("Histogram")
struct HistogramTests {
    @Test("a duration falls into the first bucket that holds it, and what is longer than all into the last")
    func buckets() {
        #expect(Histogram.bounds == Histogram.bounds.sorted() && Set(Histogram.bounds).count == Histogram.bounds.count)
        for (index, bound) in Histogram.bounds.enumerated() {
            var histogram = Histogram()
            histogram.note(nanoseconds: bound)
            histogram.note(nanoseconds: bound + 1)
            #expect(histogram.counts[index] == 1 && histogram.counts[index + 1] == 1)
            #expect(histogram.sum == 2 * bound + 1 && histogram.count == 2)
        }
        var none = Histogram()
        none.note(nanoseconds: 0)
        #expect(none.counts[0] == 1 && none.sum == 0)
    }

    @Test("what two threads have noted adds up")
    func adds() {
        var (first, second) = (Histogram(), Histogram())
        for value in [50_000, 5_000_000, 20_000_000_000] as [UInt64] { first.note(nanoseconds: value) }
        for value in [60_000, 70_000] as [UInt64] { second.note(nanoseconds: value) }
        first.add(second)
        #expect(first.counts[0] == 3 && first.counts.last == 1 && first.count == 5 && first.sum == 20_005_180_000)
    }
}
