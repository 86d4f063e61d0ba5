extension Timestamp {
    /// Parses RFC 3339 without leap seconds: `2026-01-09T01:00:00Z`, or `+02:00` instead of the `Z`. The seconds may
    /// have any number of decimals, of which three count.
    /// - Returns: milliseconds since 1970, for the years 1970 to 9999; nil for every other text.
    package static func milliseconds(iso8601 text: String) -> Int64? {
        var rest = Substring(text).utf8
        guard let year = number(&rest, digits: 4), take(&rest, "-"), let month = number(&rest, digits: 2), take(&rest, "-"),
            let day = number(&rest, digits: 2), take(&rest, "T") || take(&rest, "t"),
            let hour = number(&rest, digits: 2), take(&rest, ":"), let minute = number(&rest, digits: 2), take(&rest, ":"),
            let second = number(&rest, digits: 2)
        else { return nil }
        guard (1...12).contains(month), day >= 1, day <= dayCount(year: year, month: month), hour < 24, minute < 60, second < 60 else {
            return nil
        }
        guard let fraction = fraction(&rest), let offsetMinutes = offset(&rest), rest.isEmpty else { return nil }
        let days = daysSince1970(year: year, month: month, day: day)
        let seconds = (days * 24 + hour) * 3600 + (minute - offsetMinutes) * 60 + second
        let milliseconds = seconds * 1000 + fraction
        assert(
            milliseconds < 0 || civilDate(daysSince1970: days) == (year, month, day),
            "day \(days) since 1970 is not \(year)-\(month)-\(day)")
        return milliseconds >= 0 ? milliseconds : nil
    }

    /// The inverse of `civilDate`: years counted from March, eras of 400 years.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month > 2 ? year : year - 1
        let era = marchYear / 400
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func dayCount(year: Int64, month: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The fraction of a second in milliseconds; 0 without a decimal point, nil when no digit follows the point.
    private static func fraction(_ rest: inout Substring.UTF8View) -> Int64? {
        guard take(&rest, ".") else { return 0 }
        var (milliseconds, weight, count): (Int64, Int64, Int) = (0, 100, 0)
        while let digit = number(&rest, digits: 1) {
            milliseconds += digit * weight
            weight /= 10
            count += 1
        }
        return count > 0 ? milliseconds : nil
    }

    /// Minutes east of Greenwich.
    private static func offset(_ rest: inout Substring.UTF8View) -> Int64? {
        if take(&rest, "Z") || take(&rest, "z") { return 0 }
        let isEast = take(&rest, "+")
        guard isEast || take(&rest, "-"), let hours = number(&rest, digits: 2), take(&rest, ":"), let minutes = number(&rest, digits: 2),
            hours < 24, minutes < 60
        else { return nil }
        return (isEast ? 1 : -1) * (hours * 60 + minutes)
    }

    private static func take(_ rest: inout Substring.UTF8View, _ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private static func number(_ rest: inout Substring.UTF8View, digits: Int) -> Int64? {
        let text = rest.prefix(digits)
        guard text.count == digits, text.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        rest.removeFirst(digits)
        return text.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }
}
