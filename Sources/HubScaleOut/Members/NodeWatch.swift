/// Which nodes live, by the beats that one Redis has. A node is dead when its beat stands still for seven looks: no clock says so.
package struct NodeWatch: Sendable {
    /// Looks, half a second apart, in which a dead node's beat does not move.
    package static let looksMax = 7

    /// Nobody was seen yet.
    package init() {}

    private var seen: [UInt64: (beat: Int64, still: Int)] = [:]

    /// Nodes whose beat moved at one of the last looks, or that were seen for the first time.
    package var living: [UInt64] { seen.keys.sorted() }

    /// Looks once at all beats.
    /// - Returns: the nodes that are dead now, with their last beat.
    package mutating func look(_ beats: [UInt64: Int64], me: UInt64) -> [(node: UInt64, beat: Int64)] {
        seen = seen.filter { beats[$0.key] != nil }
        var dead: [(node: UInt64, beat: Int64)] = []
        for (node, beat) in beats where node != me {
            let known = seen[node]
            let still = known?.beat == beat ? (known?.still ?? 0) + 1 : 0
            seen[node] = (beat, still)
            if still >= Self.looksMax { dead.append((node, beat)) }
        }
        return dead.sorted { $0.node < $1.node }
    }

    /// A look failed or came late, or the memory is a new one: what was counted says nothing any more.
    package mutating func reset() { for node in seen.keys { seen[node]?.still = 0 } }
}
