import HubCore
import HubDelivery
import HubTesting

/// Delivery's pure parts in a world that goes wrong: loops, a delivery task, a store, gateways, networks, devices and people, on
/// one clock and from one seed.
///
/// What the parts decide is compared with what the people really saw.
package final class Simulation {
    enum Action {
        case publish
        case publication(life: Int, loop: Int, event: Int, attendedUpTo: UInt64)
        case probe(life: Int, loop: Int, channel: Int)
        case down(Int, Downstream)
        case up(Int, Upstream)
        case deviceState(Int, AppState)
        case person(Int, step: Int)
        case connect(Int, step: Int)
        case suspend(Int, step: Int)
        case drain(Int)
        case silence(Int)
        case lost(Int)
        case turn(life: Int)
        case committed(life: Int)
        case send(life: Int, row: Int)
        case shown(row: Int)
        case answered(life: Int, row: Int)
        case crash
        case boot
        case expired(Int)
        case stall
        case resume(life: Int, loop: Int)
    }

    let settings: SimulationSettings
    var random: SeededRandom
    var now: Int64 = 0
    private var queue = ActionQueue()
    package internal(set) var report: SimulationReport

    // The world.
    var channels: [SimChannel] = []
    var people: [SimPerson] = []
    var devices: [SimDevice] = []
    var connections: [SimConnection] = []
    var connectionIndex: [ConnectionID: Int] = [:]
    var personIndex: [String: Int] = [:]
    /// Milliseconds since 1970, for what is compared with the wall's clock.
    var wall: Int64 { ManualClock.start + now }
    var downtimes: [(from: Int64, until: Int64)] = []
    var isEnding = false
    var publishedPairs = 0
    /// Publishes without a 2xx.
    var unanswered: [Int] = []

    // The store: survives everything.
    var events: [SimEvent] = []
    var rows: [Row] = []
    var openRows: Set<Int> = []
    var openEvents: Set<Int> = []
    var eventIndex: [String: Int] = [:]
    var rowIndex: [RowKey: Int] = [:]
    /// Per channel, events that may not have expired.
    var recent: [[Int]] = []

    // The server: gone with a crash.
    static let loops = 2
    var life = 1
    var isUp = true
    var server = Server()

    package init(_ settings: SimulationSettings) {
        self.settings = settings
        random = SeededRandom(state: settings.seed)
        report = SimulationReport(seed: settings.seed)
        populate()
    }

    func schedule(_ delay: Int64, _ action: Action) { queue.add(now + delay, action) }
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    func between(_ low: Int64, _ high: Int64) -> Int64 { Int64.random(in: low...high, using: &random) }

    /// Publishes until there are as many pairs as asked for, lets every event live to its end, sends everybody home, and looks
    /// at what is left.
    /// - Parameter stopsAtFirst: ends with the first thing that has to be 0 and is not, for who asks only whether there is one.
    package func run(stopsAtFirst: Bool = false) -> SimulationReport {
        schedule(5000, .publish)
        for device in devices.indices { schedule(between(0, 10_000), .person(device, step: 0)) }
        planStall()
        if settings.crashInterval > 0 { schedule(between(0, 2 * settings.crashInterval), .crash) }
        while let (at, action) = queue.removeFirst() {
            now = at
            report.steps += 1
            perform(action)
            check()
            if report.violationCount > 1000 || stopsAtFirst && !report.isClean { break }
        }
        report.simulatedMilliseconds = now
        if report.violationCount == 0 { checkNothingLeft() }
        return report
    }

    /// What holds after every step.
    private func check() {
        guard isUp else { return }
        // The delivery task is asleep only while nothing is due; it waits for the store, and for nothing else.
        if server.committing == nil, let due = server.escalation.nextDue, due < heardUpTo - Server.turnMax {
            violation("a push is \(now - due) ms late")
        }
        let targets = server.escalation.targetCount
        if targets != server.waiting { violation("\(targets) targets, and \(server.waiting) were opened") }
    }

    private func checkNothingLeft() {
        if server.escalation.eventCount != 0 { violation("\(server.escalation.eventCount) events are still open") }
        if server.escalation.channelCount != 0 { violation("\(server.escalation.channelCount) channels are still watched") }
        if server.escalation.agendaCount > 66 { violation("\(server.escalation.agendaCount) entries are left on the agenda") }
        if server.attendance.connectionCount != 0 || server.attendance.peopleCount != 0 {
            violation("\(server.attendance.connectionCount) connections of \(server.attendance.peopleCount) people are still in the book")
        }
        if !openEvents.isEmpty { violation("\(openEvents.count) fan-outs are still open in the store") }
        if !openRows.isEmpty { violation("\(openRows.count) rows are still open in the store") }
    }

    func perform(_ action: Action) {
        if waits(action) { return }
        switch action {
        case .publish: publish()
        case .publication(let life, let loop, let event, let attendedUpTo) where life == self.life && isUp:
            fanOut(event, loop: loop, attendedUpTo: attendedUpTo)
        case .probe(let life, let loop, let channel) where life == self.life && isUp: probe(loop: loop, channel: channel)
        case .down(let connection, let message): arrived(message, at: connections[connection], connection)
        case .up(let connection, let message): received(message, from: connections[connection], connection)
        case .deviceState(let device, let state): if isUp { post(.deviceState(device, state)) }
        case .person(let device, let step) where step == devices[device].step: live(device)
        case .connect(let device, let step) where step == devices[device].step: connect(device)
        case .suspend(let device, let step) where step == devices[device].step: suspend(device)
        case .drain(let device): drain(device)
        case .silence(let connection): closeIfSilent(connection)
        case .lost(let connection): disconnect(connection, mayReturn: true)
        case .turn(let life) where life == self.life && isUp: turn()
        case .committed(let life) where life == self.life && isUp: committed()
        case .send(let life, let row) where life == self.life && isUp: send(row)
        case .shown(let row): shown(row)
        case .answered(let life, let row) where life == self.life && isUp: answered(row)
        case .crash: crash()
        case .boot: boot()
        case .expired(let event): judge(events[event])
        case .stall: stall()
        case .resume(let life, let loop) where life == self.life && isUp: resume(loop)
        default: break
        }
    }

    // MARK: Publishing

    private func publish() {
        guard publishedPairs < settings.pairs else {
            isEnding = true
            for device in devices.indices { goHome(device) }
            return
        }
        schedule(between(0, 2 * 2000 / Int64(settings.channels)), .publish)
        let channel = Int.random(in: 0..<channels.count, using: &random)
        let policies: [Policy] = [
            .notify, .notify, .notify, .notify, .critical, .critical, .critical, .sync, .both, .pushOnly, .realtimeOnly,
        ]
        let lifetimes: [Int64] = [6000, 20_000, 45_000, 60_000, 90_000, 120_000]
        let members = channels[channel].people
        let last = people[members[members.count - 1]].devices.upperBound
        let event = SimEvent(
            index: events.count, number: UInt64(events.count + 1), channel: channel,
            policy: policies.randomElement(using: &random) ?? .notify,
            lifetime: lifetimes.randomElement(using: &random) ?? 60_000, actor: chance(20) ? members.randomElement(using: &random) : nil,
            recipients: members.count, devices: last - channels[channel].firstDevice)
        events.append(event)
        eventIndex[event.name] = event.index
        publishedPairs += members.count
        report.events += 1
        submit(event.index)
    }

    /// The publisher asks again until it has an answer.
    private func submit(_ event: Int) {
        unanswered.append(event)
        if isUp { post(.publish(event)) }
    }
}

/// Actions by time; those of one time in the order in which they were planned.
struct ActionQueue {
    private var items: [(at: Int64, order: UInt64, action: Simulation.Action)] = []
    private var lastOrder: UInt64 = 0

    mutating func add(_ at: Int64, _ action: Simulation.Action) {
        lastOrder += 1
        items.append((at, lastOrder, action))
        var child = items.count - 1
        while child > 0, isBefore(child, (child - 1) / 2) {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() -> (Int64, Simulation.Action)? {
        guard let last = items.popLast() else { return nil }
        guard let first = items.first else { return (last.at, last.action) }
        items[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count && isBefore(child, least) { least = child }
            if least == parent { return (first.at, first.action) }
            items.swapAt(parent, least)
            parent = least
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool { (items[left].at, items[left].order) < (items[right].at, items[right].order) }
}
