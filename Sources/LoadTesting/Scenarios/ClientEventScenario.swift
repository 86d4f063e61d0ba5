internal import CLoadSockets

/// Client events between the members of small channels.
package struct ClientEventScenario: Scenario {
    package static let name = "client-events"

    package init() {}

    private static let kind = 0
    /// Bound of the members, because marks have four digits for a stream.
    private static let membersMax = 1000

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard dialect is PusherDialect else { throw LoadError("\(Self.name) are Pusher's: --dialect pusher", isUsage: true) }
        guard case .rate(let rate) = options.pace else { throw LoadError("client events go out at a rate: say --rate", isUsage: true) }
        let members = (options.connections + options.channels - 1) / options.channels
        guard members >= 2, members <= Self.membersMax else {
            throw LoadError(
                "\(options.connections) connections in \(options.channels) channels are \(members) in each; it has to be 2 to \(Self.membersMax)",
                isUsage: true)
        }
        let prefixes = ["private-", "presence-"]
        let names = options.channelNames.map { name in prefixes.contains { name.hasPrefix($0) } ? name : "private-\(name)" }
        let kinds = [MeasuredKind("client event due to delivery", streams: members)]
        let run = try LoadRun(options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Self.kind])
        defer { run.end() }
        let plan = PublishPlan(
            channels: names, pace: options.pace, connections: 0, bytes: options.bytes, kind: Self.kind, answeredKind: Self.kind)
        for door in run.receivers { door.post { $0.scenario = Senders(worker: $0, plan: plan) } }
        try run.connect(options.connections, channels: names.count) { number, worker in
            let connection = ConnectionPlan(dialect, channel: names[number % names.count], index: number % names.count)
            connection.tag = number / names.count
            connection.wantsMessages = true
            connection.watcher = worker.scenario as? Senders
            return connection
        }
        let share = rate / Double(run.receivers.count)
        for door in run.receivers { door.post { ($0.scenario as? Senders)?.begin(rate: share) } }
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        for door in run.receivers { door.post { ($0.scenario as? Senders)?.stop() } }
        return try conclude(run, members: members, channels: names.count)
    }

    private func conclude(_ run: LoadRun, members: Int, channels: Int) throws(LoadError) -> Outcome {
        var sent: UInt64 = 0
        var refused: UInt64 = 0
        var ends = Array(repeating: Array(repeating: UInt32(0), count: members), count: channels)
        for door in run.receivers {
            let own = door.ask { worker in
                let senders = worker.scenario as? Senders
                return (senders?.sent ?? [], senders?.refused ?? 0)
            }
            refused += own.1
            for entry in own.0 {
                ends[entry.channel][entry.stream] = entry.count
                sent += UInt64(entry.count)
            }
        }
        let goal = ends
        var missing: UInt64 = 0
        try run.pass(atMost: run.options.drain) {
            missing = run.receivers.reduce(UInt64(0)) { sum, door in
                sum
                    + door.ask { worker in
                        // Senders do not receive their own events.
                        let own = (worker.scenario as? Senders)?.sent.reduce(UInt64(0)) { $0 + UInt64($1.count) } ?? 0
                        let open = worker.missing(kind: Self.kind, ends: goal, firstChannel: 0, firstStream: 0)
                        // Fewer if a server returns events to their sender.
                        return open > own ? open - own : 0
                    }
            }
            return missing == 0
        }
        var report = try run.report()
        let counts = run.counts()
        report.figures.append(.init("client events sent", Double(sent)))
        report.figures.append(.init("client events delivered", Double(counts.kinds[Self.kind].received)))
        report.figures.append(.init("client events refused", Double(refused)))
        var failures = Verdict.judge(&report, kinds: counts.kinds, numbered: [Self.kind], missing: missing, links: counts.links)
        if refused > 0 {
            failures.append(
                "\(refused) client events were refused: are they switched on, and is the rate of each connection within the server's "
                    + "(Tandem: client_events_per_second)?")
        }
        if sent == 0 { failures.append("Nothing was sent.") }
        return Outcome(report: report, failures: failures)
    }
}

/// The connections of one worker that send client events in turn.
final class Senders: LinkWatcher {
    /// Number of events that one connection sent.
    struct Sent: Sendable {
        var channel: Int
        var stream: Int
        var count: UInt32
    }

    private let worker: Worker
    private let plan: PublishPlan
    private var slots: [Int] = []
    private var next = 0
    private var counts: [Int: Sent] = [:]
    private var isSending = false
    private(set) var refused: UInt64 = 0

    init(worker: Worker, plan: PublishPlan) {
        self.worker = worker
        self.plan = plan
    }

    var sent: [Sent] { Array(counts.values) }

    func opened(_ slot: Int, now: UInt64) {
        slots.append(slot)
        counts[slot] = Sent(channel: Int(worker.links[slot].channel), stream: worker.plans[slot]?.tag ?? 0, count: 0)
    }

    /// - Parameter rate: events per second of this worker's connections together, divided equally.
    func begin(rate: Double) {
        isSending = true
        worker.add(
            Pace(OpenLoop(rate: rate, start: tandem_load_now())) { [weak self] due in
                guard let self, self.isSending else { return false }
                self.send(due: due)
                return true
            })
    }

    func stop() { isSending = false }

    private func send(due: UInt64) {
        guard !slots.isEmpty else { return }
        let slot = slots[next % slots.count]
        next += 1
        send(from: slot, due: due, name: "client-load")
    }

    func send(from slot: Int, due: UInt64, name: String) {
        guard var own = counts[slot], worker.links[slot].phase == .open else { return }
        let mark = EventMark(kind: plan.kind, stream: own.stream, due: due, sequence: own.count)
        own.count += 1
        counts[slot] = own
        let channel = PusherDialect.quoted(plan.channels[own.channel])
        worker.sendMessage(slot, "{\"event\":\"\(name)\",\"channel\":\(channel),\"data\":\(plan.data(mark))}")
    }

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard mark == nil, let base = message.baseAddress else { return }
        if unsafe tandem_load_find(base, message.count, "pusher:error", 12) >= 0 { refused += 1 }
    }

    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {
        slots.removeAll { $0 == slot }
        counts[slot] = nil
    }
}
