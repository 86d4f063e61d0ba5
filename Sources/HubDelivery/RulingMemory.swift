/// What those who rule on pushes remember of them. Bounded: what was touched longest ago is forgotten, and what is older than a day.
package struct RulingMemory: Sendable {
    private static let ageMax: Int64 = 86_400_000
    private var channels: RecentTable<String, String>
    private var verdicts: RecentTable<String, PushBudget.Verdict>

    /// - Parameters:
    ///   - eventsMax: events whose channel is remembered, at about 200 bytes each.
    ///   - verdictsMax: names whose verdict is remembered, at about 200 bytes each.
    package init(eventsMax: Int, verdictsMax: Int) {
        channels = RecentTable(countMax: eventsMax, ageMax: Self.ageMax)
        verdicts = RecentTable(countMax: verdictsMax, ageMax: Self.ageMax)
    }

    /// Nil: not known. Empty: there is no such event.
    package func channel(ofEvent event: String) -> String? { channels[event] }

    /// - Parameter now: milliseconds since 1970, like all moments here.
    package mutating func learn(event: String, channel: String, now: Int64) { channels.set(channel, for: event, now: now) }

    package func verdict(_ name: String) -> PushBudget.Verdict? { verdicts[name] }

    package mutating func note(_ verdict: PushBudget.Verdict, of name: String, now: Int64) { verdicts.set(verdict, for: name, now: now) }
}
