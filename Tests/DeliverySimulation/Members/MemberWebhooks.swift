import HubChannels
import HubCore
import HubDelivery
import HubTesting
import HubWebhooks
import PusherProtocol

/// The app's webhooks: all nodes keep the facts that they read, one of them tells. The owner changes with faults, and now and then without.
extension MemberSimulation {
    /// Time after which an owner that does not act is replaced, in milliseconds.
    private static let ownerMax: Int64 = 3500

    /// Every 250 ms: who owns the app's webhooks, and which removals are certain.
    func followOwner() {
        schedule(250, .owner)
        for node in nodes where acts(node) { node.actedAt = now }
        if let owner, nodes[owner].isUp, acts(nodes[owner]), !isCalm(for: 10_000) || !chance(1) {
            tell(nodes[owner].facts.settle(now: nanoseconds), nodes[owner])
        } else if owner.map({ !nodes[$0].isUp || now - nodes[$0].actedAt > Self.ownerMax || acts(nodes[$0]) }) ?? true,
            let next = nodes.filter({ acts($0) && $0.index != owner }).randomElement(using: &random)
        {
            // A former owner that cannot act hears of it when it goes on.
            if let owner { nodes[owner].facts.end() }
            owner = next.index
            // The former owner may have told what the next one has not read in the lost memory, and reads in the new one.
            if now < lossAt + Self.lossMax / 2 {
                report.changes["owners of webhooks that changed after the loss of a memory", default: 0] += 1
                told = [:]
            }
            if !next.facts.isOwn { tell(next.facts.begin(after: mark, now: nanoseconds), next) }
        }
    }

    private func acts(_ node: MemberNode) -> Bool { node.isUp && node.isConnected && !node.isStopped && !node.isCut && !node.isLeaving }

    /// A node has read that a member came or went.
    func note(_ fact: ChannelFact, _ node: MemberNode) { tell(node.facts.take(fact, now: nanoseconds), node) }

    /// The fence lets the owner alone store what it tells, with its mark.
    private func tell(_ facts: [ChannelFact], _ node: MemberNode) {
        guard owner == node.index else { return }
        mark = node.facts.mark ?? mark
        for fact in facts {
            let (user, isThere): (String, Bool)
            switch fact.event {
            case .memberAdded(let added): (user, isThere) = (added, true)
            case .memberRemoved(let removed): (user, isThere) = (removed, false)
            default: continue
            }
            if told[user] == isThere, isThere, isSplit, now < lossAt + Self.lossMax / 2 {
                report.duplicates["told there again after a failover, of which the owner had not read all", default: 0] += 1
            } else if told[user] == isThere {
                report.unexplained += 1
                violation("the app's server hears again that \(user) is \(isThere ? "there" : "gone"), from node \(node.index)")
            }
            told[user] = isThere
        }
    }
}
