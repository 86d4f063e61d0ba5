internal import CLoadSockets
internal import Foundation
internal import Synchronization

/// One run: starts the workers, opens connections in a ramp, and samples everything once a second.
///
/// Used by the program's main thread only, on which the scenario runs as a straight sequence of calls. `end()` stops the workers.
final class LoadRun {
    let options: RunOptions
    let targets: Targets
    let dialect: any Dialect
    let kinds: [MeasuredKind]
    /// Kinds that count as deliveries.
    let delivered: [Int]
    /// Delivered kinds whose latency the progress line shows.
    let shown: [Int]
    let receivers: [WorkerDoor]
    /// The worker that only publishes.
    let publisher: WorkerDoor
    let started = Date()
    let origin = tandem_load_now()
    private(set) var sampler: Sampler
    private let progress: ProgressLine

    init(
        options: RunOptions, targets: Targets, dialect: any Dialect, kinds: [MeasuredKind], delivered: [Int], shown: [Int]? = nil
    ) throws(LoadError) {
        self.options = options
        self.targets = targets
        self.dialect = dialect
        self.kinds = kinds
        self.delivered = delivered
        self.shown = shown ?? delivered
        let witnesses = options.pace.needsWitnesses(dialect) ? options.channels : 0
        let wanted = UInt64(options.connections + options.beside + options.publishers + witnesses + Self.descriptorsBeside)
        let limit = tandem_load_descriptors(wanted)
        guard limit >= wanted else {
            throw LoadError(
                "\(options.connections) connections need \(wanted) descriptors, and this process may have \(limit): "
                    + "raise the limit (ulimit -n \(wanted)), or ask for fewer")
        }
        receivers = (0..<options.threads).map { _ in WorkerDoor() }
        publisher = WorkerDoor()
        sampler = try Sampler(options: options, targets: targets, kinds: kinds, delivered: delivered, shown: self.shown)
        progress = ProgressLine()
        for (index, door) in (receivers + [publisher]).enumerated() {
            let made = try Worker(door: door, targets: targets, kinds: kinds, turn: index % receivers.count)
            made.joinsEvents = dialect.joinsEvents
            let worker = HandedOver(made)
            let thread = Thread { worker.value.run() }
            thread.name = "load"
            thread.stackSize = 4 << 20
            thread.start()
        }
    }

    /// Files, pipes and the workers' own descriptors.
    private static let descriptorsBeside = 100
    private static let tick = 0.01
    /// A ramp fails if no connection opens for this time.
    private static let stuckSeconds = 20.0

    var doors: [WorkerDoor] { receivers + [publisher] }

    func end() {
        for door in doors { door.post { $0.stop() } }
        progress.finish()
    }

    /// Seconds since the run began.
    var elapsed: Double { Double(tandem_load_now() - origin) / 1e9 }

    // MARK: Time

    /// Runs until a condition holds, checking every 10 ms and sampling once a second.
    /// - Returns: false if the time limit came first.
    @discardableResult
    func pass(atMost seconds: Double, until condition: () -> Bool = { false }) throws(LoadError) -> Bool {
        let end = elapsed + seconds
        while true {
            try sampler.sampleWhenDue(doors, now: elapsed)
            progress.show(sampler.line, elapsed: elapsed)
            if condition() { return true }
            let left = end - elapsed
            if left <= 0 { return false }
            Thread.sleep(forTimeInterval: min(Self.tick, left))
        }
    }

    /// The present counts of all workers.
    func counts() -> (links: WorkerCounts, kinds: [KindCounts]) {
        var links = WorkerCounts(nodes: targets.count)
        var all = kinds.map { _ in KindCounts() }
        for door in doors {
            let (own, ownKinds) = door.ask { ($0.snapshot(), $0.tally.counts) }
            links.add(own)
            for kind in all.indices { all[kind].add(ownKinds[kind]) }
        }
        return (links, all)
    }

    // MARK: Connections

    /// Opens connections in a ramp, and waits until all are open.
    /// - Parameters:
    ///   - channels: how many they are spread over in turns.
    ///   - plan: makes the plan of a connection's number, on its worker's thread.
    /// - Throws: if one cannot be opened.
    func connect(_ count: Int, channels: Int = 1, plan: @escaping @Sendable (Int, Worker) -> ConnectionPlan) throws(LoadError) {
        let before = counts().links
        let began = elapsed
        var posted = 0
        var opened: UInt64 = 0
        var lastGrowth = began
        try sampler.noteIdle()
        while true {
            let due = min(count, Int((elapsed - began) * options.connectRate) + 1)
            if due > posted {
                for (index, door) in receivers.enumerated() {
                    let numbers = (posted..<due).filter { $0 % receivers.count == index }
                    guard !numbers.isEmpty else { continue }
                    door.post { worker in
                        for number in numbers {
                            let own = plan(number, worker)
                            own.number = number
                            // Each channel has its connections in turns on all addresses.
                            own.node = own.channel + number / channels
                            worker.open(own)
                        }
                    }
                }
                posted = due
            }
            try pass(atMost: Self.tick)
            let now = counts().links
            guard now.failed == before.failed else { throw LoadError("a connection could not be opened: \(now.failure ?? "")") }
            let total = now.opened - before.opened
            if total > opened {
                opened = total
                lastGrowth = elapsed
            }
            if opened >= UInt64(count) { break }
            guard elapsed - lastGrowth < Self.stuckSeconds else {
                let said = now.unawaited.map { "; the server said: \($0)" } ?? ""
                throw LoadError("\(opened) of \(count) connections opened, then none for \(decimal(Self.stuckSeconds)) s\(said)")
            }
        }
        try sampler.noteConnected(count, seconds: elapsed - began)
    }

    /// Samples the idle server before the first connection, for scenarios that open connections themselves.
    func noteIdle() throws(LoadError) { try sampler.noteIdle() }

    /// Records that `count` connections were opened within `seconds`.
    func noteConnected(_ count: Int, seconds: Double) throws(LoadError) { try sampler.noteConnected(count, seconds: seconds) }

    // MARK: Measuring

    /// Begins measuring, and returns when it has begun. Events due from then on are measured.
    func beginMeasuring() throws(LoadError) {
        try agree { worker, time in worker.tally.measured = time ..< .max }
        try sampler.begin(doors, now: elapsed)
    }

    /// Ends measuring, and returns when it is over. Later due events are not measured; earlier ones still are, whenever they arrive.
    func endMeasuring() throws(LoadError) {
        try agree { worker, time in worker.tally.measured = worker.tally.measured.lowerBound..<max(time, worker.tally.measured.lowerBound) }
        try sampler.end(doors, now: elapsed)
    }

    /// Posts a future time to all workers, then waits for it. With a past time, busy workers would already have classified events
    /// differently.
    private func agree(_ set: @escaping @Sendable (Worker, UInt64) -> Void) throws(LoadError) {
        let asked = tandem_load_now()
        for door in doors { door.ask { _ in } }
        let patience = max(Self.agreementNanoseconds, (tandem_load_now() - asked) * 3)
        let time = tandem_load_now() + patience
        for door in doors { door.ask { set($0, time) } }
        let now = tandem_load_now()
        if now < time {
            try pass(atMost: Double(time - now) / 1e9)
        } else {
            sampler.warn(
                "The client's threads were busy for so long that the beginning or the end of measuring is blurred: use more --threads.")
        }
    }

    private static let agreementNanoseconds: UInt64 = 200_000_000

    /// The report, with the parts common to all scenarios.
    func report() throws(LoadError) -> LoadReport {
        try sampler.sample(doors, now: elapsed)
        var report = LoadReport(
            scenario: options.scenario, target: targets.url, dialect: dialect.name, started: started.formatted(.iso8601),
            seconds: (sampler.measuredSeconds * 1000).rounded() / 1000)
        report.settings = options.settings
        report.machine = Machine.settings
        sampler.fill(&report)
        return report
    }
}

/// A value passed to another thread and no longer used by the sender.
private struct HandedOver<Value>: @unchecked Sendable {
    // Guard: the sender keeps no reference; only the receiving thread reads it.
    let value: Value

    init(_ value: Value) { self.value = value }
}
