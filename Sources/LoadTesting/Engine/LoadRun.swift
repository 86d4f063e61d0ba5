internal import CLoadSockets
internal import Foundation
internal import Synchronization

/// One run: starts the workers, opens connections in a ramp, and looks at everything once a second.
///
/// Used by one thread, the program's own; the scenario is its straight line of calls. `end()` stops the workers.
final class LoadRun {
    let options: RunOptions
    let target: Target
    let dialect: any Dialect
    let kinds: [MeasuredKind]
    /// Kinds whose receptions are deliveries.
    let delivered: [Int]
    /// Of them, the ones whose latency the progress line shows.
    let shown: [Int]
    let receivers: [WorkerDoor]
    /// Publishes, and nothing else.
    let publisher: WorkerDoor
    let started = Date()
    let origin = tandem_load_now()
    private(set) var sampler: Sampler
    private let progress: ProgressLine

    init(
        options: RunOptions, target: Target, dialect: any Dialect, kinds: [MeasuredKind], delivered: [Int], shown: [Int]? = nil
    ) throws(LoadError) {
        self.options = options
        self.target = target
        self.dialect = dialect
        self.kinds = kinds
        self.delivered = delivered
        self.shown = shown ?? delivered
        let wanted = UInt64(options.connections + options.beside + options.publishers + options.channels + Self.descriptorsBeside)
        let limit = tandem_load_descriptors(wanted)
        guard limit >= wanted else {
            throw LoadError(
                "\(options.connections) connections need \(wanted) descriptors, and this process may have \(limit): "
                    + "raise the limit (ulimit -n \(wanted)), or ask for fewer")
        }
        receivers = (0..<options.threads).map { _ in WorkerDoor() }
        publisher = WorkerDoor()
        sampler = try Sampler(options: options, kinds: kinds, delivered: delivered, shown: self.shown)
        progress = ProgressLine()
        for door in receivers + [publisher] {
            let made = try Worker(door: door, target: target, kinds: kinds)
            made.joinsEvents = dialect.joinsEvents
            let worker = HandedOver(made)
            let thread = Thread { worker.value.run() }
            thread.name = "load"
            thread.stackSize = 4 << 20
            thread.start()
        }
    }

    /// Files, pipes and the workers' own.
    private static let descriptorsBeside = 100
    private static let tick = 0.01
    /// A ramp in which nothing opens for so long has failed.
    private static let stuckSeconds = 20.0

    var doors: [WorkerDoor] { receivers + [publisher] }

    func end() {
        for door in doors { door.post { $0.stop() } }
        progress.finish()
    }

    /// Seconds since the run began.
    var elapsed: Double { Double(tandem_load_now() - origin) / 1e9 }

    // MARK: Time

    /// Lets the run go on until a condition holds, looking every 10 ms and sampling once a second.
    /// - Returns: false when the time was over first.
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

    /// All counts of all workers, now.
    func counts() -> (links: WorkerCounts, kinds: [KindCounts]) {
        var links = WorkerCounts()
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
    /// - Parameter plan: makes the plan of a number, on its worker's thread.
    /// - Throws: when one cannot be opened.
    func connect(_ count: Int, plan: @escaping @Sendable (Int, Worker) -> ConnectionPlan) throws(LoadError) {
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

    /// Before the first connection, for scenarios that let them in by themselves.
    func noteIdle() throws(LoadError) { try sampler.noteIdle() }

    /// When so many are open, which took so many seconds.
    func noteConnected(_ count: Int, seconds: Double) throws(LoadError) { try sampler.noteConnected(count, seconds: seconds) }

    // MARK: Measuring

    /// Returns when it begins: what falls due from then on is measured.
    func beginMeasuring() throws(LoadError) {
        try agree { worker, time in worker.tally.measured = time ..< .max }
        try sampler.begin(doors, now: elapsed)
    }

    /// Returns when it is over: what falls due from then on is not measured; what is on its way still is.
    func endMeasuring() throws(LoadError) {
        try agree { worker, time in worker.tally.measured = worker.tally.measured.lowerBound..<max(time, worker.tally.measured.lowerBound) }
        try sampler.end(doors, now: elapsed)
    }

    /// Tells all workers a time before it comes, and waits for it. Told afterwards, a busy worker would already have taken events for
    /// something else than the others did.
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
            sampler.warn("The client's threads were busy for so long that the beginning or the end of measuring is blurred: use more --threads.")
        }
    }

    private static let agreementNanoseconds: UInt64 = 200_000_000

    /// The report, with what every scenario has in it.
    func report() throws(LoadError) -> LoadReport {
        try sampler.sample(doors, now: elapsed)
        var report = LoadReport(
            scenario: options.scenario, target: target.url, dialect: dialect.name, started: started.formatted(.iso8601),
            seconds: (sampler.measuredSeconds * 1000).rounded() / 1000)
        report.settings = options.settings
        report.machine = Machine.settings
        sampler.fill(&report)
        return report
    }
}

/// Something that is given to another thread and not used by its giver any more.
private struct HandedOver<Value>: @unchecked Sendable {
    // Guard: the giver keeps no reference; only the thread that it was given to reads it.
    let value: Value

    init(_ value: Value) { self.value = value }
}
