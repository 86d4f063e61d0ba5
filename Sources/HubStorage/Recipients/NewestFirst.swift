/// The search for a user's newest events: those with a short list by index, and a bounded number of those with a long list.
struct NewestFirst {
    typealias Found = (number: Int64, event: String)

    let limit: Int
    /// The user's events with a short list, newest first, at most one more than `limit`.
    var short: [Found] = []
    private var long: [Found] = []
    private var looked = 0
    /// The last event with a long list that was looked at, where the search ended early.
    private var cutAt: Int64?
    private var last: Int64?

    init(limit: Int) { self.limit = limit }

    /// Events before this one cannot be on the page.
    var lowest: Int64 { short.count > limit ? short[limit].number : 0 }

    /// Whether to look at this event with a long list, the next older one. False ends the search.
    mutating func looks(at number: Int64, listsRead: Int) -> Bool {
        if looked < SQLiteStore.largeCandidatesMax, long.count <= limit, listsRead < SQLiteStore.listsReadMax {
            looked += 1
            last = number
            return true
        }
        cutAt = last
        return false
    }

    /// The user is on the event's list.
    mutating func found(_ number: Int64, _ event: String) { long.append((number, event)) }

    /// The page, newest first, and the position before which the next one begins; nil: nothing is left.
    func page() -> (page: [Found], next: Int64?) {
        var all = (short + long).sorted { $0.number > $1.number }
        // Older events with a short list stay for the page after the search that was cut.
        if let cutAt { all = all.filter { $0.number >= cutAt } }
        if all.count > limit { return (Array(all.prefix(limit)), all[limit - 1].number) }
        return (all, cutAt)
    }
}
