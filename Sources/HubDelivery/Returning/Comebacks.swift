internal import HubCore
internal import HubDefinitions

/// Replays to participants who have just come back, and their receipts, for the last check before a push leaves.
///
/// Between a push's decision and its departure lie a commit, a lane and libcurl's own queue. A participant who comes back in this time
/// reads the event in a replay. The push waits for the replay's grace, and is dropped once the receipt has come.
///
/// A plain value without a clock of its own.
package struct Comebacks: Sendable {
    private struct Key: Hashable {
        let event: String
        let user: ExactText
    }

    private enum Entry {
        /// Time of the first replay.
        case replayed(Int64)
        /// Devices that confirmed, where each stands for itself; nil stands for all of the participant's devices.
        case read(Set<String?>)
    }

    /// Result of the last check of a push.
    package enum Ruling: Sendable, Equatable {
        case goes
        /// The recipient has just come back: the push is checked again at that time, in milliseconds.
        case waits(until: Int64)
        /// The recipient has read the event.
        case stays
    }

    /// Delivery's word on a person's return or receipt.
    package enum Word: Sendable, Equatable {
        case came(app: String, user: String)
        /// The events that are sent once more.
        case replays([String], app: String, user: String)
        /// The user's app has come to the screen, and gets these events by its socket.
        case reads([String], user: String)
        /// `device`: the only one that the receipt counts for; nil: all of the user's.
        case confirmed(String, user: String, device: String?)
    }

    private var entries: [Key: Entry] = [:]
    /// Entries in the order in which they were first made.
    private var queue: [(key: Key, at: Int64)] = []
    private var queueHead = 0
    /// Participants whose missed events are being read: since when, and in how many reads.
    private var reading: [Person: (since: Int64, count: Int)] = [:]

    /// Milliseconds for which an entry is kept: longer than a push waits in a lane.
    package static let rememberedMilliseconds: Int64 = 60_000
    /// Most entries, at about 200 bytes each. If exceeded, the oldest are dropped and their pushes go.
    package static let countMax = 200_000

    /// Without any replay or receipt.
    package init() {}

    /// For tests: number of entries.
    package var count: Int { entries.count }

    /// Takes delivery's word.
    /// - Parameter now: milliseconds on a clock that only grows, here and below.
    package mutating func note(_ word: Word, now: Int64) {
        switch word {
        case .came(let app, let user): came(app: app, user: user, now: now)
        case .replays(let events, let app, let user): replays(events, app: app, user: user, now: now)
        case .reads(let events, let user): reads(events, user: ExactText(user), now: now)
        case .confirmed(let event, let user, let device): confirmed(event, user: user, device: device, now: now)
        }
    }

    /// Somebody has come to a channel that replays what they missed.
    package mutating func came(app: String, user: String, now: Int64) {
        reading[Person(app: app, user: user), default: (now, 0)].count += 1
    }

    /// Notes that a participant's missed events have been read from the store.
    /// - Parameter events: ids of the events that are sent once more.
    package mutating func replays(_ events: some Sequence<String>, app: String, user: String, now: Int64) {
        let person = Person(app: app, user: user)
        if let known = reading[person] { reading[person] = known.count > 1 ? (known.since, known.count - 1) : nil }
        reads(events, user: person.user, now: now)
    }

    private mutating func reads(_ events: some Sequence<String>, user: ExactText, now: Int64) {
        for event in events {
            let key = Key(event: event, user: user)
            if entries[key] == nil { enter(.replayed(now), key, now: now) }
        }
    }

    /// Notes a receipt of an event.
    /// - Parameter device: the only device for which the receipt counts; nil for all of the participant's devices.
    package mutating func confirmed(_ event: String, user: String, device: String?, now: Int64) {
        let key = Key(event: event, user: ExactText(user))
        if case .read(let devices) = entries[key] {
            entries[key] = .read(devices.union([device]))
        } else {
            enter(.read([device]), key, now: now)
        }
    }

    /// Checks a push that is about to leave, in O(1).
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
