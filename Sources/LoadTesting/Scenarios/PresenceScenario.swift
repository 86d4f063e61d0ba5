internal import CLoadSockets

/// One big presence channel: members join and leave at a rate, and the permanent members receive each change.
package struct PresenceScenario: Scenario {
    package static let name = "presence-storm"

    private let stay: Double

    /// - Parameter stay: seconds from a member's join to the leave.
    package init(stay: Double) {
        self.stay = stay
    }

    enum Kind {
        static let added = 0
        static let removed = 1
        static let joined = 2
    }

    package func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome {
        guard let pusher = dialect as? PusherDialect else {
            throw LoadError("\(Self.name) is about Pusher's presence channels: --dialect pusher", isUsage: true)
        }
        guard case .rate(let rate) = options.pace else {
            throw LoadError("members join at a rate: say --rate, not --outstanding", isUsage: true)
        }
        let channel = options.channel.hasPrefix("presence-") ? options.channel : "presence-\(options.channel)"
        let kinds = [
            MeasuredKind("join due to seen by a member"), MeasuredKind("leave due to seen by a member"),
            MeasuredKind("join due to acknowledged"),
        ]
        let run = try LoadRun(
            options: options, targets: targets, dialect: dialect, kinds: kinds, delivered: [Kind.added, Kind.removed])
        defer { run.end() }
        let departures = Departures()
        // The permanent members: their events show whether each change reached each of them.
        for door in run.receivers { door.post { $0.scenario = MemberWatcher(worker: $0, departures: departures) } }
        try run.connect(options.connections) { _, worker in
            let plan = ConnectionPlan(pusher, channel: channel, index: 0)
            plan.isTallied = false
            plan.wantsMessages = true
            plan.watcher = worker.scenario as? MemberWatcher
            return plan
        }
        // Joining and leaving members live on the publishing thread.
        let lines = max(1, Int((rate * stay).rounded(.up)) + Self.spareLines)
        let stay = UInt64(stay * 1e9)
        run.publisher.post { worker in
            worker.scenario = MemberTraffic(
                worker: worker, dialect: pusher, channel: channel, lines: lines, stay: stay, departures: departures)
        }
        let ready = try run.pass(atMost: Self.connectSeconds) {
            run.publisher.ask { ($0.scenario as? MemberTraffic)?.isConnected == true }
        }
        guard ready else { throw LoadError("the \(lines) connections of coming and going members could not be opened") }
        run.publisher.post { ($0.scenario as? MemberTraffic)?.begin(rate: rate) }
        try run.pass(atMost: options.warmup)
        try run.beginMeasuring()
        try run.pass(atMost: options.seconds)
        try run.endMeasuring()
        run.publisher.post { ($0.scenario as? MemberTraffic)?.stopComing() }
        // Waits until the last ones have left and every receiver has heard of it.
        var traffic = MemberTraffic.Counts()
        var counts = run.counts()
        try run.pass(atMost: self.stay + options.drain) {
            traffic = run.publisher.ask { ($0.scenario as? MemberTraffic)?.counts ?? MemberTraffic.Counts() }
            counts = run.counts()
            return traffic.left == traffic.joined && counts.kinds[Kind.added].received >= traffic.joined * UInt64(options.connections)
                && counts.kinds[Kind.removed].received >= traffic.left * UInt64(options.connections)
        }
        var report = try run.report()
        report.settings.append(.init("members stay", "\(decimal(self.stay)) s"))
        return judge(&report, options: options, traffic: traffic, counts: counts)
    }

    private static let spareLines = 8
    private static let connectSeconds = 30.0

    private func judge(
        _ report: inout LoadReport, options: RunOptions, traffic: MemberTraffic.Counts, counts: (links: WorkerCounts, kinds: [KindCounts])
    ) -> Outcome {
        let expected = traffic.joined * UInt64(options.connections)
        let expectedRemovals = traffic.left * UInt64(options.connections)
        let added = counts.kinds[Kind.added].received
        let removed = counts.kinds[Kind.removed].received
        report.figures.append(.init("joins", Double(traffic.joined)))
        report.figures.append(.init("joins refused", Double(traffic.refused)))
        report.figures.append(.init("leaves", Double(traffic.left)))
        report.figures.append(.init("member_added frames", Double(added)))
        report.figures.append(.init("member_removed frames", Double(removed)))
        report.figures.append(.init("megabytes received", Double(counts.links.bytes) / 1e6, "MB"))
        report.figures.append(.init("events lost", Double(max(expected, added) - added + max(expectedRemovals, removed) - removed)))
        var failures: [String] = []
        if traffic.unserved > 0 {
            report.warnings.append("\(traffic.unserved) joins were due when all connections of the tester were in use; they were left out.")
        }
        if traffic.refused > 0 {
            failures.append(
                "\(traffic.refused) joins were refused: does the server allow so many members (Tandem: presence_members_max)? \(traffic.refusal)"
            )
        }
        if traffic.joined == 0 { failures.append("Nobody could join.") }
        if added != expected { failures.append("\(expected) member_added frames had to come, \(added) came.") }
        if removed != expectedRemovals { failures.append("\(expectedRemovals) member_removed frames had to come, \(removed) came.") }
        return Outcome(report: report, failures: failures)
    }
}
