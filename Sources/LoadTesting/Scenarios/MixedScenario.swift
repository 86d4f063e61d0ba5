internal import CLoadSockets

/// A quiz evening: sessions whose players are members of a presence channel, questions to all, answers as client events, scores by publish.
/// Some players leave and come back.
package struct MixedScenario: Scenario {
    package static let name = "mixed"

    /// The pace of an evening.
    package struct Evening: Sendable {
        /// Seconds between two questions of a session; the scores follow after half of them.
        package var questionEvery: Double
        /// Players who leave, per second in total; each returns after a second.
        package var leavingRate: Double

        package init(questionEvery: Double, leavingRate: Double) {
            self.questionEvery = questionEvery
            self.leavingRate = leavingRate
        }
    }

    private let evening: Evening

    package init(_ evening: Evening) {
        self.evening = evening
    }

    enum Kind {
        static let question = 0
        static let answer = 1
        static let scores = 2
        static let returned = 3
        static let questionTaken = 4
        static let scoresTaken = 5
    }

    private static let lines = 2
    private static let playersMax = 1000

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard let pusher = dialect as? PusherDialect else {
            throw LoadError("\(Self.name) is an evening on Pusher's channels: --dialect pusher", isUsage: true)
        }
        let players = (options.connections + options.channels - 1) / options.channels
        guard players >= 2, players <= Self.playersMax else {
            throw LoadError(
                "\(options.connections) players in \(options.channels) sessions are \(players) in each; it has to be 2 to \(Self.playersMax)",
                isUsage: true)
        }
        let names = options.channelNames.map { $0.hasPrefix("presence-") ? $0 : "presence-\($0)" }
        let kinds = [
            MeasuredKind("question: publish due to delivery", streams: Self.lines),
            MeasuredKind("answer: client event due to delivery", streams: players),
            MeasuredKind("scores: publish due to delivery", streams: Self.lines), MeasuredKind("return due to subscribed"),
            MeasuredKind("question: publish due to answer"), MeasuredKind("scores: publish due to answer"),
        ]
        let run = try LoadRun(
            options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Kind.question, Kind.answer, Kind.scores])
        defer { run.end() }
        let think = UInt64(evening.questionEvery / 2 * 1e9)
        for door in run.receivers {
            door.post { $0.scenario = Players(worker: $0, dialect: pusher, channels: names, bytes: options.bytes, think: think) }
        }
        try run.connect(options.connections, channels: names.count) { number, worker in
            guard let own = worker.scenario as? Players else { return ConnectionPlan() }
            return own.plan(number: number, isReturning: false)
        }
        let perSecond = Double(names.count) / evening.questionEvery
        func publishing(_ kind: Int, _ taken: Int) throws(LoadError) -> Publishing {
            try Publishing(
                run,
                PublishPlan(
                    channels: names, pace: .rate(perSecond), connections: Self.lines, bytes: options.bytes, kind: kind, answeredKind: taken)
            )
        }
        let questions = try publishing(Kind.question, Kind.questionTaken)
        let scores = try publishing(Kind.scores, Kind.scoresTaken)
        let leaving = evening.leavingRate / Double(run.receivers.count)
        if leaving > 0 { for door in run.receivers { door.post { ($0.scenario as? Players)?.beginLeaving(rate: leaving) } } }
        questions.begin()
        try run.pass(atMost: evening.questionEvery / 2)
        scores.begin()
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        try questions.end(run)
        try scores.end(run)
        for door in run.receivers { door.post { ($0.scenario as? Players)?.stopLeaving() } }
        // Outstanding answers are still sent, and absent players return.
        try run.pass(atMost: evening.questionEvery + Players.awaySeconds + options.drain) {
            run.receivers.allSatisfy { door in door.ask { ($0.scenario as? Players)?.isSettled ?? true } }
        }
        let missing = try questions.drain(run) + scores.drain(run) + drainAnswers(run, players: players, channels: names.count)
        return try judge(run, publishes: [questions.counts, scores.counts], missing: missing)
    }

    private func drainAnswers(_ run: LoadRun, players: Int, channels: Int) throws(LoadError) -> UInt64 {
        var ends = Array(repeating: Array(repeating: UInt32(0), count: players), count: channels)
        for door in run.receivers {
            for sent in door.ask({ ($0.scenario as? Players)?.sent ?? [] }) { ends[sent.channel][sent.stream] = sent.count }
        }
        let goal = ends
        var missing: UInt64 = 0
        try run.pass(atMost: run.options.drain) {
            missing = run.receivers.reduce(UInt64(0)) { sum, door in
                sum
                    + door.ask { worker in
                        let own = (worker.scenario as? Players)?.ownExpected ?? 0
                        let open = worker.missing(kind: Kind.answer, ends: goal, firstChannel: 0, firstStream: 0)
                        return open > own ? open - own : 0
                    }
            }
            return missing == 0
        }
        return missing
    }

    private func judge(_ run: LoadRun, publishes: [PublishCounts], missing: UInt64) throws(LoadError) -> Outcome {
        var answers: UInt64 = 0
        var left: UInt64 = 0
        var refused: UInt64 = 0
        for door in run.receivers {
            let own = door.ask { worker in
                let players = worker.scenario as? Players
                return (players?.sent.reduce(UInt64(0)) { $0 + UInt64($1.count) } ?? 0, players?.left ?? 0, players?.refused ?? 0)
            }
            answers += own.0
            left += own.1
            refused += own.2
        }
        var report = try run.report()
        let counts = run.counts()
        report.settings.append(.init("a question every", "\(decimal(evening.questionEvery)) s in each session"))
        report.settings.append(.init("players who leave and return", "\(decimal(evening.leavingRate))/s"))
        report.settings.removeAll { $0.name == "rate" || $0.name == "publishers" }
        for (name, kind) in [("questions delivered", Kind.question), ("answers delivered", Kind.answer), ("scores delivered", Kind.scores)]
        {
            report.figures.append(.init(name, Double(run.sampler.counted(kind))))
        }
        report.figures.append(.init("answers sent", Double(answers)))
        report.figures.append(.init("players who left and returned", Double(left)))
        var all = PublishCounts()
        for publish in publishes { all.add(publish) }
        var failures = Verdict.judge(&report, publishes: all, seconds: run.sampler.measuredSeconds)
        failures += Verdict.judge(
            &report, kinds: counts.kinds, numbered: [Kind.question, Kind.answer, Kind.scores], missing: missing, links: counts.links)
        if refused > 0 { failures.append("\(refused) answers were refused: are client events switched on?") }
        if counts.kinds[Kind.answer].received == 0 { failures.append("No answer arrived.") }
        return Outcome(report: report, failures: failures)
    }
}
