import LoadTesting
import Testing

@Suite("Slope")
struct SlopeTests {
    /// The slope of values at 0, 1, 2 and so on.
    private func slope(_ values: [Double]) throws -> Slope {
        try #require(Slope(values.enumerated().map { (place: Double($0.offset), value: $0.element) }))
    }

    @Test("of a straight line is exact")
    func line() throws {
        let slope = try slope((0..<100).map { 7 + 3 * Double($0) })
        #expect(abs(slope.perUnit - 3) < 1e-9)
        #expect(slope.standardError < 1e-9)
    }

    @Test("of noise is within its own error")
    func noise() throws {
        let slope = try slope((0..<1000).map { $0 % 2 == 0 ? 10 : -10 })
        #expect(abs(slope.perUnit) < 3 * slope.standardError)
        #expect(slope.standardError > 0)
    }

    @Test("does not exist for too few points, or all at one place")
    func none() {
        #expect(Slope([(0, 1), (1, 2)]) == nil)
        #expect(Slope([(1, 1), (1, 2), (1, 3)]) == nil)
    }
}
