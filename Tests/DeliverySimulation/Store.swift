import HubCore
import HubDelivery
import HubTesting

struct RowKey: Hashable {
    let event: Int
    let device: Int
}

/// The store, the outbox, the gateways, and what a crash leaves of them.
extension Simulation {
    /// Writes all of it; returns the new rows.
    func apply(_ transaction: Transaction) -> [Int] {
        var written: [Int] = []
        for publish in transaction.publishes {
            let event = events[publish.event]
            event.committedAt = now
            event.life = life
            event.isCommitted = true
            recent[event.channel].removeAll { events[$0].expiresAt < now }
            recent[event.channel].append(event.index)
            schedule(event.lifetime + 1, .expired(event.index))
            if publish.opening != nil {
                event.isOpen = true
                openEvents.insert(event.index)
            }
            for device in publish.rows { insert(event.index, device, &written) }
        }
        for row in transaction.rows { insert(row.event, row.device, &written) }
        for (event, recipients) in transaction.settled {
            for place in recipients { events[event].settled[place] = true }
        }
        for event in transaction.closed {
            events[event].isOpen = false
            openEvents.remove(event)
        }
        return written
    }

    private func insert(_ event: Int, _ device: Int, _ written: inout [Int]) {
        guard rowIndex[RowKey(event: event, device: device)] == nil else { return }
        rows.append(Row(event: event, device: device))
        openRows.insert(rows.count - 1)
        rowIndex[RowKey(event: event, device: device)] = rows.count - 1
        written.append(rows.count - 1)
    }

    // MARK: Outbox

    func send(_ row: Int) {
        guard !rows[row].isDone else { return }
        let event = events[rows[row].event]
        let remaining = event.expiresAt - now
        guard remaining > 0, event.policy == .sync || remaining >= Decision.remainingMillisecondsMin else { return answered(row) }
        guard mayPass(row, event) else { return }
        rows[row].sentInLife = life
        // The gateway is not part of the process: what it took is shown, whatever becomes of the answer.
        let way = between(20, 300)
        schedule(way, .shown(row: row))
        schedule(way + between(1, 100), .answered(life: life, row: row))
    }

    /// Whether quiet hours and budgets let it out now.
    private func mayPass(_ row: Int, _ event: SimEvent) -> Bool {
        let channel = channels[event.channel]
        let person = devices[rows[row].device].person
        let key = RowKey(event: event.index, device: person)
        guard channel.isLimited, event.policy == .sync || !server.passed.contains(key) else { return true }
        let ruling = server.budget.rule(
            .init(
                app: "1", user: people[person].name, device: event.policy == .sync ? devices[rows[row].device].name : nil, id: event.name,
                policy: event.policy, group: "g\(event.number % 3)", expiresAt: wall + event.expiresAt - now),
            quietHours: channel.quietHours, now: wall)
        for id in ruling.displaced {
            guard let index = eventIndex[id] else { continue }
            drop(index, person, event.policy == .sync ? rows[row].device : nil, "replaced by a newer one of its group")
        }
        switch ruling.verdict {
        case .send:
            if event.policy != .sync { server.passed.insert(key) }
            return true
        case .wait(let until): schedule(until - wall, .send(life: life, row: row))
        case .drop(let reason):
            drop(event.index, person, event.policy == .sync ? rows[row].device : nil, reason.rawValue)
            answered(row)
        }
        return false
    }

    private func drop(_ event: Int, _ person: Int, _ device: Int?, _ reason: String) {
        let first = channels[events[event].channel].firstDevice
        for index in people[person].devices where device == nil || index == device {
            if !events[event].cells.isEmpty { events[event].cells[index - first].dropped = reason }
            if let row = rowIndex[RowKey(event: event, device: index)], rows[row].sentInLife != life { answered(row) }
        }
    }

    func shown(_ row: Int) {
        let event = events[rows[row].event]
        guard !event.cells.isEmpty, event.expiresAt >= now else { return }
        let cell = rows[row].device - channels[event.channel].firstDevice
        if event.cells[cell].pushShownAt == nil {
            event.cells[cell].pushShownAt = now
        } else if event.cells[cell].shownInLife == rows[row].sentInLife {
            violation("\(event.name) is pushed twice to \(devices[rows[row].device].name) without a crash")
        } else {
            report.duplicates["sent again after a crash: same apns-id and tag", default: 0] += 1
        }
        event.cells[cell].shownInLife = rows[row].sentInLife
    }

    func answered(_ row: Int) {
        rows[row].isDone = true
        openRows.remove(row)
    }

    // MARK: Crash

    func crash() {
        if !isEnding { schedule(between(0, 2 * settings.crashInterval), .crash) }
        guard isUp, !isEnding else { return }
        report.crashes += 1
        isUp = false
        // The disk may have had it before the process could tell.
        if let transaction = server.committing, chance(50) { _ = apply(transaction) }
        for index in connections.indices.reversed() {
            let connection = connections[index]
            guard connection.life == life else { break }
            connection.isOpenAtServer = false
            devices[connection.device].attached = []
            let device = devices[connection.device]
            if device.connection == index, isRunning(device) {
                schedule(between(200, 6000), .connect(connection.device, step: device.step))
            }
        }
        let down = between(300, 5000)
        downtimes.append((now, now + down))
        schedule(down, .boot)
    }

    func boot() {
        life += 1
        isUp = true
        server = Server()
        server.channels = Array(repeating: Array(repeating: Server.LoopChannel(), count: channels.count), count: Self.loops)
        server.attendance.booted(now: now)
        for row in openRows.sorted() { schedule(rows[row].sentInLife != nil ? 30_000 : between(0, 5), .send(life: life, row: row)) }
        for index in openEvents.sorted() { takeUp(events[index]) }
        for event in unanswered { post(.publish(event)) }
        // Everything that is due while nothing comes in.
        server.isTurnPlanned = true
        schedule(0, .turn(life: life))
    }

    /// Whoever was not done with gets the boot grace, and then a push.
    private func takeUp(_ event: SimEvent) {
        let channel = channels[event.channel]
        var targets: [Escalation.Target] = []
        for (place, person) in channel.people.enumerated()
        where !event.settled[place] && event.expiresAt > now && settings.broken != .noRecovery {
            event.confirmed[place] = false
            let wait: Int64 = event.policy == .critical ? 2000 : Int64(DeviceState.bootGraceSeconds) * 1000
            var devices: [String?] = [nil]
            if channel.scope == .device, settings.broken != .recoverTogether {
                let usable = Decision.usableDevices(people[person].record)
                devices = usable.filter { device in
                    rowIndex[RowKey(event: event.index, device: deviceIndex(device.id))] == nil
                }.map(\.id)
            }
            for device in devices {
                targets.append(
                    .init(
                        user: people[person].name, device: device, policy: event.policy, wait: wait,
                        lifetime: settings.broken == .forgetLifetime ? .max / 4 : event.expiresAt - now,
                        recipient: place, reason: "restart"))
            }
        }
        guard !targets.isEmpty else {
            event.isOpen = false
            openEvents.remove(event.index)
            return
        }
        // Nobody who is connected now was sent it.
        server.escalation.open(
            .init(
                number: event.number, event: event.name, app: "1", channel: channel.name,
                attendedUpTo: Array(repeating: 0, count: Self.loops), targets: targets), now: now)
        server.waiting += targets.count
        server.targets[event.index] = targets.count
    }
}
