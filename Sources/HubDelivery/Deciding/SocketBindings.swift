internal import HubCore

/// Users and devices for which the hub has signed, by socket.
///
/// No entry replaces that of another user: somebody who learns a foreign socket id changes nothing for its owner. The oldest sockets are
/// forgotten when one person or all together have too many.
struct SocketBindings: Sendable {
    private struct Socket {
        var owners: [(person: Person, device: String)]
        /// Time at which the hub last signed for the socket, in milliseconds.
        var at: Int64
        /// Ticket of the socket's newest entry in the queue.
        var ticket: UInt64
    }

    /// Most sockets of one person, and most owners of one socket: far more than anybody needs at a time.
    static let perPersonMax = 100
    static let perSocketMax = 8

    private let countMax: Int
    private var sockets: [String: Socket] = [:]
    /// Sockets by person, the oldest first.
    private var people: [Person: [String]] = [:]
    private var queue: [(socket: String, ticket: UInt64)] = []
    private var queueHead = 0
    private var lastTicket: UInt64 = 0

    init(countMax: Int) {
        precondition(countMax > 0, "countMax \(countMax)")
        self.countMax = countMax
    }

    var count: Int { sockets.count }

    mutating func bind(_ socket: String, to person: Person, device: String, now: Int64 = 0) {
        var entry = sockets[socket] ?? Socket(owners: [], at: now, ticket: 0)
        entry.at = now
        if let index = entry.owners.firstIndex(where: { $0.person == person }) {
            entry.owners[index].device = device
        } else {
            guard entry.owners.count < Self.perSocketMax else { return }
            entry.owners.append((person, device))
            people[person, default: []].append(socket)
        }
        lastTicket += 1
        entry.ticket = lastTicket
        sockets[socket] = entry
        queue.append((socket, lastTicket))
        if let own = people[person], own.count > Self.perPersonMax { unbind(own[0], from: person) }
        while sockets.count > countMax { forgetOldest() }
        // Binding one socket repeatedly leaves outdated entries, which are removed once they outnumber the rest.
        if queue.count > 2 * countMax + 16 {
            queue = queue[queueHead...].filter { sockets[$0.socket]?.ticket == $0.ticket }
            queueHead = 0
        }
    }

    func device(of socket: String, person: Person) -> String? {
        sockets[socket]?.owners.first { $0.person == person }?.device
    }

    /// Time of the last signing for the person's newest bound socket; nil for none.
    func boundAt(_ person: Person) -> Int64? { people[person]?.last.flatMap { sockets[$0]?.at } }

    func sockets(of person: Person) -> [String] { people[person] ?? [] }

    mutating func unbind(_ socket: String, from person: Person) {
        sockets[socket]?.owners.removeAll { $0.person == person }
        if sockets[socket]?.owners.isEmpty == true { sockets[socket] = nil }
        people[person]?.removeAll { $0 == socket }
        if people[person]?.isEmpty == true { people[person] = nil }
    }

    mutating func unbind(_ socket: String) {
        for owner in sockets[socket]?.owners ?? [] { unbind(socket, from: owner.person) }
    }

    private mutating func forgetOldest() {
        while queueHead < queue.count {
            let oldest = queue[queueHead]
            queueHead += 1
            if sockets[oldest.socket]?.ticket == oldest.ticket { return unbind(oldest.socket) }
        }
    }
}
