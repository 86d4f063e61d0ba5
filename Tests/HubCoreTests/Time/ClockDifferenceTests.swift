import HubCore
import Testing

@Suite("Clocks of two machines")
struct ClockDifferenceTests {
    @Test("are compared in the middle of the question")
    func middle() {
        #expect(ClockDifference.ahead(before: 1_000, after: 3_000, server: 2_000) == 0)
        #expect(ClockDifference.ahead(before: 1_000, after: 1_000, server: 61_000) == -60_000)
    }

    @Test("are warned of from a minute on, in both directions")
    func warned() {
        #expect(ClockDifference.warning(ahead: 59_999, of: "Redis") == nil && ClockDifference.warning(ahead: -59_999, of: "Redis") == nil)
        let warning = ClockDifference.warning(ahead: 185_000, of: "Redis")
        #expect(warning?.hasPrefix("this machine's clock is 3 min 5 s ahead of that of Redis") == true)
        #expect(ClockDifference.warning(ahead: -60_000, of: "PostgreSQL")?.contains("1 min 0 s behind that of PostgreSQL") == true)
    }
}
