import HubCore
import HubDefinitions
import HubDelivery
import HubOutbox
import HubTesting

/// The values that ship in a world that goes wrong: loops, stores, gateways, networks, devices and people. One clock and one seed
/// drive all of them.
///
/// The parts' decisions are compared with the truth of each device.
package final class Simulation {
    enum Action {
        case publish
        case again(Int)
        case publication(life: Int, loop: Int, DeliveryBook.Release)
        case loop(life: Int, loop: Int, LoopWord)
        case receiptPing(life: Int, loop: Int, channel: Int)
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
        case wake(life: Int)
        case committed(life: Int)
        case missed(life: Int, Arrival)
        case plan(life: Int)
        case planned(life: Int)
        case rested(life: Int)
        case change
        case rejoin(person: Int)
        case revive(channel: Int)
        case flow(life: Int)
        case leased(life: Int)
        case gatewayAnswered(life: Int, PushFlow.Answer)
        case settle(life: Int)
        case stopLanes
        case shown(row: Int)
        case crash
        case boot
        case expired(Int)
        case stall
        case resume(life: Int, loop: Int)
    }

    let settings: SimulationSettings
    var random: SeededRandom
    var now: Int64 = 0
    private var queue = ActionQueue<Action>()
    package internal(set) var report: SimulationReport

    // The world.
    var channels: [SimChannel] = []
    var people: [SimPerson] = []
    var devices: [SimDevice] = []
    var connections: [SimConnection] = []
    var connectionIndex: [ConnectionID: Int] = [:]
    var personIndex: [String: Int] = [:]
    /// Milliseconds since 1970, as the machine believes.
    var wall: Int64 { ManualClock.start + now + wallShift }
    var wallShift: Int64 = 0
    /// When the wall clock was set.
    var clockSteps: [Int64] = []
    var channelIndex: [String: Int] = [:]
    /// The definitions on disk.
    var definitions = DefinitionSet.empty
    /// The same with the roles in each other's place.
    lazy var reversed = SimKind.definitions(Set(channels.map(\.kind)), isReversed: true)
    var downtimes: [(from: Int64, until: Int64)] = []
    /// Until when the gateways' lanes stand still, and when they did.
    var laneStop: Int64 = 0
    var stops: [(from: Int64, until: Int64)] = []
    /// Since when a token is known to be dead: its gateway's answer has been stored by then.
    var deadSince: [String: Int64] = [:]
    /// Commits that took a second and more.
    var slowCommits: [(from: Int64, until: Int64)] = []
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

    // The hub: gone with a crash.
    static let loops = 2
    var life = 1
    var isUp = true
    var hub = SimHub(
        book: DeliveryBook(DeliveryBook.Settings(loopCount: Simulation.loops), definitions: .empty),
        flow: PushFlow(definitions: .empty, at: Moment(monotonic: 0, wall: ManualClock.start)))
    var loopsState = SimLoops(channels: 0)

    package init(_ settings: SimulationSettings) {
        self.settings = settings
        random = SeededRandom(state: settings.seed)
        report = SimulationReport(seed: settings.seed)
        populate()
    }

    func schedule(_ delay: Int64, _ action: Action) { queue.add(now + delay, action) }
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    func between(_ low: Int64, _ high: Int64) -> Int64 { Int64.random(in: low...high, using: &random) }

    /// Publishes the wanted number of pairs, and lets every event live to its end. Then everybody goes home, and nothing may be left.
    /// - Parameter stopsAtFirst: ends with the first thing that has to be 0 and is not, for who asks only whether there is one.
    package func run(stopsAtFirst: Bool = false) -> SimulationReport {
        schedule(5000, .publish)
        for device in devices.indices { schedule(between(0, 10_000), .person(device, step: 0)) }
        planStall()
        stopLanes()
        if settings.changeInterval > 0 { schedule(settings.changeInterval, .change) }
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

    /// Checks that hold after every step.
    private func check() {
        if isUp { checkLateness() }
    }

    private func checkNothingLeft() {
        let (escalation, attendance) = (hub.book.escalation, hub.book.attendance)
        if escalation.eventCount != 0 { violation("\(escalation.eventCount) events are still open") }
        if escalation.targetCount != 0 { violation("\(escalation.targetCount) targets are still counted") }
        if escalation.channelCount != 0 { violation("\(escalation.channelCount) channels are still watched") }
        if escalation.agendaCount > 66 { violation("\(escalation.agendaCount) entries are left on the agenda") }
        if hub.plan.contextCount != 0 { violation("\(hub.plan.contextCount) contexts are left in the plan") }
        if hub.reloads != 0 { violation("\(hub.reloads) callers of a reload still wait") }
        if attendance.connectionCount != 0 || attendance.peopleCount != 0 {
            violation("\(attendance.connectionCount) connections of \(attendance.peopleCount) people are still in the book")
        }
        if !unanswered.isEmpty { violation("\(unanswered.count) publishes have no answer") }
        if !openEvents.isEmpty { violation("\(openEvents.count) fan-outs are still open in the store") }
        if !openRows.isEmpty { violation("\(openRows.count) rows are still open in the store") }
    }

    func perform(_ action: Action) {
        if waits(action) { return }
        switch action {
        case .publish: publish()
        case .again(let event): if isUp, unanswered.contains(event), !events[event].isCommitted { post(.publish(event)) }
        case .publication(let life, let loop, let release) where life == self.life && isUp: fanOut(release, loop: loop)
        case .loop(let life, let loop, let word) where life == self.life && isUp: receive(word, loop: loop)
        case .receiptPing(let life, let loop, let channel) where life == self.life && isUp: receiptPing(loop: loop, channel: channel)
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
        case .wake(let life) where life == self.life && isUp: if hub.book.wakeAt.map({ $0 <= now }) == true { post(.item(.tick)) }
        case .committed(let life) where life == self.life && isUp: committed()
        case .missed(let life, let arrival) where life == self.life && isUp: missed(arrival)
        case .plan(let life) where life == self.life && isUp: turnOfPlan()
        case .planned(let life) where life == self.life && isUp: planned()
        case .rested(let life) where life == self.life && isUp: rested()
        case .change: change()
        case .rejoin(let person): rejoin(person)
        case .revive(let channel): revive(channel)
        case .flow(let life) where life == self.life && isUp: runFlow()
        case .leased(let life) where life == self.life && isUp: leased()
        case .gatewayAnswered(let life, let answer) where life == self.life && isUp: gatewayAnswered(answer)
        case .settle(let life) where life == self.life && isUp: settle()
        case .stopLanes: stopLanes()
        case .shown(let row): shown(row)
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
        let kind = channels[channel].kind
        let policy = policies.randomElement(using: &random) ?? .notify
        let lifetime = SimKind.lifetimes.randomElement(using: &random) ?? 60
        let role = kind.hasRoles && chance(50) ? SimKind.roles.randomElement(using: &random) : nil
        let actor = chance(20) ? channels[channel].people.randomElement(using: &random) : nil
        let excluded = actor.flatMap { people[$0].devices.compactMap { devices[$0].connection }.first }.map { connections[$0].id }
        let event = SimEvent(
            index: events.count, eventName: SimKind.event(policy, lifetime, role: role), channel: channel, policy: policy,
            lifetime: Int64(lifetime) * 1000, excluded: excluded,
            devices: channels[channel].endDevice - channels[channel].firstDevice)
        events.append(event)
        publishedPairs += channels[channel].people.count
        report.events += 1
        submit(event.index)
    }

    /// The publisher asks again until it has an answer.
    private func submit(_ event: Int) {
        unanswered.append(event)
        if isUp { post(.publish(event)) }
    }
}
