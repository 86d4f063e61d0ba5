/// What those who rule on pushes remember of them. Bounded: what was touched longest ago is forgotten, and what is older than a day.
package struct RulingMemory: Sendable {
    private static let ageMax: Int64 = 86_400_000
    private var channels: RecentTable<String, String>
    private var verdicts: RecentTable<Int, PushBudget.Verdict>

    /// - Parameters:
    ///   - eventsMax: events whose channel is remembered, at about 200 bytes each.
    ///   - verdictsMax: names whose verdict is remembered, at about 100 bytes each.
    package init(eventsMax: Int, verdictsMax: Int) {
        channels = RecentTable(countMax: eventsMax, ageMax: Self.ageMax)
        verdicts = RecentTable(countMax: verdictsMax, ageMax: Self.ageMax)
    }

    /// Nil: not known. Empty: there is no such event.
    package func channel(ofEvent event: String) -> String? { channels[event] }

    /// - Parameter now: milliseconds since 1970, like all moments here.
    package mutating func learn(event: String, channel: String, now: Int64) { channels.set(channel, for: event, now: now) }

    package func verdict(_ name: Name) -> PushBudget.Verdict? { verdicts[name.hash] }

    package mutating func note(_ verdict: PushBudget.Verdict, of name: Name, now: Int64) { verdicts.set(verdict, for: name.hash, now: now) }

    /// What a verdict is about, as its hash: with 50,000 of 64 bits no two are the same, and looking them up takes a fraction of the time.
    package struct Name: Equatable, Sendable {
        fileprivate let hash: Int

        /// A notification on all of a participant's devices, or on one of them.
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

        /// A notification on the participant's devices in one time zone; nil: on all of them.
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
