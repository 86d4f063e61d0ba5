internal import Foundation

/// The daily window in which a definition's visible pushes wait.
package struct QuietHours: Sendable, Equatable {
    /// Begin in minutes after midnight, 0 to 1439, on the clock of `timezone`.
    package var from: Int
    /// End in the same unit, exclusive; before `from` if the window spans midnight.
    package var to: Int
    /// A name of the time zone database, for recipients whose devices name none.
    package var timezone: String

    private static let dayMinutes: Int64 = 24 * 60

    /// A window on the clock of `timezone`.
    package init(from: Int, to: Int, timezone: String) {
        self.from = from
        self.to = to
        self.timezone = timezone
    }

    /// Whether this machine's time zone database has the name.
    package static func isKnown(timezone: String) -> Bool { TimeZone(identifier: timezone) != nil }

    /// End of the window that contains a moment; nil if none does. Both in milliseconds since 1970.
    /// - Parameter timezone: time zone of the recipient's device, which wins; an unknown name counts as none.
    package func end(at moment: Int64, timezone: String? = nil) -> Int64? {
        guard let zone = timezone.flatMap(TimeZone.init(identifier:)) ?? TimeZone(identifier: self.timezone) else { return nil }
        let localMinute = (moment + offset(zone, at: moment)).dividedDown(by: 60_000)
        let minute = localMinute - localMinute.dividedDown(by: Self.dayMinutes) * Self.dayMinutes
        let isWithin = from < to ? minute >= from && minute < to : minute >= from || minute < to
        guard isWithin else { return nil }
        let left = (Int64(to) - minute + Self.dayMinutes) % Self.dayMinutes
        let localEnd = (localMinute + left) * 60_000
        // The clocks may change within the window, so the end is computed with the offset valid then.
        let guess = localEnd - offset(zone, at: moment)
        return localEnd - offset(zone, at: guess)
    }

    private func offset(_ zone: TimeZone, at moment: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(moment) / 1000))) * 1000
    }

    /// `22:00` as minutes after midnight.
    static func minutes(_ text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 && $0.utf8.allSatisfy { (48...57).contains($0) } }),
            let hours = Int(parts[0]), let minutes = Int(parts[1]), hours < 24, minutes < 60
        else { return nil }
        return hours * 60 + minutes
    }
}

extension Int64 {
    fileprivate func dividedDown(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
