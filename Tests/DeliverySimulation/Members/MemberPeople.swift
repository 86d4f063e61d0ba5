import HubChannels
import HubCore
import HubTesting
import PusherProtocol

/// A user of one channel, and the truth about whether they are there.
struct MemberUser {
    enum End { case left, sent, killed }

    let name: String
    let channel: Int
    /// Sockets that a living process has open.
    var open: Set<Int> = []
    /// When the first of them came, or the last one went, and how.
    var since: Int64 = 0
    var end = End.left
    /// The others hear of the end no earlier: the latest time to come back of those who were known to be there.
    var endsAt: Int64 = 0
}

/// A phone or a page of a user.
struct MemberDevice {
    let user: Int
    var socket: Int?
    /// Changes whenever it comes or goes.
    var step = 0
}

/// A connection to one process of a node, and the members that its client library knows.
final class MemberSocket {
    let device: Int
    let node: Int
    let life: Int
    let membership: EngineMessage.Membership
    /// The process has it open.
    var isOpen = false
    /// When the subscription was acknowledged.
    var knownSince: Int64?
    var known: Set<String> = []

    init(_ number: Int, device: Int, node: MemberNode, channel: ChannelName) {
        (self.device, self.node, life) = (device, node.index, node.life)
        let id = ConnectionID(loop: 0, slot: number & 0xFF_FFFF, generation: 1)
        membership = EngineMessage.Membership(app: 0, channel: channel, connection: id, serial: UInt32(number))
    }
}

/// People who come to any node, and go.
extension MemberSimulation {
    func live(_ device: Int) {
        guard let number = devices[device].socket else { return connect(device) }
        devices[device].socket = nil
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
            schedule(between(10, 150), .closed(number))
            comeBack(device, 300, 20_000)
        case 5..<7:
            // Back at once, as a page that is loaded again.
            schedule(between(10, 150), .closed(number))
            comeBack(device, 50, 1500)
        default:
            // The network is gone, and the node hears of it by silence.
            schedule(chance(50) ? between(20, 500) : 25_000, .closed(number))
            comeBack(device, 1000, 4000)
        }
    }

    private func comeBack(_ device: Int, _ least: Int64, _ most: Int64) {
        devices[device].step += 1
        schedule(between(least, most), .connect(device, step: devices[device].step))
    }

    func connect(_ device: Int) {
        if isEnding { return }
        let node = nodes[Int.random(in: nodes.indices, using: &random)]
        guard node.isUp, node.hasBegun, !node.isLeaving, node.isConnected && !node.isStopped || chance(20) else {
            return comeBack(device, 200, 1000)
        }
        guard let channel = ChannelName(places[users[devices[device].user].channel].channel) else { return }
        let number = sockets.count
        sockets.append(MemberSocket(number, device: device, node: node, channel: channel))
        devices[device].socket = number
        devices[device].step += 1
        schedule(between(20, 300), .joined(number))
        schedule(between(2000, 60_000), .device(device, step: devices[device].step))
    }

    /// The subscription reaches the node.
    func joined(_ number: Int) {
        let socket = sockets[number]
        let (node, user) = (nodes[socket.node], devices[socket.device].user)
        guard devices[socket.device].socket == number, !node.isLeaving else { return }
        socket.isOpen = true
        node.sockets.append(number)
        if users[user].open.isEmpty { users[user].since = now }
        users[user].open.insert(number)
        let member = PresenceMember(userID: users[user].name, userInfo: nil)
        _ = node.home.join(socket.membership, member, membersMax: app.presenceMembersMax)
        planTurn(node)
    }

    /// - Parameters:
    ///   - isSent: the node sends the client away, which comes back anywhere.
    ///   - isLate: the others have declared the node dead before.
    func closed(_ number: Int, isSent: Bool, isLate: Bool = false) {
        let socket = sockets[number]
        let node = nodes[socket.node]
        guard socket.isOpen else { return }
        node.sockets.removeAll { $0 == number }
        node.home.leave(socket.membership, user: users[devices[socket.device].user].name, isSent: isSent, now: nanoseconds)
        planTurn(node)
        gone(number, isSent && !isLate ? .sent : .left)
    }

    /// The process does not have the socket any more.
    func gone(_ number: Int, _ end: MemberUser.End) {
        let socket = sockets[number]
        let user = devices[socket.device].user
        socket.isOpen = false
        socket.known = []
        users[user].open.remove(number)
        if socket.knownSince != nil {
            let endsAt =
                switch end {
                case .left: now
                case .sent: now + 2980
                case .killed: nodes[socket.node].beatenAt + 4480
                }
            users[user].endsAt = max(users[user].endsAt, endsAt)
        }
        if users[user].open.isEmpty {
            (users[user].since, users[user].end) = (now, end)
            departures += 1
        }
        guard devices[socket.device].socket == number else { return }
        devices[socket.device].socket = nil
        comeBack(socket.device, 200, 6000)
    }
}
