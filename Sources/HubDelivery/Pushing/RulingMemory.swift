internal import HubCore

/// Facts that rulings on pushes need again: channels of events, and verdicts. Bounded: the oldest are dropped, as is everything older than
/// a day.
package struct RulingMemory: Sendable {
    private static let ageMax: Int64 = 86_400_000
    private var channels: RecentTable<String, String>
    private var verdicts: RecentTable<Int, PushBudget.Verdict>

    /// - Parameters:
    ///   - eventsMax: most events whose channel is remembered, at about 200 bytes each.
    ///   - verdictsMax: most names whose verdict is remembered, at about 100 bytes each.
    package init(eventsMax: Int, verdictsMax: Int) {
        channels = RecentTable(countMax: eventsMax, ageMax: Self.ageMax)
        verdicts = RecentTable(countMax: verdictsMax, ageMax: Self.ageMax)
    }

    /// The event's channel; nil if not known, empty if there is no such event.
    package func channel(ofEvent event: String) -> String? { channels[event] }

    /// Remembers an event's channel.
    /// - Parameter now: milliseconds since 1970, as all times here.
    package mutating func learn(event: String, channel: String, now: Int64) { channels.set(channel, for: event, now: now) }

    /// The remembered verdict; nil if not known.
    package func verdict(_ name: Name) -> PushBudget.Verdict? { verdicts[name.hash] }

    /// Remembers a verdict, in place of an older one.
    package mutating func note(_ verdict: PushBudget.Verdict, of name: Name, now: Int64) { verdicts.set(verdict, for: name.hash, now: now) }

    /// Hash of a verdict's subject. Among 50,000 hashes of 64 bits none collide, and a look-up takes a fraction of the time.
    package struct Name: Equatable, Sendable {
        fileprivate let hash: Int

        /// A notification on one of a participant's devices; nil for all of them.
        package init(nid: String, device: String?) {
            guard let device else {
                hash = nid.hashValue
                return
            }
            var hasher = Hasher()
            hasher.combine(nid)
            hasher.combine("/")
            hasher.combine(device)
            hash = hasher.finalize()
        }

        /// A notification on a participant's devices in one time zone; nil for all devices.
        package init(nid: String, timezone: String?) {
            guard let timezone else {
                hash = nid.hashValue
                return
            }
            var hasher = Hasher()
            hasher.combine(nid)
            hasher.combine("@")
            hasher.combine(timezone)
            hash = hasher.finalize()
        }
    }
}
