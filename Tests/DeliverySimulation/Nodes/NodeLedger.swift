import HubDelivery

/// Was everybody told, and nobody twice without a reason?
extension NodeSimulation {
    func judge(_ publish: NodePublish) {
        // A row is due by the clock of the node that was asked, which may have been ahead of the owner's.
        // PostgreSQL may be away when it falls due: from then on it has as long as any other publish.
        let dueMax = publish.id.time + (publish.isLate ? publish.lifetime : 0)
        if publish.events.isEmpty, waitingRows.contains(publish.index), nodes.contains(where: { dueMax > wall($0) }) {
            if !publish.isLate { count("publishes that wait for a clock") }
            publish.isLate = true
            return schedule(10_000, .expired(publish.index))
        }
        if let index = publish.events.first, now < events[index].committedAt + publish.lifetime {
            return schedule(events[index].committedAt + publish.lifetime + 30_000 - now, .expired(publish.index))
        }
        // Pushes that fell due meanwhile are not written yet.
        if !postgres.isUp || wasAway(since: now - 15_000) { return schedule(30_000, .expired(publish.index)) }
        judged += 1
        guard !publish.events.isEmpty else {
            if publish.isAnswered {
                report.lost += settings.participantsPerChannel
                violation("lost publish \(publish.index), which was answered")
            } else {
                report.refused += 1
            }
            return
        }
        if publish.events.count > 1 {
            report.unexplained += settings.participantsPerChannel
            violation("publish \(publish.index) made \(publish.events.count) events")
        }
        let event = events[publish.events[0]]
        for (place, user) in event.users.enumerated() {
            report.pairs += 1
            let cell = event.cells[place]
            let isExpired = cell.end?.hasPrefix("expired") == true
            let isReadLate = cell.cameTooLate && event.confirmed[place]
            if cell.seenAt != nil { report.seenOnSocket += 1 }
            if cell.shownAt != nil { report.pushed += 1 }
            let who = personIndex[user] ?? 0
            switch (cell.seenAt, cell.shownAt) {
            case (nil, nil) where event.retimed != nil && (event.isOpen || isExpired || isLate(cell, event) || isReadLate):
                // Its times in the store are those of the clock at its decision.
                report.excused["its end came at another time by its next owner's clock", default: 0] += 1
            case (nil, nil) where isExpired && wasAway(atEndOf: event):
                report.excused["expired while PostgreSQL was away", default: 0] += 1
            case (nil, nil):
                report.lost += 1
                violation(
                    "lost \(describe(event)) for \(user): \(event.notes[place]), open \(event.isOpen), "
                        + "confirmed \(event.confirmed[place]), settled \(event.settled[place]), \(cell)")
            case (let seenAt?, _?): judgeDuplicate(event, cell, who, seenAt: seenAt)
            case (nil, let shownAt?):
                if !isFaulty(event.committedAt, shownAt), event.notes[place].choice == .awaited, let decidedAt = cell.pushDecidedAt {
                    report.rescues["notify", default: []].append(decidedAt - event.committedAt)
                }
            default: break
            }
        }
        for index in publish.events {
            events[index].cells = []
            if events[index].isOpen, events[index].retimed == nil { violation("\(describe(events[index])) is still open") }
        }
    }

    /// Its push was decided after its end by the true time, and may be on its way.
    private func isLate(_ cell: NodeEvent.Cell, _ event: NodeEvent) -> Bool {
        cell.pushDecidedAt.map { $0 > event.committedAt + event.lifetime - Decision.lastCallMilliseconds } ?? false
    }

    private func judgeDuplicate(_ event: NodeEvent, _ cell: NodeEvent.Cell, _ who: Int, seenAt: Int64) {
        let decidedAt = cell.pushDecidedAt ?? 0
        func looked(_ from: Int64, _ until: Int64) -> Bool { people[who].looks.contains { $0 >= from && $0 <= until } }
        // Long enough for a question to all nodes and their answers.
        if let answeredAt = [cell.answeredAt, cell.lyingAt].compactMap(\.self).min(), answeredAt < decidedAt - 300 {
            // Its receipt counts for the time being only: a former connection of the phone is not given up yet. A receipt that comes
            // late comes from the background.
            if looked(seenAt, max(decidedAt - 4000, answeredAt)) {
                report.duplicates["read, and gone to the background before the receipt counted", default: 0] += 1
                return
            }
            // The next owner does not know what its predecessor sent as a replay, so a receipt for that tells it nothing.
            let askedAt = cell.isSeenAgain ? min(seenAt, answeredAt) : answeredAt
            if handovers.contains(where: { answeredAt >= $0 - 500 && askedAt <= $0 + 2500 }) {
                report.duplicates["receipt while a node that lives handed its channel over", default: 0] += 1
                return
            }
            // It asks for no receipt of it, as of any event that is older than the nodes remember.
            if event.retimed == .early {
                report.duplicates["receipt for an event that was old by its next owner's clock", default: 0] += 1
                return
            }
            if let lyingAt = cell.lyingAt, farewells.contains(where: { lyingAt <= $0 && lyingAt >= $0 - 2500 }) {
                report.duplicates["receipt lay at a node that stood still, and sent its people away then", default: 0] += 1
                return
            }
            // An owner acts for 3 s after a look, which may take one. So what came since lies at an owner that stands still.
            if lapses.contains(where: { answeredAt >= $0 - 4000 && answeredAt <= $0 + 2500 }) {
                report.duplicates["receipt while the owner stood still, and lost its lease by that", default: 0] += 1
                return
            }
            return explain(event, "receipt between two owners when the push fell due", from: answeredAt, until: decidedAt, who: who)
        }
        if cell.isSeenAgain, seenAt >= decidedAt {
            report.duplicates["seen later, in a replay or back on the screen: same event id", default: 0] += 1
            return
        }
        // A loaded node tells late where the app is.
        if cell.atCommit, looked(event.committedAt - 2500, seenAt) {
            report.duplicates["came to the screen as the event came", default: 0] += 1
            return
        }
        if cell.atCommit, cell.isOfYounger {
            report.duplicates["pushed with the commit, handed out at a node that began after it", default: 0] += 1
            return
        }
        if cell.atCommit {
            return explain(
                event, "pushed with the commit, handed out again by a new owner", from: event.committedAt, until: seenAt, who: who)
        }
        let reason =
            seenAt >= decidedAt ? "seen on the socket after the push: same nid" : "receipt lost or under way when the push fell due"
        report.duplicates[reason, default: 0] += 1
    }

    /// Told twice, which only a fault in this time excuses.
    func explain(_ event: NodeEvent, _ reason: String, from: Int64, until: Int64, who: Int) {
        if isFaulty(from, until) {
            report.duplicates[reason, default: 0] += 1
        } else {
            report.unexplained += 1
            violation("unexplained: \(reason), \(describe(event)) for \(people[who].name): \(event.cells[people[who].place])")
        }
    }

    func isFaulty(_ from: Int64, _ until: Int64) -> Bool {
        for fault in faults.reversed() {
            if fault.until < from - 60_000 { return false }
            if fault.from <= until, fault.until >= from { return true }
        }
        return false
    }

    private func describe(_ event: NodeEvent) -> String {
        "\(event.record.id) (\(event.record.channel), committed at \(event.committedAt))"
    }

    func violation(_ text: String) {
        report.violationCount += 1
        if report.violations.count < 10 { report.violations.append("\(now) ms: \(text)") }
    }
}
