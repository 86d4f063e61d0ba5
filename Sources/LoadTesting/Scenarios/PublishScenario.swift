/// Publishes to channels without subscribers: the cost of a publish, alone or alongside a large fan-out.
package struct PublishScenario: Scenario {
    package static let name = "publish"

    /// Publishes per second to the channel that has subscribers.
    private let fanoutRate: Double

    /// - Parameter fanoutRate: applies if the run has connections, which subscribe to a separate channel.
    package init(fanoutRate: Double) {
        self.fanoutRate = fanoutRate
    }

    private enum Kind {
        static let event = 0
        static let answered = 1
        static let empty = 2
        static let emptyAnswered = 3
    }

    private static let fanoutLines = 2
    /// Requests of each connection, sent by turns: too many for a server to know one again.
    private static let preparedCount = 256

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        let kinds = [
            MeasuredKind("fan-out: publish due to delivery", streams: Self.fanoutLines), MeasuredKind("fan-out: publish due to answer"),
            MeasuredKind("event without subscribers"), MeasuredKind("publish due to answer"),
        ]
        let run = try LoadRun(
            options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Kind.event], shown: [Kind.emptyAnswered])
        defer { run.end() }
        var beside: Publishing?
        if options.connections > 0 {
            let crowd = "\(options.channel)-crowd"
            try run.connect(options.connections) { _, _ in ConnectionPlan(dialect, channel: crowd, index: 0) }
            beside = try Publishing(
                run,
                PublishPlan(
                    channels: [crowd], pace: .rate(fanoutRate), connections: Self.fanoutLines, bytes: options.bytes, kind: Kind.event,
                    answeredKind: Kind.answered))
        }
        var plan = PublishPlan(
            channels: options.channelNames, pace: options.pace, connections: options.publishers, bytes: options.bytes, kind: Kind.empty,
            answeredKind: Kind.emptyAnswered)
        plan.preparedCount = Self.preparedCount
        let publishing = try Publishing(run, plan)
        beside?.begin()
        publishing.begin()
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        try publishing.end(run)
        try beside?.end(run)
        let missing = try beside?.drain(run) ?? 0
        var report = try run.report()
        let counts = run.counts()
        let answered = Double(run.sampler.counted(Kind.emptyAnswered))
        report.figures.insert(.init("publishes per second", answered / run.sampler.measuredSeconds, "1/s"), at: 0)
        if beside == nil, let cpu = report.figures.first(where: { $0.name == "server CPU" }), answered > 0 {
            report.figures.append(.init("server CPU per publish", cpu.value / 100 * run.sampler.measuredSeconds * 1e6 / answered, "us"))
        }
        var failures = Verdict.judge(&report, publishes: publishing.counts, seconds: run.sampler.measuredSeconds)
        if beside != nil {
            report.settings.append(.init("fan-out beside it", "\(decimal(fanoutRate)) publishes/s to \(options.connections) subscribers"))
            failures += Verdict.judge(&report, kinds: counts.kinds, numbered: [Kind.event], missing: missing, links: counts.links)
        }
        return Outcome(report: report, failures: failures)
    }
}
