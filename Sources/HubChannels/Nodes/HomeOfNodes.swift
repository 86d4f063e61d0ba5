internal import HubCore

/// State of a home beside other nodes: how far it has heard, and which questions it asked.
struct HomeOfNodes {
    let backplane: any Backplane
    /// Up to where the home has heard, by shard.
    private(set) var positions: [Int: StreamID] = [:]
    /// Shards that lost their memory, and the time when they are whole again, on the monotonic clock.
    private(set) var rebuilding: [Int: UInt64] = [:]
    /// Presence channels with newcomers.
    var waiting: Set<ChannelKey> = []
    /// Wishes that have not gone out.
    var hasWishes = false
    private var lastTicket: UInt64

    /// Time in which every living node writes its members down again.
    static let rebuildNanoseconds: UInt64 = 5_000_000_000

    init(_ backplane: any Backplane, loop: Int) {
        self.backplane = backplane
        lastTicket = UInt64(loop) << Self.ticketBits
    }

    /// Bits of a ticket below the loop that asked.
    private static let ticketBits: UInt64 = 48

    /// The loop that asked.
    static func loop(of ticket: UInt64) -> Int { Int(ticket >> ticketBits) }

    mutating func ticket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    func position(of app: String) -> StreamID { positions[backplane.shard(of: app)] ?? .zero }

    func isRebuilding(_ app: String) -> Bool { !rebuilding.isEmpty && rebuilding[backplane.shard(of: app)] != nil }

    mutating func heard(_ report: NodeReport, now: UInt64) {
        positions[report.shard] = report.position
        if report.startsEpoch { rebuilding[report.shard] = now + (report.isWhole ? 0 : Self.rebuildNanoseconds) }
    }

    /// Shards that are whole again.
    mutating func takeRebuilt(now: UInt64) -> Set<Int> {
        if rebuilding.isEmpty { return [] }
        let rebuilt = rebuilding.filter { $0.value <= now }
        for shard in rebuilt.keys { rebuilding[shard] = nil }
        return Set(rebuilt.keys)
    }
}
