/// Samples workers, server and machine once a second, and makes the part of the report common to all scenarios.
struct Sampler {
    /// All increasing counters at one moment.
    struct Moment: Sendable {
        var at = 0.0
        var links = WorkerCounts()
        var kinds: [KindCounts] = []
        /// As `Tally.receivedApart`.
        var receivedApart: [UInt64] = []
        /// CPU seconds of each worker's thread, the publisher last.
        var threads: [Double] = []
        var server: ServerUse?
        var machine = Processes.MachineTime()
        var ownCPU = 0.0
    }

    private let options: RunOptions
    private let targets: Targets
    private let kinds: [MeasuredKind]
    private let delivered: [Int]
    private let shown: [Int]
    private var latencies: [Latencies]
    /// Latencies by address, then by kind; empty where there is one address.
    private var latenciesApart: [Latencies]
    private var last = Moment()
    private var beginning: Moment?
    private var ending: Moment?
    private var idleServer: ServerUse?
    private var connectedServer: ServerUse?
    private var connected = 0
    private var connectSeconds = 0.0
    private var series = Series()
    private(set) var line = "starting"
    private var warnings: [String] = []

    private static let period = 1.0
    /// Share of a core above which the client's thread may have been the bottleneck.
    private static let busyShare = 0.8
    private static let stolenShare = 0.05
    private static let othersShare = 0.1

    init(options: RunOptions, targets: Targets, kinds: [MeasuredKind], delivered: [Int], shown: [Int]) throws(LoadError) {
        self.options = options
        self.targets = targets
        self.kinds = kinds
        self.delivered = delivered
        self.shown = shown
        latencies = kinds.map { _ in Latencies() }
        let apart = targets.isSeveral ? targets.count * kinds.count : 0
        latenciesApart = Array(repeating: Latencies(), count: apart)
        last.receivedApart = Array(repeating: 0, count: apart)
        last.links = WorkerCounts(nodes: targets.count)
        last.kinds = kinds.map { _ in KindCounts() }
        idleServer = try ServerUse.read(options.serverPIDs)
    }

    var measuredSeconds: Double {
        guard let beginning else { return 0 }
        return (ending ?? last).at - beginning.at
    }

    mutating func warn(_ sentence: String) { warnings.append(sentence) }

    /// Events received between the beginning and the end of measuring.
    func counted(_ kind: Int) -> UInt64 {
        guard let beginning, let ending else { return 0 }
        return ending.kinds[kind].received - beginning.kinds[kind].received
    }

    func latency(_ kind: Int) -> Latencies { latencies[kind] }

    mutating func noteIdle() throws(LoadError) {
        if connectedServer == nil { idleServer = try ServerUse.read(options.serverPIDs) }
    }

    mutating func noteConnected(_ count: Int, seconds: Double) throws(LoadError) {
        guard connected == 0 else { return }
        connected = count
        connectSeconds = seconds
        connectedServer = try ServerUse.read(options.serverPIDs)
    }

    mutating func begin(_ doors: [WorkerDoor], now: Double) throws(LoadError) {
        try sample(doors, now: now)
        beginning = last
        series = Series()
    }

    mutating func end(_ doors: [WorkerDoor], now: Double) throws(LoadError) {
        try sample(doors, now: now)
        ending = last
    }

    mutating func sampleWhenDue(_ doors: [WorkerDoor], now: Double) throws(LoadError) {
        if now - last.at >= Self.period { try sample(doors, now: now) }
    }

    mutating func sample(_ doors: [WorkerDoor], now: Double) throws(LoadError) {
        var moment = Moment(at: now)
        moment.links = WorkerCounts(nodes: targets.count)
        moment.receivedApart = Array(repeating: 0, count: latenciesApart.count)
        moment.kinds = kinds.map { _ in KindCounts() }
        var second = kinds.map { _ in Latencies() }
        for door in doors {
            let (links, counts, taken) = door.ask { ($0.snapshot(), $0.tally.counts, $0.tally.takeLatencies()) }
            if !latenciesApart.isEmpty {
                let (received, own) = door.ask { ($0.tally.receivedApart, $0.tally.takeApart()) }
                for place in own.indices {
                    moment.receivedApart[place] += received[place]
                    latenciesApart[place].add(own[place])
                }
            }
            moment.links.add(links)
            moment.threads.append(Double(links.cpu) / 1e9)
            for kind in kinds.indices {
                moment.kinds[kind].add(counts[kind])
                second[kind].add(taken[kind])
            }
        }
        for kind in kinds.indices { latencies[kind].add(second[kind]) }
        moment.server = try ServerUse.read(options.serverPIDs)
        moment.machine = Processes.machine
        moment.ownCPU = moment.threads.reduce(0, +)
        note(moment, second)
        last = moment
    }

    private mutating func note(_ moment: Moment, _ second: [Latencies]) {
        let span = moment.at - last.at
        guard span > 0 else { return }
        let count = delivered.reduce(UInt64(0)) { $0 + moment.kinds[$1].received - last.kinds[$1].received }
        let rate = Double(count) / span
        if beginning != nil, ending == nil {
            var joined = Latencies()
            for kind in shown { joined.add(second[kind]) }
            series.add(
                span: span, rate: rate, latency: joined, open: moment.links.open, server: moment.server,
                serverCPU: moment.server.map { now in last.server.map { (now.cpu - $0.cpu) / span * 100 } ?? 0 })
        }
        var all = Latencies()
        for kind in shown { all.add(latencies[kind]) }
        line = "\(moment.links.open) connected"
        if moment.links.opening > 0 { line += " (+\(moment.links.opening))" }
        line += "  \(Int(rate)) deliveries/s"
        if all.count > 0 { line += "  p50 \(all.percentile(50)) us  p99 \(all.percentile(99)) us" }
        let lost = moment.kinds.reduce(UInt64(0)) { $0 + $1.lost }
        if lost > 0 { line += "  LOST \(lost)" }
        let closed = moment.links.closedByServer.values.reduce(0, +)
        if closed > 0 { line += "  \(closed) closed by the server" }
        if let server = moment.server { line += "  server \(decimal((server.residentBytes / 1e4).rounded() / 100)) MB" }
    }

    // MARK: The report

    func fill(_ report: inout LoadReport) {
        guard let beginning, let ending else { return }
        report.warnings += warnings
        let seconds = max(1e-9, ending.at - beginning.at)
        if connected > 0 {
            report.figures.append(.init("connections opened in", connectSeconds, "s"))
        }
        let deliveries = Double(delivered.reduce(UInt64(0)) { $0 + counted($1) })
        if deliveries > 0 {
            report.figures.append(.init("deliveries", deliveries))
            report.figures.append(.init("deliveries per second", deliveries / seconds, "1/s"))
        }
        if let before = beginning.server, let after = ending.server {
            let cpu = after.cpu - before.cpu
            if deliveries > 0 { report.figures.append(.init("server CPU per delivery", cpu * 1e6 / deliveries, "us")) }
            report.figures.append(.init("server CPU", cpu / seconds * 100, "%"))
            report.figures.append(.init("server memory", after.residentBytes / 1e6, "MB"))
        }
        if connected > 0, let idle = idleServer, let full = connectedServer {
            report.figures.append(.init("server CPU per connection", (full.cpu - idle.cpu) * 1e6 / Double(connected), "us"))
            report.figures.append(.init("server memory per connection", (full.residentBytes - idle.residentBytes) / Double(connected), "B"))
        }
        fillClient(&report, beginning, ending, seconds, deliveries)
        fillApart(&report, beginning, ending)
        for kind in kinds.indices where latencies[kind].count > 0 {
            report.latencies.append(latencies[kind].report(as: kinds[kind].name))
            for (node, target) in targets.all.enumerated() where targets.isSeveral {
                let own = latenciesApart[node * kinds.count + kind]
                if own.count > 0 { report.latencies.append(own.report(as: "\(kinds[kind].name), \(target.authority)")) }
            }
        }
        series.fill(&report, hasServer: !options.serverPIDs.isEmpty)
    }

    /// The figures of each address, where there are several.
    private func fillApart(_ report: inout LoadReport, _ beginning: Moment, _ ending: Moment) {
        guard targets.isSeveral else { return }
        report.figures.append(.init("failed connects", Double(last.links.failed)))
        for (node, target) in targets.all.enumerated() {
            let count = delivered.reduce(UInt64(0)) { sum, kind in
                let place = node * kinds.count + kind
                return sum + ending.receivedApart[place] - beginning.receivedApart[place]
            }
            let own = last.links.nodes[node]
            report.figures.append(.init("\(target.authority): connections opened", Double(own.opened)))
            report.figures.append(.init("\(target.authority): failed connects", Double(own.failed)))
            report.figures.append(.init("\(target.authority): closed by the server", Double(own.closedByServer)))
            report.figures.append(.init("\(target.authority): deliveries", Double(count)))
        }
    }

    private func fillClient(
        _ report: inout LoadReport, _ beginning: Moment, _ ending: Moment, _ seconds: Double, _ deliveries: Double
    ) {
        let shares = zip(beginning.threads, ending.threads).map { ($1 - $0) / seconds }
        if deliveries > 0 {
            let receiving = zip(beginning.threads, ending.threads).dropLast().reduce(0) { $0 + $1.1 - $1.0 }
            report.figures.append(.init("client CPU per delivery", receiving * 1e6 / deliveries, "us"))
            let reads = Double(ending.links.reads - beginning.links.reads)
            if reads > 0 { report.figures.append(.init("deliveries per read", deliveries / reads)) }
        }
        for (index, share) in shares.enumerated() {
            let name = index == shares.count - 1 ? "publishing" : "receiving"
            report.figures.append(.init("client CPU of \(name) thread \(index + 1)", share * 100, "%"))
            if share > Self.busyShare {
                report.warnings.append(
                    "The client was the bottleneck: its \(name) thread \(index + 1) took \(decimal((share * 100).rounded())) % of a core. "
                        + "Latencies and rates are partly its own; use more --threads or a lower load.")
            }
        }
        let machine = ending.machine - beginning.machine
        let total = max(1e-9, machine.busy + machine.idle + machine.stolen)
        let server = (ending.server?.cpu ?? 0) - (beginning.server?.cpu ?? 0)
        let others = machine.busy - server - (ending.ownCPU - beginning.ownCPU)
        report.figures.append(.init("machine busy", machine.busy / total * 100, "%"))
        report.figures.append(.init("machine stolen", machine.stolen / total * 100, "%"))
        if machine.stolen / total > Self.stolenShare {
            report.warnings.append(
                "\(decimal((machine.stolen / total * 100).rounded())) % of the machine's time went to other virtual machines: do not trust the timings."
            )
        }
        if !options.serverPIDs.isEmpty {
            report.figures.append(.init("machine busy with other things", max(0, others) / total * 100, "%"))
            if others / total > Self.othersShare {
                report.warnings.append(
                    "The machine was busy with other things for \(decimal((others / total * 100).rounded())) % of its time: do not trust the timings."
                )
            }
        }
    }
}
