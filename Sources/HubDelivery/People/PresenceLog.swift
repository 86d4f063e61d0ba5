internal import HubCore

/// Recent changes of people's connections, in memory alone: what a person's timeline shows beside the stored trail.
///
/// A plain value, owned by one thread. It is bounded per person, in people and in age; whatever exceeds a bound is forgotten, the oldest
/// first. A restart forgets everything.
package struct PresenceLog: Sendable {
    private struct Seat: Hashable {
        let app: String
        let channel: String
        let user: ExactText
    }

    /// Changes that are kept of one person in one channel.
    package static let changesMax = 16
    /// People that are kept, once for each channel. One takes about 1 KiB at most.
    package static let peopleMax = 20_000
    /// Milliseconds after a person's last change until it may be forgotten.
    package static let ageMax: Int64 = 3_600_000

    private var seats: RecentTable<Seat, [PresenceChange]>

    init(peopleMax: Int = PresenceLog.peopleMax) { seats = RecentTable(countMax: peopleMax, ageMax: Self.ageMax) }

    /// People that are kept, once for each channel.
    package var count: Int { seats.count }

    /// - Parameter now: milliseconds on the monotonic clock.
    mutating func note(_ change: PresenceChange, app: String, channel: String, user: String, now: Int64) {
        let seat = Seat(app: app, channel: channel, user: ExactText(user))
        var changes = seats[seat] ?? []
        if changes.count >= Self.changesMax { changes.removeFirst(changes.count - Self.changesMax + 1) }
        changes.append(change)
        seats.set(changes, for: seat, now: now)
    }

    /// A person's changes in a channel, the oldest first.
    func changes(app: String, channel: String, user: String) -> [PresenceChange] {
        seats[Seat(app: app, channel: channel, user: ExactText(user))] ?? []
    }

    /// Forgets all other channels. Costs O(n) in all people.
    mutating func keep(_ isKept: (_ app: String, _ channel: String) -> Bool) {
        for seat in seats.keys where !isKept(seat.app, seat.channel) { seats.remove(seat) }
    }
}
