internal import HubCore

/// Replays of people who have just come back, and their receipts. Asked when a push leaves.
///
/// Between a push's decision and its departure lie a commit, a lane and libcurl's own queue. Somebody who comes back meanwhile reads the
/// event in a replay. Their push waits for the replay's grace, and does not go once the receipt is there. A plain value; the clock is
/// passed in.
package struct Comebacks: Sendable {
    private struct Key: Hashable {
        let event: String
        let user: ExactText
    }

    private enum Entry {
        /// Sent once more at that time; the first time counts.
        case replayed(Int64)
        /// By all of the participant's devices, or by one that stands for itself.
        case read(Set<String?>)
    }

    /// What a push does when it is about to leave.
    package enum Ruling: Sendable, Equatable {
        case goes
        /// Its person has just come back: looked at again at that time, in milliseconds.
        case waits(until: Int64)
        /// Its person has read the event.
        case stays
    }

    private var entries: [Key: Entry] = [:]
    /// The entries in the order of their coming, at first.
    private var queue: [(key: Key, at: Int64)] = []
    private var queueHead = 0
    /// Whose replays are being read: since when, and how many.
    private var reading: [Person: (since: Int64, count: Int)] = [:]

    /// How long what is known of somebody's event is remembered, in milliseconds: longer than a push waits in a lane.
    package static let rememberedMilliseconds: Int64 = 60_000
    /// The most entries, at about 200 bytes each; beyond it the oldest are forgotten, and their pushes go.
    package static let countMax = 200_000

    package init() {}

    /// For tests: entries that are remembered.
    package var count: Int { entries.count }

    /// Somebody has come to a channel that replays what they missed.
    /// - Parameter now: milliseconds on a clock that only grows, here and below.
    package mutating func came(app: String, user: String, now: Int64) {
        reading[Person(app: app, user: user), default: (now, 0)].count += 1
    }

    /// What they missed was read.
    /// - Parameter events: those that they are sent once more.
    package mutating func replays(_ events: some Sequence<String>, app: String, user: String, now: Int64) {
        let person = Person(app: app, user: user)
        if let known = reading[person] { reading[person] = known.count > 1 ? (known.since, known.count - 1) : nil }
        for event in events {
            let key = Key(event: event, user: person.user)
            if entries[key] == nil { enter(.replayed(now), key, now: now) }
        }
    }

    /// They have confirmed an event.
    /// - Parameter device: the one for which that counts alone; nil: all of theirs.
    package mutating func confirmed(_ event: String, user: String, device: String?, now: Int64) {
        let key = Key(event: event, user: ExactText(user))
        if case .read(let devices) = entries[key] {
            entries[key] = .read(devices.union([device]))
        } else {
            enter(.read([device]), key, now: now)
        }
    }

    /// Whether a push goes that is about to leave.
    package func ruling(_ delivery: PushRecord, now: Int64) -> Ruling {
        if entries.isEmpty, reading.isEmpty { return .goes }
        guard delivery.purpose == .notification, delivery.address == nil, let policy = delivery.message?.policy, !policy.pushesAnyway else {
            return .goes
        }
        var since = reading[Person(app: delivery.app, user: delivery.user)]?.since
        switch entries[Key(event: delivery.event, user: ExactText(delivery.user))] {
        case .read(let devices): if devices.contains(nil) || devices.contains(delivery.device) { return .stays }
        case .replayed(let at): since = at
        case nil: break
        }
        guard let since, since + Escalation.replayGrace(policy) > now else { return .goes }
        return .waits(until: since + Escalation.replayGrace(policy))
    }

    private mutating func enter(_ entry: Entry, _ key: Key, now: Int64) {
        let isNew = entries.updateValue(entry, forKey: key) == nil
        if isNew { queue.append((key, now)) }
        while queueHead < queue.count, queue[queueHead].at <= now - Self.rememberedMilliseconds || entries.count > Self.countMax {
            entries[queue[queueHead].key] = nil
            queueHead += 1
        }
        if queueHead > 1024, queueHead * 2 > queue.count {
            queue.removeFirst(queueHead)
            queueHead = 0
        }
    }
}
