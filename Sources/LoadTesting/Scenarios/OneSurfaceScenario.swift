internal import CLoadSockets

/// People with devices, some live on the socket and some away. Each must be told of every event exactly once.
///
/// A calm check over a network of machines, without crashes and dying phones; `loadtest/one-surface.sh` tests those.
package struct OneSurfaceScenario: Scenario {
    package static let name = "one-surface"

    private let gateways: String
    private let provider: QuizSession.Provider
    private let liveShare: Double

    /// - Parameters:
    ///   - gateways: the URL of the control service of `tandem-gateways`.
    ///   - provider: `fcm` or `apns`.
    ///   - liveShare: share of the people on the socket, 0 to 1.
    package init(gateways: String, provider: String, liveShare: Double) throws(LoadError) {
        guard let known = QuizSession.Provider(rawValue: provider) else {
            throw LoadError("--provider is fcm or apns, not \"\(provider)\"", isUsage: true)
        }
        self.gateways = gateways
        self.provider = known
        self.liveShare = liveShare
    }

    private enum Kind {
        static let event = 0
        static let push = 1
    }

    /// Pause after the last event. A missing receipt would have led to a push by then, because `critical` waits for less.
    private static let settleSeconds = 6.0
    private static let millisecond: UInt64 = 1_000_000

    package func run(_ options: RunOptions, target: Target, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard let pusher = dialect as? PusherDialect else {
            throw LoadError("\(Self.name) is Tandem's own: --dialect pusher", isUsage: true)
        }
        guard case .rate(let rate) = options.pace else { throw LoadError("events go out at a rate: say --rate", isUsage: true) }
        let people = options.connections
        let live = Int((Double(people) * liveShare).rounded())
        let events = max(1, Int((options.seconds * rate).rounded()))
        guard (people - live) * events <= GatewayLedger.recordsMax else {
            throw LoadError(
                "\(people - live) people away times \(events) events are more pushes than the simulated gateways remember "
                    + "(\(GatewayLedger.recordsMax)): ask for fewer people, or fewer --seconds", isUsage: true)
        }
        let kinds = [MeasuredKind("publish due to socket", streams: 1), MeasuredKind("publish due to gateway")]
        let run = try LoadRun(options: options, target: target, dialect: dialect, kinds: kinds, delivered: [Kind.event])
        defer { run.end() }
        let session = try QuizSession(pusher, target: target, people: people, provider: provider)
        let ledger = try GatewayLedger(url: gateways, provider: provider)
        try session.create()
        let channel = session.channel
        let users = (0..<live).map { session.user($0) }
        for door in run.receivers { door.post { $0.scenario = ForegroundApps(worker: $0, channel: channel) } }
        if live > 0 {
            try run.connect(live) { number, worker in
                let plan = ConnectionPlan(pusher, channel: channel, index: 0)
                plan.steps = pusher.opening(channel: channel, member: users[number])
                plan.watcher = worker.scenario as? ForegroundApps
                return plan
            }
        }
        try ledger.clear()
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        var schedule = OpenLoop(rate: rate, start: tandem_load_now())
        var published: [UInt64] = []
        // The gateways use the wall clock, marks the monotonic one.
        let offset = wallMilliseconds() - Int64(tandem_load_now() / Self.millisecond)
        while published.count < events {
            guard let due = schedule.take(now: tandem_load_now()) else {
                try run.pass(atMost: 0.001)
                continue
            }
            _ = try session.publish(EventMark(kind: Kind.event, stream: 0, due: due, sequence: UInt32(published.count)))
            published.append(due)
        }
        try run.endMeasuring()
        var failure: LoadError?
        try run.pass(atMost: options.drain + Self.settleSeconds) {
            // More pushes than the maximum is final.
            do throws(LoadError) { return try ledger.accepted() > people * events } catch { failure = error }
            return true
        }
        if let failure { throw failure }
        let pushes = try ledger.pushes()
        for push in pushes {
            guard let mark = push.mark, session.person(of: push.token) != nil else { continue }
            let at = UInt64(max(0, push.receivedAt - offset)) * Self.millisecond
            run.publisher.post { $0.tally.record(Kind.push, from: mark.due, to: max(at, mark.due)) }
        }
        let ends = [[UInt32(events)]]
        let missing = run.receivers.reduce(UInt64(0)) { sum, door in
            sum + door.ask { $0.missing(kind: Kind.event, ends: ends, firstChannel: 0, firstStream: 0) }
        }
        try session.remove()
        var report = try run.report()
        report.settings.append(.init("people live, and away", "\(live), \(people - live)"))
        let counts = run.counts()
        var failures = Verdict.judge(&report, kinds: counts.kinds, numbered: [Kind.event], missing: missing, links: counts.links)
        failures += judge(&report, pushes: pushes, session: session, people: people, live: live, events: events)
        return Outcome(report: report, failures: failures)
    }

    private func judge(
        _ report: inout LoadReport, pushes: [GatewayLedger.Push], session: QuizSession, people: Int, live: Int, events: Int
    ) -> [String] {
        var told = Array(repeating: 0, count: people * events)
        for push in pushes {
            guard let person = session.person(of: push.token), person < people, let mark = push.mark, Int(mark.sequence) < events else {
                continue
            }
            told[person * events + Int(mark.sequence)] += 1
        }
        let ofLive = told[..<(live * events)]
        let ofAway = told[(live * events)...]
        let missed = ofAway.count { $0 == 0 }
        let both = ofLive.count { $0 > 0 }
        let twice = ofAway.count { $0 > 1 }
        report.figures.insert(
            contentsOf: [
                .init("pairs of event and person", Double(people * events)), .init("events", Double(events)),
                .init("people away without a push", Double(missed)), .init("people away with more than one", Double(twice)),
                .init("people live who got a push as well", Double(both)),
            ], at: 0)
        var failures: [String] = []
        if missed > 0 { failures.append("\(missed) PAIRS WERE MISSED: no push for somebody who was away.") }
        if twice > 0 { failures.append("\(twice) pairs were pushed more than once.") }
        if both > 0 { failures.append("\(both) pairs were told twice: on the socket and by a push.") }
        return failures
    }
}

/// Apps that report themselves in the foreground as soon as they are connected.
private final class ForegroundApps: LinkWatcher {
    private let worker: Worker
    private let channel: String

    init(worker: Worker, channel: String) {
        self.worker = worker
        self.channel = channel
    }

    func opened(_ slot: Int, now: UInt64) {
        worker.sendMessage(
            slot,
            "{\"event\":\"client-app-state\",\"channel\":\(PusherDialect.quoted(channel)),\"data\":{\"state\":\"foreground\"}}")
    }
}
