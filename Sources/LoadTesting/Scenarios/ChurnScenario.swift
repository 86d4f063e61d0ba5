internal import CLoadSockets

/// Connections come, subscribe to a private channel, and go; or all go at once and come back. A separate channel has continuous publishes.
package struct ChurnScenario: Scenario {
    package static let name = "churn"

    /// The pattern of arrivals.
    package enum Pattern: Sendable {
        /// `rate` arrivals per second, each for `stay` seconds.
        case steady(rate: Double, stay: Double)
        /// `clients` connections, cut off all at once, then back.
        case storm(clients: Int)
    }

    private let pattern: Pattern
    private let publishRate: Double

    package init(_ pattern: Pattern, publishRate: Double) {
        self.pattern = pattern
        self.publishRate = publishRate
    }

    private enum Kind {
        static let upgraded = 2
        static let subscribed = 3
    }

    /// Time limit for all to come back.
    private static let stormSecondsMax = 120.0
    private static let connectPartSecondsMax = 120.0

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        let kinds = Background.kinds + [MeasuredKind("connect due to upgraded"), MeasuredKind("connect due to subscribed")]
        let run = try LoadRun(options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Background.event])
        defer { run.end() }
        let background = try Background(run, channel: "\(options.channel)-steady", rate: publishRate)
        let prefix = options.channel
        let channels = UInt64(max(1, options.channels))
        let total = run.receivers.count
        let plan: @Sendable (Int, UInt64) -> ConnectionPlan = { worker, number in
            let index = number % channels
            let plan = ConnectionPlan(dialect, channel: "\(prefix)-\(index + 1)", index: Int(index) + 1)
            // Rotates the source addresses, so that ports in TIME_WAIT do not run out.
            plan.number = (Int(number) * total + worker) % Target.sourcesMax * Target.connectionsPerSource
            // Each channel has its connections in turns on all addresses.
            plan.node = Int(index + number / channels) + worker
            plan.upgradedKind = Kind.upgraded
            plan.openedKind = Kind.subscribed
            return plan
        }
        var failures: [String] = []
        var figures: [LoadReport.Figure] = []
        switch pattern {
        case .steady(let rate, let stay): figures = try churn(run, rate: rate, stay: stay, plan: plan)
        case .storm(let clients): (figures, failures) = try storm(run, clients: clients, plan: plan)
        }
        let missing = try background.end(run)
        var report = try run.report()
        report.figures.insert(contentsOf: figures, at: 0)
        report.settings.append(.init("published meanwhile", "\(decimal(publishRate))/s to \(options.connections) subscribers"))
        failures += background.judge(&report, run: run, missing: missing)
        return Outcome(report: report, failures: failures)
    }

    private func churn(
        _ run: LoadRun, rate: Double, stay: Double, plan: @escaping @Sendable (Int, UInt64) -> ConnectionPlan
    ) throws(LoadError) -> [LoadReport.Figure] {
        let start = tandem_load_now()
        let share = rate / Double(run.receivers.count)
        for (index, door) in run.receivers.enumerated() {
            // Staggers the workers, so that their arrivals do not coincide.
            let own = start + UInt64(Double(index) / rate * 1e9)
            door.post { worker in
                worker.scenario = Arrivals(
                    worker: worker, schedule: OpenLoop(rate: share, start: own), stay: UInt64(stay * 1e9)
                ) { plan(index, $0) }
            }
        }
        try run.pass(atMost: run.options.warmup)
        try run.beginMeasuring()
        let before = Self.counts(run)
        try run.pass(atMost: run.options.seconds)
        try run.endMeasuring()
        let after = Self.counts(run)
        for door in run.receivers { door.post { ($0.scenario as? Arrivals)?.stopComing() } }
        // Waits for the openings under way and for the last to leave.
        try run.pass(atMost: run.options.drain) { run.counts().links.opening == 0 }
        let end = Self.counts(run)
        return [
            .init("arrivals per second", Double(after.opened - before.opened) / run.sampler.measuredSeconds, "1/s"),
            .init("arrivals", Double(end.opened)), .init("arrivals that failed", Double(end.failed)),
            .init("arrivals not done", Double(end.begun - min(end.begun, end.opened))),
        ]
    }

    private func storm(
        _ run: LoadRun, clients: Int, plan: @escaping @Sendable (Int, UInt64) -> ConnectionPlan
    ) throws(LoadError) -> ([LoadReport.Figure], [String]) {
        let count = run.receivers.count
        let parts = (0..<count).map { clients / count + ($0 < clients % count ? 1 : 0) }
        // First the clients arrive at the ramp's rate; each stays for ever.
        let rampRate = run.options.connectRate / Double(count)
        for (index, door) in run.receivers.enumerated() {
            let part = UInt64(parts[index])
            door.post { worker in
                let arrivals = Arrivals(worker: worker, schedule: nil, stay: .max) { number in plan(index, number) }
                worker.scenario = arrivals
                var posted: UInt64 = 0
                worker.add(
                    Pace(OpenLoop(rate: rampRate, start: tandem_load_now())) { due in
                        guard posted < part else { return false }
                        posted += 1
                        arrivals.come(due: due)
                        return true
                    })
            }
        }
        let here = try run.pass(atMost: Self.connectPartSecondsMax) { Self.counts(run).opened >= UInt64(clients) }
        guard here else {
            throw LoadError("\(Self.counts(run).opened) of \(clients) clients connected: \(run.counts().links.failure ?? "")")
        }
        try run.pass(atMost: run.options.warmup)
        try run.beginMeasuring()
        // A calm phase for comparison.
        try run.pass(atMost: run.options.seconds / 2)
        let began = run.elapsed
        let before = Self.counts(run)
        let due = tandem_load_now()
        for door in run.receivers {
            door.post { worker in
                let own = (0..<worker.links.capacity).filter { slot in
                    worker.links[slot].phase == .open && worker.plans[slot]?.watcher === worker.scenario
                }
                for slot in own { worker.hangUp(slot, saysGoodbye: false) }
                guard let arrivals = worker.scenario as? Arrivals else { return }
                for _ in own { arrivals.come(due: due) }
            }
        }
        let allBack = try run.pass(atMost: Self.stormSecondsMax) { Self.counts(run).opened - before.opened >= UInt64(clients) }
        let back = Self.counts(run)
        let seconds = run.elapsed - began
        try run.pass(atMost: run.options.seconds / 2)
        try run.endMeasuring()
        let figures: [LoadReport.Figure] = [
            .init("clients cut off", Double(clients)), .init("clients back", Double(back.opened - before.opened)),
            .init("all back after", seconds, "s"),
            .init("back per second", Double(back.opened - before.opened) / max(seconds, 1e-3), "1/s"),
            .init("attempts that failed", Double(back.failed - before.failed)),
        ]
        let failures = allBack ? [] : ["Not all clients came back within \(decimal(Self.stormSecondsMax)) s."]
        return (figures, failures)
    }

    private static func counts(_ run: LoadRun) -> ArrivalCounts {
        run.receivers.reduce(into: ArrivalCounts()) { sum, door in
            sum.add(door.ask { ($0.scenario as? Arrivals)?.counts ?? ArrivalCounts() })
        }
    }
}
