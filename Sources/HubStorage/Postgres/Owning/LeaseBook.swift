internal import HubCore

/// Decides which partitions a node owns, from what it sees of the others. A pure value: looks in, actions out.
///
/// A node is dead when its beat has stood still for a number of looks, whatever any clock says. A look that fails or takes long says
/// nothing about anybody, and the count begins anew.
package struct LeaseBook: Sendable {
    /// Result of one statement: the beats of all nodes, and the owners of the partitions.
    package struct Look: Sendable {
        /// A partition's row.
        package struct Lease: Sendable, Equatable {
            /// 0: nobody's.
            package var owner: Int64
            /// Rises whenever the partition is taken.
            package var epoch: Int64

            package init(owner: Int64, epoch: Int64) { (self.owner, self.epoch) = (owner, epoch) }
        }

        /// Beats by node.
        package var nodes: [Int64: Int64]
        /// Nodes that do not hear themselves through the backplane, as they say with their beats.
        package var deaf: Set<Int64>
        /// Those among them that take no part because others hear.
        package var cutOff: Set<Int64>
        /// Leases by partition.
        package var leases: [Int32: Lease]
        /// Nodes without any connection to the server. Nil behind PgBouncer, where connections outlive their node.
        package var unconnected: Set<Int64>?
        /// When the server was started, as it tells, and for how many milliseconds it has been up.
        package var serverStart: String
        package var serverUp: Int64
        /// Milliseconds of the monotonic clock at which the look was sent and answered.
        package var sentAt: Int64
        package var answeredAt: Int64

        package init(
            nodes: [Int64: Int64], deaf: Set<Int64> = [], cutOff: Set<Int64> = [], leases: [Int32: Lease], unconnected: Set<Int64>? = nil,
            serverStart: String, serverUp: Int64, sentAt: Int64, answeredAt: Int64
        ) {
            (self.nodes, self.deaf, self.cutOff, self.leases) = (nodes, deaf, cutOff, leases)
            (self.unconnected, self.serverStart, self.serverUp) = (unconnected, serverStart, serverUp)
            (self.sentAt, self.answeredAt) = (sentAt, answeredAt)
        }
    }

    /// Changes to the leases and to the rows of nodes.
    package enum Action: Equatable, Sendable {
        /// Takes a partition from its owner of before; 0: from nobody.
        case take(Int32, from: Int64)
        /// Gives partitions to nobody, for nodes that have fewer.
        case giveBack([Int32])
        /// Removes the row of a node that owns nothing any more.
        case forget(Int64)
    }

    /// Looks without hearing, while another node hears, after which a node is cut off. Nodes hear a restarted Redis one after the other.
    static let deafMax = 6
    /// Partitions of a database, fixed at the first start.
    package static let partitionCount = Partition.count
    /// Time between two looks, in milliseconds.
    package static let lookEvery: Int64 = 500
    /// Time from one look that counts to the next, in milliseconds.
    static let countEvery = lookEvery - Tick.lateMax
    /// A look that takes longer counts as failed, in milliseconds.
    package static let lookMax: Int64 = 1_000
    /// Looks without a move after which a node is dead; with the hint that its connections are gone.
    static let stillMax = 7
    static let stillMaxUnconnected = 3
    /// For how long after a beat was sent its node acts, in milliseconds. A successor of a dead node acts later than that.
    static let actsFor: Int64 = 3_000
    /// For how long the server must have been up before the hint counts, in milliseconds: nodes come back after its start one by one.
    static let serverUpMin: Int64 = 5_000

    /// This node.
    let me: Int64
    /// Whether the node wants everything, and gives nothing to others that come.
    let isAlone: Bool
    private var still: [Int64: (beat: Int64, looks: Int)] = [:]
    private var serverStart: String?
    private var lastSentAt: Int64?
    private var deafLooks = 0
    /// Whether this node hears itself through the backplane.
    package private(set) var isDeaf = false
    /// Whether this node takes no part: it alone, or with few others, is cut off from the backplane.
    package private(set) var isCutOff = false
    /// When the last look that counts for the others' stillness was sent. Looks between two of them only see what moved.
    private var countedAt: Int64?
    /// Epochs of the partitions that this node owns.
    package private(set) var owned: [Int32: Int64] = [:]

    /// - Parameter me: this node's number, above 0.
    package init(me: Int64, isAlone: Bool = false) {
        precondition(me > 0, "node \(me)")
        self.me = me
        self.isAlone = isAlone
    }

    /// Whether what this node owns is certainly still its own.
    package func mayAct(at now: Int64) -> Bool { lastSentAt.map { now < $0 + Self.actsFor } ?? false }

    /// Whether another node's beat moved at the last look.
    private(set) var seesAnother = false
    /// Nodes that are not known to be dead, this one included.
    package private(set) var living: Set<Int64> = []

    /// Time since the last beat that was answered was sent, in milliseconds; nil before the first one.
    func sinceBeat(at now: Int64) -> Int64? { lastSentAt.map { now - $0 } }

    /// Whether this node hears itself through the backplane, before each look.
    package mutating func note(hears: Bool) {
        isDeaf = !hears
        if hears { (isCutOff, deafLooks) = (false, 0) }
    }

    /// Takes a look.
    package mutating func take(_ look: Look) -> [Action] {
        guard look.answeredAt - look.sentAt <= Self.lookMax, look.nodes[me] != nil else {
            failed()
            return []
        }
        if serverStart != look.serverStart {
            // A new server has seen nobody yet: all beats stood still while it was away.
            if serverStart != nil { failed() }
            serverStart = look.serverStart
        }
        lastSentAt = look.sentAt
        owned = look.leases.filter { $0.value.owner == me }.mapValues(\.epoch)
        note(look)
        return actions(look)
    }

    /// Partitions were taken, under these epochs.
    package mutating func took(_ leases: [Int32: Int64]) { owned.merge(leases) { _, new in new } }

    /// Partitions are about to be given back: from here on the node does nothing with them.
    package mutating func gives(_ partitions: [Int32]) { for partition in partitions { owned[partition] = nil } }

    /// A look that got no answer says nothing about others.
    package mutating func failed() {
        still = [:]
        deafLooks = 0
    }

    private mutating func note(_ look: Look) {
        let counts = countedAt.map { look.sentAt - $0 >= Self.countEvery } ?? true
        if counts {
            countedAt = look.sentAt
            seesAnother = false
        }
        for (node, beat) in look.nodes where node != me {
            if let known = still[node], known.beat == beat {
                if counts { still[node] = (beat, known.looks + 1) }
            } else {
                seesAnother = seesAnother || still[node] != nil
                still[node] = (beat, 0)
            }
        }
        still = still.filter { look.nodes[$0.key] != nil }
        living = Set(look.nodes.keys.filter { !isDead($0, look) })
        let isHeard = living.contains { $0 != me && !look.deaf.contains($0) }
        if counts { deafLooks = isDeaf && isHeard ? deafLooks + 1 : 0 }
        isCutOff = isHeard && (isCutOff || deafLooks >= Self.deafMax)
    }

    private func isDead(_ node: Int64, _ look: Look) -> Bool {
        guard node != me, let looks = still[node]?.looks else { return false }
        if looks >= Self.stillMax { return true }
        return looks >= Self.stillMaxUnconnected && look.serverUp >= Self.serverUpMin && look.unconnected?.contains(node) == true
    }

    private func share(_ look: Look) -> Int {
        if isAlone { return Int(Self.partitionCount) }
        if isCutOff { return 0 }
        let others = living.filter { $0 != me && !look.cutOff.contains($0) }
        let takers = (others + [me]).sorted()
        // The first of the nodes have one more where the number does not divide.
        let place = takers.firstIndex(of: me) ?? 0
        return Int(Self.partitionCount) / takers.count + (place < Int(Self.partitionCount) % takers.count ? 1 : 0)
    }

    private func actions(_ look: Look) -> [Action] {
        let share = share(look)
        var actions: [Action] = []
        if owned.count > share {
            actions.append(.giveBack(Array(owned.keys.sorted().suffix(owned.count - share))))
        } else {
            let free = look.leases.filter { $0.value.owner != me && !living.contains($0.value.owner) }.sorted { $0.key < $1.key }
            // Nodes that look at the same time begin at different places.
            let start = free.count * (living.sorted().firstIndex(of: me) ?? 0) / living.count
            actions += (free[start...] + free[..<start]).prefix(share - owned.count).map { .take($0.key, from: $0.value.owner) }
        }
        for node in look.nodes.keys.sorted() where !living.contains(node) && !look.leases.values.contains(where: { $0.owner == node }) {
            actions.append(.forget(node))
        }
        return actions
    }
}
