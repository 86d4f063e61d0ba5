internal import HubCore
internal import Synchronization

/// The budget for incomplete request bodies of all loops: a total in bytes, and a share per address. A body received
/// whole in one read is never counted.
final class BodyBudget: Sendable {
    private struct Account {
        var bytes = 0
        var byPeer: [IPAddress: Int] = [:]

        /// Whether the peers' bytes are the total. Walks the peers.
        var isConsistent: Bool { byPeer.values.allSatisfy { $0 > 0 } && byPeer.values.reduce(0, +) == bytes }
    }

    private let bytesMax: Int
    private let bytesPerPeerMax: Int
    private let account = Mutex(Account())

    init(bytesMax: Int, bytesPerPeerMax: Int) {
        self.bytesMax = bytesMax
        self.bytesPerPeerMax = bytesPerPeerMax
    }

    /// Bytes of all unfinished bodies. Any thread.
    var bytes: Int { account.withLock { $0.bytes } }
    /// Addresses with an unfinished body.
    var peerCount: Int { account.withLock { $0.byPeer.count } }

    /// Charges bytes to a peer; false without room. Any thread.
    fileprivate func add(_ count: Int, for peer: IPAddress) -> Bool {
        account.withLock { account in
            let own = account.byPeer[peer] ?? 0
            guard account.bytes + count <= bytesMax, own + count <= bytesPerPeerMax else { return false }
            account.bytes += count
            account.byPeer[peer] = own + count
            assert(account.isConsistent, "\(account.bytes) bytes of \(account.byPeer.count) peers")
            return true
        }
    }

    fileprivate func remove(_ count: Int, for peer: IPAddress) {
        guard count > 0 else { return }
        account.withLock { account in
            account.bytes -= count
            let left = (account.byPeer[peer] ?? 0) - count
            assert(left >= 0, "\(peer) gives back \(-left) bytes that it never took")
            account.byPeer[peer] = left > 0 ? left : nil
            assert(account.isConsistent, "\(account.bytes) bytes of \(account.byPeer.count) peers")
        }
    }
}

/// One unfinished body's share of the budget, returned by `deinit`.
final class BodyCharge {
    private let budget: BodyBudget
    private let peer: IPAddress
    private var bytes = 0

    /// - Parameter address: as text; all invalid ones share one account.
    init(_ budget: BodyBudget, address: String) {
        self.budget = budget
        peer = (IPAddress(address) ?? IPAddress(high: 0, low: 0)).neighbourhood
    }

    /// Raises the charge to `count` bytes. False without room.
    func grow(to count: Int) -> Bool {
        guard count > bytes else { return true }
        guard budget.add(count - bytes, for: peer) else { return false }
        bytes = count
        return true
    }

    deinit {
        budget.remove(bytes, for: peer)
    }
}
