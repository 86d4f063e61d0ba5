/// Subscribers spread over channels, and publishes to the channels in turn. One channel is a broadcast, many are rooms, and a long run is a
/// soak.
package struct FanoutScenario: Scenario {
    package static let name = "fanout"

    package init() {}

    enum Kind {
        static let event = 0
        static let answered = 1
    }

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        let kinds = [MeasuredKind("publish due to delivery", streams: options.publishers), MeasuredKind("publish due to answer")]
        let run = try LoadRun(options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Kind.event])
        defer { run.end() }
        let names = options.channelNames
        try run.connect(options.connections, channels: names.count) { number, _ in
            ConnectionPlan(dialect, channel: names[number % names.count], index: number % names.count)
        }
        let plan = PublishPlan(
            channels: names, pace: options.pace, connections: options.publishers, bytes: options.bytes, kind: Kind.event,
            answeredKind: Kind.answered)
        let publishing = try Publishing(run, plan)
        publishing.begin()
        try run.pass(atMost: options.warmup)
        let before = publishing.counts
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        try publishing.end(run)
        let missing = try publishing.drain(run)
        var report = try run.report()
        let counts = run.counts()
        let published = publishing.counts
        report.figures.append(
            .init("publishes per second", Double(run.sampler.counted(Kind.answered)) / run.sampler.measuredSeconds, "1/s"))
        var failures = Verdict.judge(&report, publishes: published, seconds: run.sampler.measuredSeconds)
        failures += Verdict.judge(&report, kinds: counts.kinds, numbered: [Kind.event], missing: missing, links: counts.links)
        if published.taken > before.taken, counts.kinds[Kind.event].received == 0 { failures.append("Nothing was delivered.") }
        return Outcome(report: report, failures: failures)
    }
}
