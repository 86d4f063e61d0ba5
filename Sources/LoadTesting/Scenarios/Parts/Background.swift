/// Subscribers of a separate channel with continuous publishes: shows how the scenario affects other clients.
struct Background {
    /// Kind 0: the events. Kind 1: the answers to their publishes.
    static let kinds = [MeasuredKind("publish due to delivery", streams: lines), MeasuredKind("publish due to answer")]
    static let event = 0
    static let answered = 1
    private static let lines = 2

    let publishing: Publishing

    /// Connects the run's connections as subscribers.
    init(_ run: LoadRun, channel: String, rate: Double) throws(LoadError) {
        let dialect = run.dialect
        try run.connect(run.options.connections) { _, _ in ConnectionPlan(dialect, channel: channel, index: 0) }
        publishing = try Publishing(
            run,
            PublishPlan(
                channels: [channel], pace: .rate(rate), connections: Self.lines, bytes: run.options.bytes, kind: Self.event,
                answeredKind: Self.answered))
        publishing.begin()
    }

    /// Ends publishing, waits for outstanding events, and judges them.
    func end(_ run: LoadRun) throws(LoadError) -> UInt64 {
        try publishing.end(run)
        return try publishing.drain(run)
    }

    func judge(_ report: inout LoadReport, run: LoadRun, missing: UInt64) -> [String] {
        let counts = run.counts()
        return Verdict.judge(&report, publishes: publishing.counts, seconds: run.sampler.measuredSeconds)
            + Verdict.judge(&report, kinds: counts.kinds, numbered: [Self.event], missing: missing, links: counts.links)
    }
}
