package import HubCore

/// The attendance book: which participants are attached where, with which device and in which app state.
///
/// A plain value, owned by one thread. Every operation costs as much as the connections of the one participant it concerns.
package struct Attendance: Sendable {
    private struct Seat {
        var user: String
        var device: String?
        /// Of the attendance report: tells which events were written to it.
        var ticket: UInt64
        /// Events with lower numbers count as not written to it.
        var firstEvent: UInt64 = 0
        /// When it was taken, in milliseconds on the caller's clock.
        var since: Int64
        /// Seats get growing numbers as they are taken.
        var order: UInt64
        /// The device has said on a newer seat in the channel that the app is in the background.
        var isDisplaced = false
        /// The device has other seats in the channel, as far as is known.
        var isOneOfSeveral = false
    }

    private struct Connection {
        let app: String
        let isBrowser: Bool
        /// No sign of life is ever older than this: the transport pings and closes.
        let silenceMaxMilliseconds: Int64
        var state: AppState
        /// The state came over this very connection, so that it has its place among the receipts.
        var isStateOrdered = true
        /// In the background it goes on working, as it said.
        var keepsWorking = false
        /// Milliseconds on the caller's clock.
        var lastSignOfLife: Int64
        /// By channel.
        var seats: [String: Seat]

        func deviceState(now: Int64) -> DeviceState {
            if state == .background { return keepsWorking ? .backgroundCapable : .background }
            let age = min(now - lastSignOfLife, silenceMaxMilliseconds)
            if age <= Int64(DeviceState.liveSeconds) * 1000 { return .live }
            return age <= Int64(DeviceState.quietSeconds) * 1000 ? .quiet : .background
        }
    }

    /// The most sockets whose device is remembered: each costs about 200 bytes, and a socket is usually subscribed within
    /// seconds of being bound. Beyond it the oldest is forgotten, and its device counts as unknown.
    package static let bindingsMax = 200_000

    private var connections: [ConnectionID: Connection] = [:]
    private var people: [Person: Set<ConnectionID>] = [:]
    private var lastOrder: UInt64 = 0
    private var travels: Absences
    /// Until then everybody who is not there counts as on the way back from the server's own absence.
    private var bootGraceEnd = Int64.min
    /// Seats taken before that end, and not told of yet.
    private var returns = 0
    private var bindings: SocketBindings

    /// - Parameter travellersMax: devices whose comings and goings are remembered.
    package init(bindingsMax: Int = Attendance.bindingsMax, travellersMax: Int = Absences.travellersMax) {
        bindings = SocketBindings(countMax: bindingsMax)
        travels = Absences(travellersMax: travellersMax)
    }

    /// Connections with at least one seat.
    package var connectionCount: Int { connections.count }
    /// People with at least one connection.
    package var peopleCount: Int { people.count }
    package var bindingCount: Int { bindings.count }
    /// Devices that were seen to go within the last minute.
    package var travellerCount: Int { travels.count }

    // MARK: Sockets

    /// The server has just come up: whoever is not there yet is on the way back.
    package mutating func booted(now: Int64) {
        bootGraceEnd = now + Int64(DeviceState.bootGraceSeconds) * 1000
    }

    /// How many have come since the last call, while people come back from the server's own absence.
    package mutating func takeReturns() -> Int {
        defer { returns = 0 }
        return returns
    }

    /// A connection's subscription to a channel was accepted, and the user is known. Attaching again replaces user and device.
    ///
    /// A new connection's app state is unknown, whatever an earlier connection of the device said: a state is not carried over. When
    /// an app whose device is known says on one connection that it is in the background, its older ones do not count any more: one
    /// that it lost sight of goes on answering for it. Merely being newer is not enough, because reports of a lost connection can
    /// come after those of the one that replaced it; but receipts are provisional while there are several, since what the app says
    /// on one connection has no order with those on another. Pages are not apps: each tab counts for itself.
    /// - Parameters:
    ///   - ticket: of the attendance report, from 1; nil: the one that the subscription has.
    ///   - silenceMax: how long the transport lets a connection of this app be silent.
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

    /// The subscription ended; what was never attached is ignored.
    package mutating func detach(_ connection: ConnectionID, channel: String) {
        guard var record = connections[connection], let seat = record.seats.removeValue(forKey: channel) else { return }
        connections[connection] = record.seats.isEmpty ? nil : record
        leave(connection, app: record.app, user: seat.user)
        rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device)
    }

    /// The connection is gone, with all its subscriptions.
    /// - Parameter mayReturn: it was cut off, so its device counts as on the way back for a while, to the channels it was in.
    package mutating func disconnected(_ connection: ConnectionID, mayReturn: Bool = false, now: Int64 = 0) {
        guard let record = connections.removeValue(forKey: connection) else { return }
        for (channel, seat) in record.seats {
            leave(connection, app: record.app, user: seat.user)
            rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device)
            travels.went(Person(app: record.app, user: seat.user), device: seat.device, channel: channel, mayReturn: mayReturn, now: now)
        }
    }

    /// A connection gave a sign of life.
    package mutating func heard(_ connection: ConnectionID, now: Int64) {
        connections[connection]?.lastSignOfLife = now
    }

    /// From now on the connection gets other events of the channel than before (its role changed, or was not known): receipts of
    /// the connection say nothing about events with lower numbers.
    package mutating func restart(_ connection: ConnectionID, channel: String, firstEvent: UInt64) {
        connections[connection]?.seats[channel]?.firstEvent = firstEvent
    }

    /// Decides which of an app's seats in a channel count: those that no newer one contradicts.
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
            connections[id]?.seats[channel]?.isDisplaced = order < contradicted
            connections[id]?.seats[channel]?.isOneOfSeveral = own.count > 1
        }
    }

    /// The app behind this connection told its state (`client-app-state`).
    /// - Parameter keepsWorking: in the background, too, it reads its socket and shows what comes.
    package mutating func setState(_ connection: ConnectionID, _ state: AppState, keepsWorking: Bool = false) {
        setState(connection, state, keepsWorking: keepsWorking, isOrdered: true)
    }

    private mutating func setState(_ connection: ConnectionID, _ state: AppState, keepsWorking: Bool, isOrdered: Bool) {
        guard var record = connections[connection] else { return }
        record.state = state
        record.isStateOrdered = isOrdered
        record.keepsWorking = keepsWorking
        connections[connection] = record
        guard !record.isBrowser else { return }
        for (channel, seat) in record.seats { rankSeats(app: record.app, channel: channel, user: seat.user, device: seat.device) }
    }

    /// A device told its state by HTTP: it holds for the device's connections and for the participant's connections of unknown device.
    ///
    /// Receipts of an app that is in the foreground, or keeps working, by its word over HTTP are provisional, as those of one that
    /// says nothing: its next word, that nobody looks any more, may come later than a receipt that it gave afterwards.
    package mutating func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool = false) {
        for connection in people[Person(app: app, user: user)] ?? [] {
            let isMeant = connections[connection]?.seats.values.contains {
                $0.user == user && ($0.device == nil || $0.device == device)
            }
            if isMeant == true { setState(connection, state, keepsWorking: keepsWorking, isOrdered: false) }
        }
    }

    /// How surely an event in `channel` reaches the user, or one of their devices, over the socket, and until when, in milliseconds
    /// from now, a return is waited for.
    /// - Parameter device: nil: all of them together. A connection whose device is unknown stands for every one.
    package func state(app: String, channel: String, user: String, device: String? = nil, now: Int64) -> (DeviceState, graceLeft: Int64) {
        let person = Person(app: app, user: user)
        let states = (people[person] ?? []).compactMap { id -> DeviceState? in
            guard let connection = connections[id], let seat = connection.seats[channel], seat.user == user, !seat.isDisplaced
            else { return nil }
            if let device, let own = seat.device, own != device { return nil }
            // Who comes and goes all the time would be waited for anew each time.
            if travels.isFlapping(person, device: seat.device, now: now) { return .background }
            return connection.deviceState(now: now)
        }
        if !states.isEmpty { return (DeviceState.best(of: states), 0) }
        let graceLeft = travels.graceLeft(person, device: device, channel: channel, now: now)
        if bootGraceEnd > now + graceLeft { return (.serverGrace, bootGraceEnd - now) }
        return graceLeft > 0 ? (.grace, graceLeft) : (.absent, 0)
    }

    /// One subscription of a connection, for judging its receipts.
    package struct KnownSeat: Sendable {
        package let app: String
        package let channel: String
        package let user: String
        package let device: String?
        package let ticket: UInt64
        /// Receipts say nothing about events with lower numbers.
        package let firstEvent: UInt64
        /// For receipts: `unknown` also where the app is in the foreground, or keeps working, but may take that back by another way
        /// than this connection.
        package let state: AppState
        /// In the background it reads and shows what comes, as it said.
        package let keepsWorking: Bool
    }

    /// What the connection is subscribed to, of channels that have a definition, and where no newer connection of its device says
    /// that the app is in the background.
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

    /// How many of the participant's connections are subscribed to the channel, and the best app state among them.
    package func presence(app: String, channel: String, user: String) -> (connections: Int, state: AppState)? {
        let states = connections(app: app, channel: channel, user: user).compactMap { connections[$0]?.state }
        guard !states.isEmpty else { return nil }
        return (states.count, states.contains(.foreground) ? .foreground : states.contains(.unknown) ? .unknown : .background)
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

    /// Signing a subscription told for whom a socket id is, and which device it belongs to; the socket's subscription follows.
    /// - Parameter now: milliseconds on a clock that only grows.
    package mutating func bind(socketID: String, app: String, user: String, device: String, now: Int64 = 0) {
        bindings.bind(socketID, to: Person(app: app, user: user), device: device, now: now)
    }

    /// When the user last came to the channel, or was last on the way somewhere: the hub has signed a subscription for a socket of theirs.
    /// - Returns: milliseconds on the caller's clock; nil: neither is known.
    package func cameAt(app: String, channel: String, user: String) -> Int64? {
        let person = Person(app: app, user: user)
        let seats = (people[person] ?? []).compactMap { id -> Int64? in
            guard let seat = connections[id]?.seats[channel], seat.user == user, !seat.isDisplaced else { return nil }
            return seat.since
        }
        return [seats.max(), bindings.boundAt(person)].compactMap { $0 }.max()
    }

    /// The device that `bind` named for this socket and this user.
    package func device(boundTo socketID: String, app: String, user: String) -> String? {
        bindings.device(of: socketID, person: Person(app: app, user: user))
    }

    /// The sockets that were bound for the user, and are bound no longer.
    package mutating func takeSockets(app: String, user: String) -> [String] {
        let person = Person(app: app, user: user)
        let sockets = bindings.sockets(of: person)
        for socket in sockets { bindings.unbind(socket, from: person) }
        return sockets
    }

    /// The socket is gone: its id will never come again.
    package mutating func unbind(socketID: String) { bindings.unbind(socketID) }
}
