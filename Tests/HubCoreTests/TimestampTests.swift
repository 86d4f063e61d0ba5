import Foundation
import HubCore
import Testing

@Suite("Timestamp")
struct TimestampTests {
    @Test(
        "writes known moments",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (86_399_999, "1970-01-01T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"), (1_767_920_400_250, "2026-01-09T01:00:00.250Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func known(milliseconds: Int64, text: String) {
        #expect(Timestamp.iso8601(milliseconds: milliseconds) == text)
    }

    @Test("agrees with Foundation on every day from 1970 to 2110")
    func everyDay() {
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        // Steps of 25 hours pass every date, and every hour of the day.
        for hours in stride(from: Int64(0), through: 140 * 366 * 24, by: 25) {
            let milliseconds = hours * 3_600_000 + 12_345
            let expected = formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
            guard Timestamp.iso8601(milliseconds: milliseconds) == expected else {
                Issue.record("\(milliseconds): \(Timestamp.iso8601(milliseconds: milliseconds)), not \(expected)")
                return
            }
        }
    }
}
