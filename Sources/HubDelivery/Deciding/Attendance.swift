package import HubCore

/// The attendance book: which participants are attached where, with which device and in which app state.
///
/// A plain value, owned by one thread. Every operation is O(n) in the connections of the one participant it concerns.
package struct Attendance: Sendable {
    private struct Seat {
        var user: String
        var device: String?
        /// Ticket of the attendance report, which tells the events that were written to the seat.
        var ticket: UInt64
        /// Lowest number of an event that counts as written to the seat.
        var firstEvent: UInt64 = 0
        /// Time at which the seat was taken, in milliseconds on the caller's clock.
        var since: Int64
        /// Number of the seat; a seat taken later has a higher one.
        var order: UInt64
        /// Whether the device has said on a newer seat in the channel that the app is in the background.
        var isDisplaced = false
        /// Whether the device has other known seats in the channel.
        var isOneOfSeveral = false
    }

    private struct Connection {
        let app: String
        let isBrowser: Bool
        /// Most milliseconds since a sign of life: after that silence the transport pings and closes.
        let silenceMaxMilliseconds: Int64
        var state: AppState
        /// Whether the state came over this very connection, so that it is ordered with the receipts.
        var isStateOrdered = true
        /// Whether the app said that it keeps working in the background.
        var keepsWorking = false
        /// Time of the last sign of life, in milliseconds on the caller's clock.
        var lastSignOfLife: Int64
        /// Time of the last receipt, in milliseconds on the caller's clock; nil: none has come.
        var lastReceipt: Int64?
        /// Cursor of the last receipt; 0: none has come.
        var readUpTo: UInt64 = 0
        /// Cursor of the last receipt that was judged under the present facts; 0: none was.
        var judgedUpTo: UInt64 = 0
        /// Cursor of the last replay. Receipts before it leave something to judge.
        var replayedUpTo: UInt64 = 0
        /// Seats by channel.
        var seats: [String: Seat]

        func deviceState(now: Int64) -> DeviceState {
            if state == .background { return keepsWorking ? .backgroundCapable : .background }
            let age = min(now - lastSignOfLife, silenceMaxMilliseconds)
            if age <= Int64(DeviceState.liveSeconds) * 1000 { return .live }
            return age <= Int64(DeviceState.quietSeconds) * 1000 ? .quiet : .background
        }
    }

    /// Most sockets whose device is remembered, at about 200 bytes each. A socket is usually subscribed within seconds of being bound. If
    /// exceeded, the oldest is forgotten, and its device counts as unknown.
    package static let bindingsMax = 200_000

    private var connections: [ConnectionID: Connection] = [:]
    private var people: [Person: Set<ConnectionID>] = [:]
    private var lastOrder: UInt64 = 0
    private var travels: Absences
    /// Time until which everybody absent counts as on the way back from the server's own absence.
    private var bootGraceEnd = Int64.min
    /// Seats taken before `bootGraceEnd` that `takeReturns` has not reported yet.
    private var returns = 0
    private var bindings: SocketBindings

    /// - Parameter travellersMax: most devices whose absences are remembered.
    package init(bindingsMax: Int = Attendance.bindingsMax, travellersMax: Int = Absences.travellersMax) {
        bindings = SocketBindings(countMax: bindingsMax)
        travels = Absences(travellersMax: travellersMax)
    }

    /// Connections with at least one seat.
    package var connectionCount: Int { connections.count }
    /// People with at least one connection.
    package var peopleCount: Int { people.count }
    /// Sockets with a known device.
    package var bindingCount: Int { bindings.count }
    /// Devices that went within the last minute.
    package var travellerCount: Int { travels.count }

    // MARK: Sockets

    /// Notes that the server has just started, so that everybody absent counts as on the way back.
    package mutating func booted(now: Int64) {
        bootGraceEnd = now + Int64(DeviceState.bootGraceSeconds) * 1000
    }

    /// Takes the number of returns since the last call, counted while people come back from the server's own absence.
    package mutating func takeReturns() -> Int {
        defer { returns = 0 }
        return returns
    }

    /// Notes an accepted subscription whose user is known. Attaching again replaces user and device.
    ///
    /// A new connection's app state is unknown, whatever an earlier connection of the device said.
    ///
    /// Once an app with a known device says on one connection that it is in the background, its older connections no longer count. The app
    /// may have lost sight of a connection that still answers. Being newer is not enough, because reports of a lost connection can come
    /// after those of its replacement.
    ///
    /// While a device has several connections, its receipts are provisional: a state on one connection has no order with receipts on
    /// another. Pages are not apps: each tab counts for itself.
    /// - Parameters:
    ///   - ticket: of the attendance report, from 1; nil keeps the subscription's present ticket.
    ///   - silenceMax: longest silence that the transport allows to connections of this app.
    ///   - now: milliseconds on a clock that only grows.
    package mutating func attach(
        _ connection: ConnectionID, app: String, channel: String, user: String, device: String?, ticket: UInt64? = nil,
        isBrowser: Bool = false,
        silenceMax: Duration = .seconds(25), now: Int64 = 0
    ) {
        let isNew = connections[connection] == nil
        var record =
            connections[connection]
            ?? Connection(
                app: app, isBrowser: isBrowser, silenceMaxMilliseconds: silenceMax.milliseconds, state: .unknown, lastSignOfLife: now,
                seats: [:])
        precondition(record.app == app, "connection \(connection) is of app \(record.app), not \(app)")
        lastOrder += 1
        let former = record.seats[channel]
        record.seats[channel] = Seat(
            user: user, device: device, ticket: ticket ?? former?.ticket ?? 0, since: ticket == nil ? former?.since ?? now : now,
            order: lastOrder)
        record.lastSignOfLife = now
        record.judgedUpTo = 0
        connections[connection] = record
        let person = Person(app: app, user: user)
        people[person, default: []].insert(connection)
        travels.came(person, device: device, channel: channel, isNewConnection: isNew, now: now)
        if now < bootGraceEnd { returns += 1 }
        if let former, former.user != user { leave(connection, app: app, user: former.user) }
        if let former, former.user != user || former.device != device {
            rankSeats(app: app, channel: channel, user: former.user, device: former.device)
        }
        rankSeats(app: app, channel: channel, user: user, device: device)
    }

    /// Notes that a subscription ended; one that was never attached is ignored.
    package mutating func detach(_ connection: ConnectionID, channel: String) {
        guard var record = connections[connection], let seat = record.seats.removeValue(forKey: channel) else { return }
        connections[connection] = record.seats.isEmpty ? nil : record
        leave(connection, app: record.app, user: seat.user)
        rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device)
    }

    /// Notes that a connection has ended, with all its subscriptions.
    /// - Parameter mayReturn: whether it was cut off. Its device then counts as on the way back to its channels for a while. An app in the
    ///   background does not: systems end the sockets of such apps.
    package mutating func disconnected(_ connection: ConnectionID, mayReturn: Bool = false, now: Int64 = 0) {
        guard let record = connections.removeValue(forKey: connection) else { return }
        let mayReturn = mayReturn && (record.state != .background || record.keepsWorking)
        for (channel, seat) in record.seats {
            leave(connection, app: record.app, user: seat.user)
            rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device)
            travels.went(Person(app: record.app, user: seat.user), device: seat.device, channel: channel, mayReturn: mayReturn, now: now)
        }
    }

    /// Notes a receipt of a connection, which is a sign of life.
    /// - Parameter cursor: up to which the connection has read.
    /// - Returns: cursor of the connection's last receipt; 0: its state, its subscriptions or its replays have changed since.
    @discardableResult
    package mutating func heard(_ connection: ConnectionID, cursor: UInt64 = 0, now: Int64) -> UInt64 {
        guard let place = connections.index(forKey: connection) else { return 0 }
        connections.values[place].lastSignOfLife = now
        connections.values[place].lastReceipt = now
        connections.values[place].readUpTo = max(connections.values[place].readUpTo, cursor)
        let judged = connections.values[place].judgedUpTo
        connections.values[place].judgedUpTo = cursor >= connections.values[place].replayedUpTo ? cursor : 0
        return judged
    }

    /// Notes that events were written once more, to a connection that came back.
    package mutating func replayed(_ connection: ConnectionID, cursor: UInt64) {
        guard let place = connections.index(forKey: connection) else { return }
        connections.values[place].judgedUpTo = 0
        connections.values[place].replayedUpTo = max(connections.values[place].replayedUpTo, cursor)
    }

    /// Notes that the connection gets other events of the channel from now on, because its role changed or became known. Its receipts prove
    /// nothing about events with lower numbers.
    package mutating func restart(_ connection: ConnectionID, channel: String, firstEvent: UInt64) {
        connections[connection]?.seats[channel]?.firstEvent = firstEvent
        connections[connection]?.judgedUpTo = 0
    }

    /// Decides which seats of a device in a channel count: those that no newer seat contradicts.
    private mutating func rankSeats(app: String, channel: String, user: String, device: String?) {
        guard let device, let ids = people[Person(app: app, user: user)] else { return }
        let own = ids.filter { id in
            guard let record = connections[id], !record.isBrowser, let seat = record.seats[channel] else { return false }
            return seat.user == user && seat.device == device
        }
        let contradicted =
            own.compactMap { connections[$0]?.state == .background ? connections[$0]?.seats[channel]?.order : nil }.max() ?? 0
        for id in own {
            guard let order = connections[id]?.seats[channel]?.order else { continue }
            connections[id]?.judgedUpTo = 0
            connections[id]?.seats[channel]?.isDisplaced = order < contradicted
            connections[id]?.seats[channel]?.isOneOfSeveral = own.count > 1
        }
    }

    /// Notes the state that an app told over this connection (`client-app-state`).
    /// - Parameter keepsWorking: whether the app reads its socket and shows events in the background, too.
    package mutating func setState(_ connection: ConnectionID, _ state: AppState, keepsWorking: Bool = false) {
        setState(connection, state, keepsWorking: keepsWorking, isOrdered: true)
    }

    /// Notes a state that was told once more: the first word of it may be lost. A state that came over HTTP meanwhile stands.
    package mutating func repeatState(_ connection: ConnectionID, _ state: AppState, keepsWorking: Bool) {
        guard let known = connections[connection], known.isStateOrdered, known.state != state || known.keepsWorking != keepsWorking
        else { return }
        setState(connection, state, keepsWorking: keepsWorking)
    }

    private mutating func setState(_ connection: ConnectionID, _ state: AppState, keepsWorking: Bool, isOrdered: Bool) {
        guard var record = connections[connection] else { return }
        record.state = state
        record.isStateOrdered = isOrdered
        record.keepsWorking = keepsWorking
        record.judgedUpTo = 0
        connections[connection] = record
        guard !record.isBrowser else { return }
        for (channel, seat) in record.seats { rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device) }
    }

    /// Notes the state that a device told over HTTP, for its own connections and the participant's connections of unknown device.
    ///
    /// Receipts of an app in the foreground by HTTP, or that keeps working by HTTP, are provisional, as those of an app that says nothing.
    /// A "gone to background" over HTTP can arrive after a receipt that was sent later over the socket.
    package mutating func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool = false) {
        for connection in connections(app: app, user: user, device: device) {
            setState(connection, state, keepsWorking: keepsWorking, isOrdered: false)
        }
    }

    /// How surely the socket reaches the user, or one device, in a channel, and the milliseconds for which a return is awaited.
    /// - Parameter device: nil for all devices together. A connection of unknown device stands for every device.
    package func state(app: String, channel: String, user: String, device: String? = nil, now: Int64) -> (DeviceState, graceLeft: Int64) {
        let person = Person(app: app, user: user)
        let states = (people[person] ?? []).compactMap { id -> DeviceState? in
            guard let connection = connections[id], let seat = connection.seats[channel], seat.user == user, !seat.isDisplaced
            else { return nil }
            if let device, let own = seat.device, own != device { return nil }
            // A device that comes and goes all the time would be waited for anew each time.
            if travels.isFlapping(person, device: seat.device, now: now) { return .background }
            return connection.deviceState(now: now)
        }
        if !states.isEmpty { return (DeviceState.best(of: states), 0) }
        let graceLeft = travels.graceLeft(person, device: device, channel: channel, now: now)
        if bootGraceEnd > now + graceLeft { return (.serverGrace, bootGraceEnd - now) }
        return graceLeft > 0 ? (.grace, graceLeft) : (.absent, 0)
    }

    /// A subscription of a connection, for judging its receipts.
    package struct KnownSeat: Sendable {
        /// The app's id.
        package let app: String
        /// The channel's name.
        package let channel: String
        /// The subscribed user.
        package let user: String
        /// The connection's device; nil if unknown.
        package let device: String?
        /// Ticket of the subscription.
        package let ticket: UInt64
        /// Lowest number of an event about which a receipt proves something.
        package let firstEvent: UInt64
        /// The app's state as receipts see it: `unknown` also for an app that shows events, but may revoke that by another way than this
        /// connection.
        package let state: AppState
        /// Whether the app said that it reads and shows events in the background.
        package let keepsWorking: Bool
    }

    /// The connection's subscriptions to channels with a definition. Left out are those where a newer connection of the device says that
    /// the app is in the background.
    package func seats(of connection: ConnectionID) -> [KnownSeat] {
        guard let record = connections[connection] else { return [] }
        return record.seats.compactMap { channel, seat in
            if seat.isDisplaced { return nil }
            let isRead = record.state == .foreground || record.keepsWorking
            return KnownSeat(
                app: record.app, channel: channel, user: seat.user, device: seat.device, ticket: seat.ticket, firstEvent: seat.firstEvent,
                state: isRead && (!record.isStateOrdered || seat.isOneOfSeveral) ? .unknown : record.state,
                keepsWorking: record.keepsWorking)
        }
    }

    /// Number of the participant's connections to the channel, and the best app state among them; nil for no connection.
    package func presence(app: String, channel: String, user: String) -> (connections: Int, state: AppState)? {
        let states = connections(app: app, channel: channel, user: user).compactMap { connections[$0]?.state }
        guard !states.isEmpty else { return nil }
        return (states.count, states.contains(.foreground) ? .foreground : states.contains(.unknown) ? .unknown : .background)
    }

    /// The user's connections to the channel, in no particular order.
    package func connections(app: String, channel: String, user: String) -> [ConnectionID] {
        (people[Person(app: app, user: user)] ?? []).filter { connections[$0]?.seats[channel]?.user == user }
    }

    /// The user's newest connections to the channel first, at most `ParticipantPresence.socketsMax`. Loops have the indexes of the book.
    /// - Parameter now: milliseconds on the caller's clock.
    package func sockets(app: String, channel: String, user: String, now: Int64) -> [ParticipantPresence.Socket] {
        let found = connections(app: app, channel: channel, user: user).compactMap { id in
            connections[id].flatMap { connection in connection.seats[channel].map { (id: id, connection: connection, seat: $0) } }
        }
        return found.sorted { $0.seat.order > $1.seat.order }.prefix(ParticipantPresence.socketsMax).map { id, connection, seat in
            ParticipantPresence.Socket(
                loop: id.loop, device: seat.device, state: connection.state, receiptAge: connection.lastReceipt.map { max(0, now - $0) })
        }
    }

    /// Ticket of the connection's subscription to the channel; nil: there is none.
    func ticket(of connection: ConnectionID, on channel: String) -> UInt64? { connections[connection]?.seats[channel]?.ticket }

    /// The state that the app told over the connection; nil: it is not attached.
    func state(of connection: ConnectionID) -> AppState? { connections[connection]?.state }

    /// Cursor of the connection's last receipt; 0: none has come.
    func readUpTo(_ connection: ConnectionID) -> UInt64 { connections[connection]?.readUpTo ?? 0 }

    /// Everybody who is attached by the connection, in no particular order.
    func places(of connection: ConnectionID) -> [(app: String, channel: String, user: String, device: String?)] {
        guard let record = connections[connection] else { return [] }
        return record.seats.map { (record.app, $0.key, $0.value.user, $0.value.device) }
    }

    /// The user's connections of the device, and those of unknown device, in no particular order.
    func connections(app: String, user: String, device: String) -> [ConnectionID] {
        (people[Person(app: app, user: user)] ?? []).filter { id in
            connections[id]?.seats.values.contains { $0.user == user && ($0.device == nil || $0.device == device) } == true
        }
    }

    // MARK: Several nodes

    /// The connections of these loops, in no particular order. Costs O(n) in all connections.
    package func connections(ofLoops loops: Range<Int>) -> [ConnectionID] { connections.keys.filter { loops.contains($0.loop) } }

    /// Gives up the seats in all other channels. Costs O(n) in all seats.
    package mutating func keep(_ isKept: (_ app: String, _ channel: String) -> Bool) {
        for (connection, record) in connections {
            for channel in record.seats.keys where !isKept(record.app, channel) { detach(connection, channel: channel) }
        }
    }

    private mutating func leave(_ connection: ConnectionID, app: String, user: String) {
        if connections[connection]?.seats.values.contains(where: { $0.user == user }) == true { return }
        let person = Person(app: app, user: user)
        people[person]?.remove(connection)
        if people[person]?.isEmpty == true { people[person] = nil }
    }

    // MARK: Devices of sockets

    /// Notes the user and the device for which the hub signed a subscription of a socket, before that subscription arrives.
    /// - Parameter now: milliseconds on a clock that only grows.
    package mutating func bind(socketID: String, app: String, user: String, device: String, now: Int64 = 0) {
        bindings.bind(socketID, to: Person(app: app, user: user), device: device, now: now)
    }

    /// Time at which the user last came to the channel, or was last on the way because the hub had signed for a socket.
    /// - Returns: milliseconds on the caller's clock; nil if neither is known.
    package func cameAt(app: String, channel: String, user: String) -> Int64? {
        let person = Person(app: app, user: user)
        let seats = (people[person] ?? []).compactMap { id -> Int64? in
            guard let seat = connections[id]?.seats[channel], seat.user == user, !seat.isDisplaced else { return nil }
            return seat.since
        }
        return [seats.max(), bindings.boundAt(person)].compactMap { $0 }.max()
    }

    /// The device that `bind` named for this socket and user; nil if unknown.
    package func device(boundTo socketID: String, app: String, user: String) -> String? {
        bindings.device(of: socketID, person: Person(app: app, user: user))
    }

    /// Takes the sockets that are bound for the user, and unbinds them.
    package mutating func takeSockets(app: String, user: String) -> [String] {
        let person = Person(app: app, user: user)
        let sockets = bindings.sockets(of: person)
        for socket in sockets { bindings.unbind(socket, from: person) }
        return sockets
    }

    /// Forgets a socket that has closed; its id never comes again.
    package mutating func unbind(socketID: String) { bindings.unbind(socketID) }
}
