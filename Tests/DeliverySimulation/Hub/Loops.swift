import HubCore
import HubDelivery

/// The loops: who is subscribed, which frames and PINGs go out, and what is reported of it.
struct SimLoops {
    var tickets = Array(repeating: UInt64(0), count: Simulation.loops)
    var cursors = Array(repeating: UInt64(0), count: Simulation.loops)
    /// One per loop and channel.
    var channels: [[LoopChannel]]
    /// Per loop, the long turn that it is in.
    var stalls: [Stall?] = Array(repeating: nil, count: Simulation.loops)
    /// When a loop last caught up.
    var resumedAt: Int64 = 0

    init(channels count: Int) {
        channels = Array(repeating: Array(repeating: LoopChannel(), count: count), count: Simulation.loops)
    }

    struct LoopChannel {
        var subscribers: [Int] = []
        var unpinged: [UInt64] = []
        /// As the loops' pace of PINGs: when all that were sent would have gone out at one for each interval.
        var pingsPaidAt: Int64 = 0
        var isPingPlanned = false
    }

    /// A loop's long turn.
    struct Stall {
        let since: Int64
        var waiting: [Simulation.Action] = []
    }
}

extension Simulation {
    /// A hub's pace of PINGs after events of one channel; shorter bursts, so that many events have to wait for theirs.
    private static let pingInterval: Int64 = 250
    private static let pingBurst: Int64 = 2

    /// One event reaches a loop.
    func fanOut(_ release: DeliveryBook.Release, loop: Int) {
        let event = events[Int(release.publish)]
        if event.policy != .realtimeOnly, !event.isCommitted { violation("\(event.name) goes out and is not committed") }
        for index in loopsState.channels[loop][event.channel].subscribers {
            let connection = connections[index]
            if let upTo = release.attendedUpTo?[loop], connection.ticket > upTo { continue }
            if connection.id == release.excluded || connection.roles.isDisjoint(with: release.roles) && release.roles != .everybody {
                continue
            }
            let person = devices[connection.device].person
            // A person who was removed before the publish came is not reached by it.
            if event.isCommitted, event.places[person] == nil, people[person].changedAt < event.postedAt {
                violation("\(event.name) goes to \(people[person].name), who is none of its recipients")
            }
            write(.frame(event.index, replay: 0), to: index)
        }
        guard let number = release.receipt else { return event.cursors[loop] = 0 }
        loopsState.channels[loop][event.channel].unpinged.append(number)
        let channel = loopsState.channels[loop][event.channel]
        let late = channel.pingsPaidAt - Self.pingInterval * (Self.pingBurst - 1) - now
        if late <= 0 {
            receiptPing(loop: loop, channel: event.channel)
        } else if !channel.isPingPlanned {
            loopsState.channels[loop][event.channel].isPingPlanned = true
            schedule(late, .receiptPing(life: life, loop: loop, channel: event.channel))
        }
    }

    func receiptPing(loop: Int, channel: Int) {
        loopsState.channels[loop][channel].isPingPlanned = false
        let numbers = loopsState.channels[loop][channel].unpinged
        guard !numbers.isEmpty else { return }
        loopsState.channels[loop][channel].unpinged = []
        loopsState.channels[loop][channel].pingsPaidAt = max(loopsState.channels[loop][channel].pingsPaidAt, now) + Self.pingInterval
        let cursor = nextCursor(loop)
        for connection in loopsState.channels[loop][channel].subscribers { ask(connection, cursor) }
        for number in numbers { if let event = hub.numbers[number] { events[event].cursors[loop] = cursor } }
        report(.pinged(events: numbers, cursor: cursor), loop: loop)
    }

    /// A browser's network process answers PINGs for a page.
    private func ask(_ index: Int, _ cursor: UInt64) {
        let isPage = devices[connections[index].device].kind.isBrowser && settings.broken != .networkProcessProves
        write(isPage ? .pagePing(cursor) : .ping(cursor), to: index)
    }

    private func nextCursor(_ loop: Int) -> UInt64 {
        loopsState.cursors[loop] += 1
        return loopsState.cursors[loop]
    }

    func report(_ report: DeliveryBook.Report, loop: Int) { post(.item(.report(loop: loop, report))) }

    /// One message of delivery reaches a loop.
    func receive(_ message: LoopWord, loop: Int) {
        switch message {
        case .prove(let event, let ids):
            let cursor = nextCursor(loop)
            for id in ids { if let index = connectionIndex[id], connections[index].isOpenAtServer { ask(index, cursor) } }
            report(.proving(event: event, cursor: cursor), loop: loop)
        case .replay(let token, let replay): write(replay, token: token, loop: loop)
        case .hear(let round): post(.item(.heard(round: round, source: loop, newcomers: 0)))
        case .roles(let id, let roles): if let index = connectionIndex[id] { connections[index].roles = roles }
        case .expel(let removal): if settings.broken != .keepRemoved { expel(removal, loop: loop) }
        case .definitionsChanged:
            if settings.broken == .reloadAtOnce { return }
            for channel in channels.indices {
                for index in loopsState.channels[loop][channel].subscribers { report(attached(index, ticket: nil), loop: loop) }
            }
            report(.definitionsRead, loop: loop)
        }
    }

    /// Messages of delivery to a loop, besides publications.
    enum LoopWord {
        case prove(UInt64, [ConnectionID])
        case replay(UInt64, Replay)
        case hear(UInt64)
        case roles(ConnectionID, RoleSet)
        case expel(DeliveryBook.Removal)
        case definitionsChanged
    }

    func attached(_ index: Int, ticket: UInt64?) -> DeliveryBook.Report {
        let connection = connections[index]
        let device = devices[connection.device]
        return .attached(
            connection.id, socket: "s\(index)", app: "1", channel: channels[device.channel].name, user: people[device.person].name,
            isBrowser: device.kind.isBrowser, ticket: ticket, silenceMax: .seconds(25))
    }

    private func write(_ replay: Replay, token: UInt64, loop: Int) {
        guard let index = connectionIndex[replay.arrival.connection], connections[index].isOpenAtServer, connections[index].isSubscribed
        else { return report(.replayed(replay.arrival.connection, tokens: [token], cursor: 0), loop: loop) }
        let cursor = nextCursor(loop)
        for item in replay.items { if let event = eventIndex[item.event] { write(.frame(event, replay: cursor), to: index) } }
        ask(index, cursor)
        report(.replayed(connections[index].id, tokens: [token], cursor: cursor), loop: loop)
    }

    private func expel(_ removal: DeliveryBook.Removal, loop: Int) {
        func putOut(_ channel: String, _ user: String?) {
            guard let channel = channelIndex[channel] else { return }
            for index in loopsState.channels[loop][channel].subscribers {
                if let user, people[devices[connections[index].device].person].name != user { continue }
                connections[index].isSubscribed = false
                connections[index].roles = .unmatched
                loopsState.channels[loop][channel].subscribers.removeAll { $0 == index }
                report(.detached(connections[index].id, channel: channels[channel].name), loop: loop)
            }
        }
        switch removal.meant {
        case .everybody(let channel): putOut(channel, nil)
        case .user(let user, let channel): putOut(channel, user)
        case .session, .nobodyElse: break
        }
        for signed in removal.signed { putOut(signed.channel, signed.user) }
    }

    // MARK: From the connections

    func received(_ message: Upstream, from connection: SimConnection, _ index: Int) {
        guard connection.isOpenAtServer, connection.life == life, isUp else { return }
        let loop = connection.id.loop
        switch message {
        case .subscribe:
            let device = devices[connection.device]
            // Its signature is refused.
            guard people[device.person].isOnRoster, channels[device.channel].isLiving, !connection.isSubscribed else { return }
            loopsState.tickets[loop] += 1
            connection.ticket = loopsState.tickets[loop]
            connection.isSubscribed = true
            loopsState.channels[loop][device.channel].subscribers.append(index)
            // The app had the hub sign its subscription.
            post(
                .item(
                    .signed(
                        connection.id, socket: "s\(index)", app: "1", user: people[device.person].name, device: device.name,
                        channel: channels[device.channel].name)))
            post(.attached(index, ticket: connection.ticket))
            // The loop remembers what the app said before.
            if connection.loopState != .unknown { post(.state(index, connection.loopState, keepsWorking: connection.loopKeepsWorking)) }
        case .pong(let cursor, let read):
            noteArrival(connection, index, cursor: cursor, read: read)
            post(.receipt(index, cursor: cursor, read: read))
        case .state(let state, let keepsWorking):
            (connection.loopState, connection.loopKeepsWorking) = (state, keepsWorking)
            post(.state(index, state, keepsWorking: keepsWorking))
        case .close: disconnect(index, mayReturn: false)
        }
    }

    /// Notes a receipt that waits for its loop, and the app's word before it. A word behind the end of its connection is lost.
    func noteWaiting(_ message: Upstream, of connection: SimConnection, _ index: Int) {
        if connection.endWaits { return }
        switch message {
        case .pong(let cursor, let read): noteArrival(connection, index, cursor: cursor, read: read)
        case .state(let state, _): connection.loopState = state
        case .subscribe, .close: break
        }
    }

    private func noteArrival(_ connection: SimConnection, _ index: Int, cursor: UInt64, read: Int) {
        let device = devices[connection.device]
        guard !device.kind.tellsOverHTTP, connection.loopState == .foreground, device.attached == [index] else { return }
        for (number, replay) in connection.read[min(connection.receipted, read)..<read] {
            let event = events[number]
            let cell = connection.device - channels[event.channel].firstDevice
            guard !event.cells.isEmpty, replay == 0, event.life == life, let needed = event.cursors[connection.id.loop], cursor >= needed
            else { continue }
            if event.cells[cell].arrivedInLife != life { event.cells[cell].arrivedAt = now }
            event.cells[cell].arrivedInLife = life
        }
    }

    func disconnect(_ index: Int, mayReturn: Bool) {
        let connection = connections[index]
        guard connection.isOpenAtServer, connection.life == life, isUp else { return }
        connection.isOpenAtServer = false
        loopsState.channels[connection.id.loop][devices[connection.device].channel].subscribers.removeAll { $0 == index }
        post(.disconnected(index, mayReturn: mayReturn))
    }
}
