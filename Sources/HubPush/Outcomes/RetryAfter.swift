/// The `Retry-After` header (RFC 9110, 10.2.3): seconds, or a date.
enum RetryAfter {
    /// Longer waits are cut to this; no notification waits a day.
    static let secondsMax: Int64 = 86_400

    /// Nil if the header is missing or unreadable. A date in the past is no wait.
    /// - Parameter now: milliseconds since 1970.
    static func parse(_ header: String?, now: Int64) -> Duration? {
        guard let header else { return nil }
        if !header.isEmpty, header.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return .seconds(min(secondsMax, Int64(header) ?? secondsMax))
        }
        guard let seconds = secondsSince1970(header) else { return nil }
        return .milliseconds(min(secondsMax * 1000, max(0, seconds * 1000 - now)))
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, the only format that RFC 9110 lets servers send.
    private static func secondsSince1970(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT",
            let day = Int64(parts[1]), let month = months.firstIndex(of: String(parts[2])), let year = Int64(parts[3])
        else { return nil }
        let time = parts[4].split(separator: ":").compactMap { Int64($0) }
        guard time.count == 3, (1...31).contains(day), (1970...9999).contains(year), (0...23).contains(time[0]),
            (0...59).contains(time[1]), (0...60).contains(time[2])
        else { return nil }
        return days(year: year, month: Int64(month + 1), day: day) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Days since 1970 of a Gregorian date. Years begin with March here, so that the leap day comes last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
