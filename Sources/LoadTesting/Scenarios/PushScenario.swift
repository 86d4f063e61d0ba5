internal import CLoadSockets

/// One event for many absent people, each with a device at simulated gateways: the rate of the pushes.
package struct PushScenario: Scenario {
    package static let name = "push"

    private let gateways: String
    private let provider: QuizSession.Provider

    /// - Parameters:
    ///   - gateways: the URL of the control service of `tandem-gateways`.
    ///   - provider: `fcm` or `apns`.
    package init(gateways: String, provider: String) throws(LoadError) {
        guard let known = QuizSession.Provider(rawValue: provider) else {
            throw LoadError("--provider is fcm or apns, not \"\(provider)\"", isUsage: true)
        }
        self.gateways = gateways
        self.provider = known
    }

    private static let millisecond: UInt64 = 1_000_000

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard let pusher = dialect as? PusherDialect else {
            throw LoadError("\(Self.name) is Tandem's own: --dialect pusher", isUsage: true)
        }
        guard options.connections <= GatewayLedger.recordsMax else {
            throw LoadError("the simulated gateways remember \(GatewayLedger.recordsMax) pushes: ask for no more --devices", isUsage: true)
        }
        let target = try targets.only(Self.name)
        let people = options.connections
        let kinds = [MeasuredKind("publish to gateway"), MeasuredKind("publish to answer")]
        var idle = options
        idle.connections = 0
        let run = try LoadRun(options: idle, targets: targets, dialect: dialect, kinds: kinds, delivered: [0])
        defer { run.end() }
        let session = try QuizSession(pusher, target: target, people: people, provider: provider)
        let ledger = try GatewayLedger(url: gateways, provider: provider)
        try session.create()
        try ledger.clear()
        try run.beginMeasuring()
        let due = tandem_load_now()
        let published = wallMilliseconds()
        let answered = try session.publish(EventMark(kind: 0, stream: 0, due: due, sequence: 0))
        run.publisher.post { $0.tally.record(1, from: due, to: due + UInt64(max(0, answered - published)) * Self.millisecond) }
        var arrived = 0
        var failure: LoadError?
        try run.pass(atMost: options.seconds) {
            do throws(LoadError) { arrived = try ledger.accepted() } catch { failure = error }
            return arrived >= people || failure != nil
        }
        if let failure { throw failure }
        try run.endMeasuring()
        // A duplicate would arrive within this time.
        try run.pass(atMost: options.warmup)
        let pushes = try ledger.pushes()
        var seen = Array(repeating: 0, count: people)
        var last = published
        var foreign = 0
        for push in pushes {
            guard let person = session.person(of: push.token), seen.indices.contains(person) else {
                foreign += 1
                continue
            }
            seen[person] += 1
            last = max(last, push.receivedAt)
            let late = UInt64(max(0, push.receivedAt - published)) * Self.millisecond
            run.publisher.post { $0.tally.record(0, from: due, to: due + late) }
        }
        try session.remove()
        var report = try run.report()
        let first = pushes.map(\.receivedAt).min() ?? published
        report.settings = [.init("devices", "\(people)"), .init("provider", provider.rawValue)]
        report.figures.insert(
            contentsOf: [
                .init("pushes", Double(seen.reduce(0, +))),
                .init("pushes per second", Double(seen.reduce(0, +)) * 1000 / Double(max(1, last - published)), "1/s"),
                .init("first push after", Double(first - published), "ms"), .init("last push after", Double(last - published), "ms"),
                .init("people without a push", Double(seen.count { $0 == 0 })),
                .init("people with more than one", Double(seen.count { $0 > 1 })),
            ], at: 0)
        report.figures.removeAll { $0.name.hasPrefix("deliveries") || $0.name.hasSuffix("per delivery") }
        if let cpu = report.figures.first(where: { $0.name == "server CPU" }) {
            report.figures.append(.init("server CPU per push", cpu.value / 100 * report.seconds * 1e6 / Double(max(1, people)), "us"))
        }
        var failures: [String] = []
        if seen.contains(0) { failures.append("\(seen.count { $0 == 0 }) PEOPLE GOT NO PUSH within \(decimal(options.seconds)) s.") }
        if seen.contains(where: { $0 > 1 }) { failures.append("\(seen.count { $0 > 1 }) people got the push more than once.") }
        if foreign > 0 { report.warnings.append("\(foreign) pushes of others arrived at the gateways meanwhile.") }
        return Outcome(report: report, failures: failures)
    }
}
