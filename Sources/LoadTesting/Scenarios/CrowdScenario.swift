internal import CLoadSockets

/// One channel with very many subscribers: the speed of entry, the idle cost, and the time until the last one has an event. Publishes are
/// slow enough that one ends before the next.
package struct CrowdScenario: Scenario {
    package static let name = "crowd"

    /// Connections in their opening at any time. Less than a server's accept queue (512 in uWebSockets): an attempt beyond that is retried
    /// a second later.
    package static let openingDefault = 200
    /// Idle seconds before memory is read.
    private static let settleSeconds = 0.5

    private let opening: Int

    package init(opening: Int = CrowdScenario.openingDefault) {
        self.opening = opening
    }

    enum Kind {
        static let event = 0
        static let answered = 1
        static let last = 2
    }

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard options.threads == 1, options.channels == 1, case .rate = options.pace else {
            throw LoadError("a crowd is one channel on one thread, at a --rate", isUsage: true)
        }
        let kinds = [
            MeasuredKind("publish due to delivery", streams: options.publishers), MeasuredKind("publish due to answer"),
            MeasuredKind("publish due to last delivery"),
        ]
        let run = try LoadRun(options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Kind.event])
        defer { run.end() }
        let seconds = try enter(run)
        let plan = PublishPlan(
            channels: options.channelNames, pace: options.pace, connections: options.publishers, bytes: options.bytes, kind: Kind.event,
            answeredKind: Kind.answered)
        let publishing = try Publishing(run, plan)
        publishing.begin()
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        try publishing.end(run)
        let missing = try publishing.drain(run)
        var report = try run.report()
        report.settings.append(.init("opening at any time", "\(opening)"))
        report.figures.insert(.init("let in per second", Double(options.connections) / max(seconds, 1e-9), "1/s"), at: 0)
        let last = run.sampler.latency(Kind.last)
        if last.count > 0 { report.figures.insert(.init("last delivery", Double(last.percentile(50)) / 1000, "ms"), at: 0) }
        let counts = run.counts()
        var failures = Verdict.judge(&report, publishes: publishing.counts, seconds: run.sampler.measuredSeconds)
        failures += Verdict.judge(&report, kinds: counts.kinds, numbered: [Kind.event], missing: missing, links: counts.links)
        if last.count == 0 { failures.append("No event reached everybody.") }
        return Outcome(report: report, failures: failures)
    }

    /// - Returns: seconds from the first connection's start to the end of the last one's opening.
    private func enter(_ run: LoadRun) throws(LoadError) -> Double {
        let options = run.options
        let dialect = run.dialect
        let opening = opening
        try run.noteIdle()
        run.receivers[0].post { worker in
            let entrance = Entrance(worker: worker, dialect: dialect, channel: options.channel, connections: options.connections)
            worker.scenario = entrance
            entrance.begin(opening)
        }
        let door = run.receivers[0]
        var former = 0
        var lastGrowth = run.elapsed
        while true {
            try run.pass(atMost: Self.lookSeconds)
            let (opened, failure, nanoseconds) = door.ask { worker -> (Int, String?, UInt64) in
                let entrance = worker.scenario as? Entrance
                return (entrance?.opened ?? 0, worker.counts.failure, entrance?.nanoseconds ?? 0)
            }
            if let failure { throw LoadError("a connection could not be opened: \(failure)") }
            if opened > former {
                former = opened
                lastGrowth = run.elapsed
            }
            guard opened < options.connections else {
                try run.pass(atMost: Self.settleSeconds)
                try run.noteConnected(options.connections, seconds: Double(nanoseconds) / 1e9)
                return Double(nanoseconds) / 1e9
            }
            guard run.elapsed - lastGrowth < Self.stuckSeconds else {
                throw LoadError("\(opened) of \(options.connections) connections opened, then none for \(decimal(Self.stuckSeconds)) s")
            }
        }
    }

    private static let lookSeconds = 0.05
    private static let stuckSeconds = 20.0
}

/// Opens connections, the next when one is open, and then counts the receivers of each event. Used on its worker's thread.
private final class Entrance: LinkWatcher {
    private let worker: Worker
    private let dialect: any Dialect
    private let channel: String
    private let connections: Int
    private var begun = 0
    private var beginning: UInt64 = 0
    private(set) var opened = 0
    private(set) var nanoseconds: UInt64 = 0
    /// Due time of the current event.
    private var due: UInt64 = 0
    private var left = 0

    init(worker: Worker, dialect: any Dialect, channel: String, connections: Int) {
        self.worker = worker
        self.dialect = dialect
        self.channel = channel
        self.connections = connections
    }

    func begin(_ opening: Int) {
        beginning = tandem_load_now()
        for _ in 0..<min(opening, connections) { openNext() }
    }

    private func openNext() {
        let plan = ConnectionPlan(dialect, channel: channel, index: 0)
        plan.number = begun
        plan.wantsMessages = true
        plan.watcher = self
        begun += 1
        worker.open(plan)
    }

    func opened(_ slot: Int, now: UInt64) {
        opened += 1
        if opened == connections { nanoseconds = now - beginning }
        if begun < connections { openNext() }
    }

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard let mark, mark.kind == CrowdScenario.Kind.event else { return }
        if mark.due > due {
            due = mark.due
            left = connections
        }
        guard mark.due == due else { return }
        left -= 1
        if left == 0 { worker.tally.record(CrowdScenario.Kind.last, from: due, to: now) }
    }
}
