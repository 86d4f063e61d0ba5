internal import HubCore
internal import Synchronization

/// Bytes of all request bodies that have come in part, over all loops: a total, and a share for each address. A body that
/// comes whole with one read is never counted.
final class BodyBudget: Sendable {
    private struct Account {
        var bytes = 0
        var byPeer: [IPAddress: Int] = [:]
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

    /// Adds to what the peer has, or says that there is no room. Any thread.
    fileprivate func add(_ count: Int, for peer: IPAddress) -> Bool {
        account.withLock { account in
            let own = account.byPeer[peer] ?? 0
            guard account.bytes + count <= bytesMax, own + count <= bytesPerPeerMax else { return false }
            account.bytes += count
            account.byPeer[peer] = own + count
            return true
        }
    }

    fileprivate func remove(_ count: Int, for peer: IPAddress) {
        guard count > 0 else { return }
        account.withLock { account in
            account.bytes -= count
            let left = (account.byPeer[peer] ?? 0) - count
            account.byPeer[peer] = left > 0 ? left : nil
        }
    }
}

/// One unfinished body's bytes of the budget; they are given back when this ends.
final class BodyCharge {
    private let budget: BodyBudget
    private let peer: IPAddress
    private var bytes = 0

    /// - Parameter address: as text; those that are none share one account.
    init(_ budget: BodyBudget, address: String) {
        self.budget = budget
        peer = (IPAddress(address) ?? IPAddress(high: 0, low: 0)).neighbourhood
    }

    /// The body has so many bytes now. False: there is no room for them.
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
