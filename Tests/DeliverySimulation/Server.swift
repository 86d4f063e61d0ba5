import HubCore
import HubDelivery
import HubTesting

/// What a crash takes: the loops' and the delivery task's memory.
struct Server {
    /// A turn of the delivery task begins no later after it could, in milliseconds.
    static let turnMax: Int64 = 5
    /// Confirmations are written at most so much later.
    static let bitsDelay: Int64 = 250

    var attendance = Attendance()
    var escalation = Escalation()
    var budget = PushBudget()
    /// Events that a participant's budget let pass, for all of their devices.
    var passed: Set<RowKey> = []
    /// Targets of events that were opened and not closed.
    var waiting = 0
    var targets: [Int: Int] = [:]

    // The loops.
    var tickets = Array(repeating: UInt64(0), count: Simulation.loops)
    var cursors = Array(repeating: UInt64(0), count: Simulation.loops)
    var channels: [[LoopChannel]] = []

    // The delivery task.
    var attendedUpTo = Array(repeating: UInt64(0), count: Simulation.loops)
    var inbox: [Report] = []
    var isTurnPlanned = false
    var committing: Transaction?
    var returned: [Int] = []
    var bits: [(event: Int, recipients: [Int])] = []
    var closing: [Int] = []
    var bitsSince: Int64?
    var wakeAt: Int64?
    /// Per loop, the long turn that it is in.
    var stalls: [Stall?] = Array(repeating: nil, count: Simulation.loops)
    /// When the loops had last reported all that had come.
    var heardAt = Int64.min / 2

    struct LoopChannel {
        var subscribers: [Int] = []
        var unprobed: [UInt64] = []
        /// As the loops' pace of PINGs: when all that were sent would have gone out at one for each interval.
        var probesPaidAt: Int64 = 0
        var isProbePlanned = false
    }
}

// MARK: Loops

extension Simulation {
    /// A hub's pace of PINGs behind events of one channel; shorter bursts, so that many events have to wait for theirs.
    private static let probeInterval: Int64 = 250
    private static let probeBurst: Int64 = 2

    func fanOut(_ index: Int, loop: Int, attendedUpTo: UInt64) {
        let event = events[index]
        if !event.isCommitted { violation("\(event.name) goes out and is not committed") }
        guard event.policy.usesSocket else { return }
        for connection in server.channels[loop][event.channel].subscribers where connections[connection].ticket <= attendedUpTo {
            write(.frame(index, replay: 0), to: connection)
        }
        guard event.policy.pushKind != nil else { return }
        server.channels[loop][event.channel].unprobed.append(event.number)
        let channel = server.channels[loop][event.channel]
        let late = channel.probesPaidAt - Self.probeInterval * (Self.probeBurst - 1) - now
        if late <= 0 {
            probe(loop: loop, channel: event.channel)
        } else if !channel.isProbePlanned {
            server.channels[loop][event.channel].isProbePlanned = true
            schedule(late, .probe(life: life, loop: loop, channel: event.channel))
        }
    }

    func probe(loop: Int, channel: Int) {
        server.channels[loop][channel].isProbePlanned = false
        let numbers = server.channels[loop][channel].unprobed
        guard !numbers.isEmpty else { return }
        server.channels[loop][channel].unprobed = []
        server.channels[loop][channel].probesPaidAt = max(server.channels[loop][channel].probesPaidAt, now) + Self.probeInterval
        let cursor = nextCursor(loop)
        for connection in server.channels[loop][channel].subscribers { ask(connection, cursor) }
        for number in numbers { events[Int(number) - 1].cursors[loop] = cursor }
        post(.probed(loop: loop, numbers, cursor: cursor))
    }

    /// A browser's network process answers PINGs for a page.
    private func ask(_ index: Int, _ cursor: UInt64) {
        let isPage = devices[connections[index].device].kind.isBrowser && settings.broken != .networkProcessProves
        write(isPage ? .pagePing(cursor) : .ping(cursor), to: index)
    }

    func nextCursor(_ loop: Int) -> UInt64 {
        server.cursors[loop] += 1
        return server.cursors[loop]
    }

    func received(_ message: Upstream, from connection: SimConnection, _ index: Int) {
        guard connection.isOpenAtServer, connection.life == life, isUp else { return }
        let loop = connection.id.loop
        switch message {
        case .subscribe:
            server.tickets[loop] += 1
            connection.ticket = server.tickets[loop]
            server.channels[loop][devices[connection.device].channel].subscribers.append(index)
            post(.attached(index, ticket: connection.ticket))
        case .pong(let cursor, let read):
            noteArrival(connection, index, cursor: cursor, read: read)
            post(.receipt(index, cursor: cursor, read: read))
        case .state(let state, let keepsWorking):
            connection.loopState = state
            post(.state(index, state, keepsWorking: keepsWorking))
        case .close: disconnect(index, mayReturn: false)
        }
    }

    /// Of what waits for the loop: a receipt has come, and what the app said before it.
    func noteWaiting(_ message: Upstream, of connection: SimConnection, _ index: Int) {
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
            event.cells[cell].arrivedInLife = life
        }
    }

    func disconnect(_ index: Int, mayReturn: Bool) {
        let connection = connections[index]
        guard connection.isOpenAtServer, connection.life == life, isUp else { return }
        connection.isOpenAtServer = false
        server.channels[connection.id.loop][devices[connection.device].channel].subscribers.removeAll { $0 == index }
        post(.disconnected(index, mayReturn: mayReturn))
    }
}

// MARK: The delivery task

extension Simulation {
    func post(_ report: Report) {
        server.inbox.append(report)
        guard !server.isTurnPlanned else { return }
        server.isTurnPlanned = true
        schedule(between(0, 3), .turn(life: life))
    }

    func turn() {
        guard server.committing == nil else { return }
        server.isTurnPlanned = false
        if !isStalled { server.heardAt = now }
        let inbox = server.inbox
        server.inbox = []
        var transaction = Transaction()
        if settings.broken == .dueBeforeReceipts {
            for effect in server.escalation.advance(now: heardUpTo) { carryOut(effect, &transaction) }
        }
        for report in inbox { handle(report, &transaction) }
        for effect in server.escalation.advance(now: heardUpTo) { carryOut(effect, &transaction) }
        let areBitsDue = server.bitsSince.map { now >= $0 + Server.bitsDelay } ?? false
        guard !transaction.isEmpty || areBitsDue else { return rest() }
        transaction.settled += server.bits
        transaction.closed += server.closing
        (server.bits, server.closing, server.bitsSince) = ([], [], nil)
        server.committing = transaction
        // Now and then the disk takes its time.
        schedule(Int.random(in: 0..<500, using: &random) == 0 ? between(1000, 4000) : between(2, 15), .committed(life: life))
    }

    /// Until something comes, falls due, or has to be written.
    private func rest() {
        for connection in server.returned { replay(connection) }
        server.returned = []
        let wake = [server.escalation.nextDue, server.bitsSince.map { $0 + Server.bitsDelay }].compactMap { $0 }.min()
        // A loop that is late tells when it has caught up.
        guard let wake, wake != server.wakeAt, !isStalled || wake > now else { return }
        server.wakeAt = wake
        schedule(max(0, wake - now), .turn(life: life))
    }

    private func handle(_ report: Report, _ transaction: inout Transaction) {
        switch report {
        case .attached(let index, let ticket): attached(index, ticket)
        case .state(let index, let state, let keepsWorking):
            connections[index].attachedUserState = state
            connections[index].keepsWorking = keepsWorking
            server.attendance.setState(connections[index].id, state, keepsWorking: keepsWorking)
        case .deviceState(let device, let state):
            server.attendance.setDeviceState(
                app: "1", user: people[devices[device].person].name, device: devices[device].name, state,
                keepsWorking: devices[device].kind.showsUnseen && state == .background)
            for index in devices[device].attached { connections[index].attachedUserState = state }
        case .disconnected(let index, let mayReturn):
            server.attendance.disconnected(connections[index].id, mayReturn: mayReturn, now: now)
            devices[connections[index].device].attached.removeAll { $0 == index }
        case .probed(let loop, let numbers, let cursor):
            for number in numbers { server.escalation.probed(number, loop: loop, cursor: cursor) }
        case .proving(let loop, let number, let cursor): server.escalation.proving(number, loop: loop, cursor: cursor)
        case .replayed(let index, let replayed, let cursor):
            let user = people[devices[connections[index].device].person].name
            for event in replayed {
                server.escalation.replayed(events[event].name, user: user, to: connections[index].id, cursor: cursor, now: now)
            }
        case .receipt(let index, let cursor, let read): receipt(connections[index], index, cursor: cursor, read: read)
        case .publish(let event): decide(events[event], &transaction)
        }
    }

    private func attached(_ index: Int, _ ticket: UInt64) {
        let connection = connections[index]
        let device = devices[connection.device]
        server.attendedUpTo[connection.id.loop] = ticket
        server.attendance.attach(
            connection.id, app: "1", channel: channels[device.channel].name, user: people[device.person].name, device: device.name,
            ticket: ticket, isBrowser: device.kind.isBrowser, now: now)
        devices[connection.device].attached.append(index)
        if settings.broken == .provisionalSettles, !device.kind.declares { server.attendance.setState(connection.id, .foreground) }
        if settings.broken == .returnCancels {
            for event in openEvents.sorted() where events[event].channel == device.channel {
                server.escalation.confirmed(event: events[event].name, user: people[device.person].name)
            }
        }
        if channels[device.channel].replays { server.returned.append(index) }
    }

    /// What is committed, not expired and not confirmed, and was published before the seat was taken.
    private func replay(_ index: Int) {
        let connection = connections[index]
        let device = devices[connection.device]
        guard connection.isOpenAtServer else { return }
        let place = people[device.person].place
        let missed = recent[device.channel].filter { number in
            let event = events[number]
            guard event.isCommitted, event.expiresAt > now, event.policy.usesSocket, event.policy.pushKind != nil,
                event.actor != device.person
            else { return false }
            return !event.confirmed[place] && (event.life != life || event.attendedUpTo[connection.id.loop] < connection.ticket)
        }
        guard !missed.isEmpty else { return }
        let cursor = nextCursor(connection.id.loop)
        for event in missed { write(.frame(event, replay: cursor), to: index) }
        ask(index, cursor)
        post(.replayed(index, missed, cursor: cursor))
    }

    private func receipt(_ connection: SimConnection, _ index: Int, cursor: UInt64, read: Int) {
        server.attendance.heard(connection.id, now: now)
        noteReceipt(connection, index, cursor: cursor, read: read)
        if settings.broken == .ignoreReceipts { return }
        let isBroken = settings.broken == .backgroundSettles && connection.attachedUserState == .background
        if isBroken { server.attendance.setState(connection.id, .foreground) }
        server.escalation.received(
            .init(connection: connection.id, cursor: cursor), seats: server.attendance.seats(of: connection.id), now: now)
        if isBroken { server.attendance.setState(connection.id, .background, keepsWorking: connection.keepsWorking) }
    }

    /// What the receipt means in truth.
    private func noteReceipt(_ connection: SimConnection, _ index: Int, cursor: UInt64, read: Int) {
        let device = devices[connection.device]
        let isOnScreen = !device.kind.tellsOverHTTP && connection.attachedUserState == .foreground || connection.keepsWorking
        let counts = device.kind.isBrowser || device.attached == [index]
        while connection.receipted < read {
            let (number, replay) = connection.read[connection.receipted]
            let event = events[number]
            if event.policy.pushKind != nil {
                guard let needed = replay > 0 ? replay : event.cursors[connection.id.loop], cursor >= needed else { return }
            }
            connection.receipted += 1
            guard !event.cells.isEmpty else { continue }
            let cell = connection.device - channels[event.channel].firstDevice
            if event.cells[cell].receiptAt == nil {
                event.cells[cell].receiptAt = now
                event.cells[cell].receiptState = connection.attachedUserState
            }
            if !counts { event.cells[cell].isContradicted = true }
            if isOnScreen, counts, event.cells[cell].settledInLife == nil { event.cells[cell].settledInLife = life }
        }
    }

    private func decide(_ event: SimEvent, _ transaction: inout Transaction) {
        guard !event.isCommitted, !transaction.publishes.contains(where: { $0.event == event.index }) else { return }
        let channel = channels[event.channel]
        var targets: [Escalation.Target] = []
        var pushes: [Int] = []
        for (place, person) in channel.people.enumerated() {
            let decision = Decision.make(
                .init(
                    policy: event.policy, expiresAt: wall + event.lifetime, now: wall, isActor: event.actor == person, scope: channel.scope,
                    devices: people[person].record,
                    reach: { [server, now] in
                        let state = server.attendance.state(
                            app: "1", channel: channel.name, user: self.people[person].name, device: $0, now: now)
                        return (state.0, state.graceLeft)
                    }))
            event.settled[place] = decision.awaited.isEmpty
            event.awaited[place] = !decision.awaited.isEmpty
            for push in decision.pushes {
                let device = deviceIndex(push.device)
                pushes.append(device)
                event.cells[device - channel.firstDevice].atCommit = push.reason
                event.cells[device - channel.firstDevice].pushDecidedAt = now
                event.cells[device - channel.firstDevice].pushLife = life
            }
            if settings.broken == .halfSettles, !decision.pushes.isEmpty { event.settled[place] = true }
            if settings.broken == .presenceDecides, decision.reason == "live" {
                event.settled[place] = true
                continue
            }
            for awaited in decision.awaited {
                targets.append(
                    .init(
                        user: people[person].name, device: awaited.device, policy: event.policy,
                        wait: Int64(awaited.wait / .milliseconds(1)),
                        lifetime: settings.broken == .forgetLifetime ? .max / 4 : event.lifetime, recipient: place, reason: awaited.reason))
            }
        }
        event.attendedUpTo = server.attendedUpTo
        event.cursors = Array(repeating: nil, count: Self.loops)
        let opening = Escalation.Opening(
            number: event.number, event: event.name, app: "1", channel: channel.name,
            attendedUpTo: settings.broken == .ignoreTicket ? server.attendedUpTo.map { _ in .max } : server.attendedUpTo, targets: targets)
        transaction.publishes.append((event.index, targets.isEmpty ? nil : opening, pushes, server.attendedUpTo))
        if settings.broken == .publishBeforeCommit { letOut(event.index, server.attendedUpTo) }
    }

    private func letOut(_ event: Int, _ attendedUpTo: [UInt64]) {
        for loop in 0..<Self.loops { schedule(1, .publication(life: life, loop: loop, event: event, attendedUpTo: attendedUpTo[loop])) }
    }

    private func carryOut(_ effect: Escalation.Effect, _ transaction: inout Transaction) {
        switch effect {
        case .push(let name, let targets, let settled):
            guard let index = eventIndex[name] else { return }
            for target in targets { push(events[index], target, &transaction) }
            let all = settings.broken == .halfSettles ? targets.map(\.recipient) : settled
            transaction.settled.append((index, all))
        case .prove(let number, _, let app, let channel, let users):
            var byLoop: [Int: [ConnectionID]] = [:]
            for user in users {
                for id in server.attendance.connections(app: app, channel: channel, user: user).sorted(by: { $0.rawValue < $1.rawValue }) {
                    byLoop[id.loop, default: []].append(id)
                }
            }
            for (loop, ids) in byLoop.sorted(by: { $0.key < $1.key }) {
                let cursor = nextCursor(loop)
                for id in ids { if let index = connectionIndex[id] { ask(index, cursor) } }
                post(.proving(loop: loop, number, cursor: cursor))
            }
        case .confirmed(let name, let recipients):
            guard let index = eventIndex[name] else { return }
            server.bits.append((index, recipients))
            server.bitsSince = server.bitsSince ?? now
            for place in recipients { events[index].confirmed[place] = true }
        // Its push may have left already, which is counted for what it is.
        case .answered: break
        case .closed(let name):
            guard let index = eventIndex[name] else { return }
            server.waiting -= server.targets.removeValue(forKey: index) ?? 0
            server.closing.append(index)
            server.bitsSince = server.bitsSince ?? now
        }
    }

    private func push(_ event: SimEvent, _ target: Escalation.Target, _ transaction: inout Transaction) {
        guard let person = personIndex[target.user] else { return }
        let first = channels[event.channel].firstDevice
        if !event.cells.isEmpty, event.policy != .both {
            for device in people[person].devices where target.device == nil || devices[device].name == target.device {
                if event.cells[device - first].arrivedInLife == life, event.cells[device - first].receiptAt == nil {
                    violation("push of \(event.name) to \(target.user), whose receipt lies in the inbox")
                }
                if event.cells[device - first].settledInLife == life {
                    violation("push of \(event.name) to \(target.user), who confirmed it on \(devices[device].name)")
                }
            }
        }
        for device in Decision.usableDevices(people[person].record) where target.device == nil || device.id == target.device {
            let index = deviceIndex(device.id)
            guard !event.cells.isEmpty, rowIndex[RowKey(event: event.index, device: index)] == nil else { continue }
            if event.cells[index - first].pushDecidedAt == nil {
                event.cells[index - first].pushDecidedAt = now
                event.cells[index - first].pushLife = life
            }
            transaction.rows.append((event.index, index))
        }
    }

    func committed() {
        guard let transaction = server.committing else { return }
        server.committing = nil
        let written = apply(transaction)
        for publish in transaction.publishes {
            let event = events[publish.event]
            unanswered.removeAll { $0 == publish.event }
            if settings.broken != .publishBeforeCommit { letOut(publish.event, publish.attendedUpTo) }
            guard let opening = publish.opening else { continue }
            server.escalation.open(opening, now: now)
            server.waiting += opening.targets.count
            server.targets[event.index] = opening.targets.count
        }
        for row in written { schedule(between(0, 5), .send(life: life, row: row)) }
        server.isTurnPlanned = true
        turn()
    }
}
