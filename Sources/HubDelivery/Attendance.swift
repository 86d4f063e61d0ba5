package import HubCore

/// The attendance book: which participants are attached where, with which device and in which app state.
///
/// A plain value, owned by one thread. Every operation costs as much as the connections of the one participant it concerns.
package struct Attendance: Sendable {
    private struct Person: Hashable {
        let app: String
        let user: String
    }

    private struct Seat {
        var user: String
        var device: String?
    }

    private struct Connection {
        let app: String
        var state: AppState
        /// By channel.
        var seats: [String: Seat]
    }

    private struct Binding {
        var app: String
        var user: String
        var device: String
        /// Which entry of the queue is this binding's newest.
        var ticket: UInt64
    }

    /// The most sockets whose device is remembered: each costs about 200 bytes, and a socket is usually subscribed within
    /// seconds of being bound. Beyond it the oldest is forgotten, and its device counts as unknown.
    package static let bindingsMax = 200_000

    private let bindingsMax: Int
    private var connections: [ConnectionID: Connection] = [:]
    private var people: [Person: Set<ConnectionID>] = [:]
    private var bindings: [String: Binding] = [:]
    private var bindingQueue: [(socket: String, ticket: UInt64)] = []
    private var bindingQueueHead = 0
    private var lastTicket: UInt64 = 0

    package init(bindingsMax: Int = Attendance.bindingsMax) {
        precondition(bindingsMax > 0, "bindingsMax \(bindingsMax)")
        self.bindingsMax = bindingsMax
    }

    /// Connections with at least one seat.
    package var connectionCount: Int { connections.count }
    /// People with at least one connection.
    package var peopleCount: Int { people.count }
    package var bindingCount: Int { bindings.count }

    // MARK: Sockets

    /// A connection's subscription to a channel was accepted, and the user is known. Attaching again replaces user and device.
    ///
    /// A new connection's app state is unknown, whatever an earlier connection of the device said: a state is not carried over.
    package mutating func attach(_ connection: ConnectionID, app: String, channel: String, user: String, device: String?) {
        var record = connections[connection] ?? Connection(app: app, state: .unknown, seats: [:])
        precondition(record.app == app, "connection \(connection) is of app \(record.app), not \(app)")
        let former = record.seats.updateValue(Seat(user: user, device: device), forKey: channel)
        connections[connection] = record
        people[Person(app: app, user: user), default: []].insert(connection)
        if let former, former.user != user { leave(connection, app: app, user: former.user) }
    }

    /// The subscription ended; what was never attached is ignored.
    package mutating func detach(_ connection: ConnectionID, channel: String) {
        guard var record = connections[connection], let seat = record.seats.removeValue(forKey: channel) else { return }
        connections[connection] = record.seats.isEmpty ? nil : record
        leave(connection, app: record.app, user: seat.user)
    }

    /// The connection is gone, with all its subscriptions.
    package mutating func disconnected(_ connection: ConnectionID) {
        guard let record = connections.removeValue(forKey: connection) else { return }
        for user in Set(record.seats.values.map(\.user)) { leave(connection, app: record.app, user: user) }
    }

    /// The app behind this connection told its state (`client-app-state`).
    package mutating func setState(_ connection: ConnectionID, _ state: AppState) {
        connections[connection]?.state = state
    }

    /// A device told its state by HTTP: it holds for the device's connections and for the participant's connections of unknown device.
    package mutating func setDeviceState(app: String, user: String, device: String, _ state: AppState) {
        for connection in people[Person(app: app, user: user)] ?? [] {
            let isMeant = connections[connection]?.seats.values.contains {
                $0.user == user && ($0.device == nil || $0.device == device)
            }
            if isMeant == true { connections[connection]?.state = state }
        }
    }

    /// The participant's connections in the app; those subscribed to `channel` are marked so. In no particular order.
    package func attachments(app: String, channel: String, user: String) -> [KnownAttachment] {
        guard let present = people[Person(app: app, user: user)] else { return [] }
        return present.compactMap { connection in
            guard let record = connections[connection] else { return nil }
            let seat = record.seats[channel]
            let isSubscribed = seat?.user == user
            // Any of its seats knows the device: a connection has one, whichever channel it was signed for.
            let device =
                (isSubscribed ? seat?.device : nil) ?? record.seats.values.first { $0.user == user && $0.device != nil }?.device
            return KnownAttachment(device: device, state: record.state, isSubscribed: isSubscribed)
        }
    }

    /// The connections to write to when an event in `channel` is for this user. In no particular order.
    package func connections(app: String, channel: String, user: String) -> [ConnectionID] {
        (people[Person(app: app, user: user)] ?? []).filter { connections[$0]?.seats[channel]?.user == user }
    }

    private mutating func leave(_ connection: ConnectionID, app: String, user: String) {
        if connections[connection]?.seats.values.contains(where: { $0.user == user }) == true { return }
        let person = Person(app: app, user: user)
        people[person]?.remove(connection)
        if people[person]?.isEmpty == true { people[person] = nil }
    }

    // MARK: Which device a socket belongs to

    /// Signing a subscription told which device a socket id belongs to; the socket's subscription follows.
    package mutating func bind(socketID: String, app: String, user: String, device: String) {
        lastTicket += 1
        bindings[socketID] = Binding(app: app, user: user, device: device, ticket: lastTicket)
        bindingQueue.append((socketID, lastTicket))
        while bindings.count > bindingsMax { forgetOldestBinding() }
        // Binding one socket again and again leaves outdated entries behind; they go when they outnumber the rest.
        if bindingQueue.count > 2 * bindingsMax + 16 {
            bindingQueue = bindingQueue[bindingQueueHead...].filter { bindings[$0.socket]?.ticket == $0.ticket }
            bindingQueueHead = 0
        }
    }

    /// The device that `bind` named for this socket, if it was bound for the same user.
    package func device(boundTo socketID: String, app: String, user: String) -> String? {
        guard let binding = bindings[socketID], binding.app == app, binding.user == user else { return nil }
        return binding.device
    }

    /// The socket is gone: its id will never come again.
    package mutating func unbind(socketID: String) { bindings[socketID] = nil }

    private mutating func forgetOldestBinding() {
        while bindingQueueHead < bindingQueue.count {
            let oldest = bindingQueue[bindingQueueHead]
            bindingQueueHead += 1
            if bindings[oldest.socket]?.ticket == oldest.ticket {
                bindings[oldest.socket] = nil
                return
            }
        }
    }
}
