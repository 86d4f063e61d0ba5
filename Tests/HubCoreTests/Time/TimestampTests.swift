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

    @Test(
        "reads moments in any time zone",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-01-09T01:00:00.250Z", 1_767_920_400_250),
            ("2026-01-09T03:30:00.25+02:30", 1_767_920_400_250),
            ("2026-01-08t20:00:00.2509999-05:00", 1_767_920_400_250), ("2000-02-29T23:59:59.999z", 951_868_799_999),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999), ("1970-01-01T01:00:00+01:00", 0),
        ] as [(String, Int64)])
    func reads(text: String, milliseconds: Int64) {
        #expect(Timestamp.milliseconds(iso8601: text) == milliseconds)
    }

    @Test("reads what it writes, on every day from 1970 to 2110")
    func roundTrip() {
        for hours in stride(from: Int64(0), through: 140 * 366 * 24, by: 25) {
            let milliseconds = hours * 3_600_000 + 12_345
            guard Timestamp.milliseconds(iso8601: Timestamp.iso8601(milliseconds: milliseconds)) == milliseconds else {
                Issue.record("\(milliseconds)")
                return
            }
        }
    }

    @Test(
        "reads nothing else",
        arguments: [
            "", "2026", "2026-01-09", "2026-01-09T01:00:00", "2026-01-09T01:00Z", "2026-01-09 01:00:00Z", "2026-1-9T01:00:00Z",
            "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
            "2026-01-00T00:00:00Z", "2026-01-09T24:00:00Z", "2026-01-09T00:60:00Z", "2026-01-09T00:00:60Z", "2026-01-09T00:00:00.Z",
            "2026-01-09T00:00:00Zx", "2026-01-09T00:00:00+0100", "2026-01-09T00:00:00+24:00", "2026-01-09T00:00:00+01:60",
            "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00+00:01", "-2026-01-09T00:00:00Z", "٢٠٢٦-01-09T00:00:00Z",
            "2026-01-09T00:00:00.1x", "2026-01-09T00:00:00+",
        ])
    func refuses(text: String) {
        #expect(Timestamp.milliseconds(iso8601: text) == nil)
    }
}
