import HubCore
import HubDefinitions
import HubDelivery

/// A node's delivery task around the book that ships, with what `DeliveryTask` does for several nodes.
extension NodeSimulation {
    private static let turnMax: Int64 = 3
    /// Events of the last seconds are handed out again after a takeover, as in what ships.
    private static let freshMilliseconds: Int64 = 50_000

    func newBook(run: UInt64 = 0) -> DeliveryBook {
        var settings = DeliveryBook.Settings(loopCount: 1, fraction: { 0.5 })
        settings.firstNumber = run << 40
        return DeliveryBook(settings, definitions: definitions)
    }

    func post(_ word: NodeWord, _ node: SimNode) {
        node.inbox.append(word)
        scheduleTurn(node)
    }

    private func scheduleTurn(_ node: SimNode) {
        guard !node.isTurnPlanned, node.phase == .rest else { return }
        node.isTurnPlanned = true
        schedule(between(0, Self.turnMax), .turn(node.index, life: node.life))
    }

    func turn(_ node: SimNode) {
        node.isTurnPlanned = false
        guard node.phase == .rest else { return }
        node.steps = StepStack(node.inbox.map { .word($0) })
        node.inbox = []
        node.book.begin(at: moment(node))
        node.phase = .items
        work(node)
    }

    /// Works on until the store has to be waited for, or the turn is over.
    private func work(_ node: SimNode) {
        while true {
            if let step = node.steps.next() {
                switch step {
                case .effect(.commit(let batch)):
                    (node.committing, node.committingAt) = (batch, now)
                    if node.stopsAtCommit { stop(node) }
                    if node.owning.cutsAtCommit { cut(node) }
                    return schedule(transactionTime(node), .committed(node.index, life: node.life))
                case .effect(let effect): carryOut(effect, node)
                case .word(let word): first(give(word, node), node)
                }
                continue
            }
            switch node.phase {
            case .items:
                node.phase = .commit
                first(node.book.commit(at: moment(node)), node)
            case .commit:
                node.phase = .end
                first(node.book.end(at: moment(node)), node)
            case .end, .rest:
                node.phase = .rest
                if !node.inbox.isEmpty { return scheduleTurn(node) }
                if let wake = node.book.wakeAt { schedule(max(1, wake - now), .wake(node.index, life: node.life)) }
                return
            }
        }
    }

    private func first(_ effects: [DeliveryBook.Effect], _ node: SimNode) {
        if !effects.isEmpty { node.steps.first(effects.map { .effect($0) }) }
    }

    func committed(_ node: SimNode) {
        guard let batch = node.committing else { return }
        node.committing = nil
        settleUnknown(node)
        let aborts = chance(1) || node.owning.isAnswerLost
        node.owning.isAnswerLost = false
        var result: Result<[EventRecord], DeliveryBook.CommitFailure> = .failure(.store)
        // The commit may be on disk although its answer is lost.
        if chance(1), chance(30) {
            commitUnknown(batch, node)
        } else if !aborts {
            result = store(batch, of: node)
        }
        if aborts { report.failedCommits += 1 }
        self.first(node.book.committed(batch, result, at: moment(node)), node)
        work(node)
    }

    /// Commits without an answer.
    func commitUnknown(_ batch: DeliveryBook.Batch, _ node: SimNode) {
        let (first, fence) = (events.count, node.owning.book.owned)
        guard case .success = store(batch, of: node) else { return }
        let rows = batch.publishes.compactMap { node.commands[$0.publish.id] }.filter { $0.of == nil }.map(\.publish)
        node.unknown.append((Array(first..<events.count), rows, fence))
        count("commits without an answer")
    }

    func serves(_ node: SimNode, _ channel: String) -> Bool {
        channelIndex[channel].map { node.owned.contains(channels[$0].partition) } ?? false
    }

    // MARK: Words

    private func give(_ word: NodeWord, _ node: SimNode) -> [DeliveryBook.Effect] {
        switch word {
        case .item(.report(let loop, let report)): return isConcerned(node, report) ? take(.report(loop: loop, report), node) : []
        case .item(let item): return take(item, node)
        case .reports(let run, let reports):
            guard let loops = node.table[run] else { break }
            return reports.filter { isConcerned(node, $0) }.flatMap {
                take(.report(loop: loops.lowerBound, $0.onLoop(loops.lowerBound)), node)
            }
        case .publish(let index, let run): return publish(index, of: run, word, node)
        case .row(let index): return publish(index, of: nil, word, node)
        case .joined(let run):
            guard node.table[run] == nil, run != node.run else { break }
            return stored(before: .joins(run), node)
        case .joins(let run): node.table[run] = node.book.addLoops(1)
        case .left(let run): return stored(before: .leaves(run), node)
        case .leaves(let run):
            if let loops = node.table.removeValue(forKey: run) { node.book.removeLoops(loops, at: moment(node)) }
            for place in node.takeovers.indices { node.takeovers[place].awaited.remove(run) }
            read(node)
        case .gap(let run):
            guard let loops = node.table[run] else { break }
            node.book.forgetAttendance(ofLoops: loops, at: moment(node))
            askWhoIsPresent(node.owned, holds: false, node)
        case .restarted: askWhoIsPresent(node.owned, holds: false, node)
        case .wasLetOut(let run, let number, let ticket):
            if settings.broken == .letOutIgnored { break }
            guard let loop = run == node.run ? 0 : node.table[run]?.lowerBound else { break }
            node.book.wasLetOut(number, upTo: [(loop: loop, ticket: ticket)], at: moment(node))
        case .heard(let run, let round):
            if let loops = node.table[run] { return take(.heard(round: round, source: loops.lowerBound, newcomers: 0), node) }
        case .attended(let run, let round):
            if let place = node.takeovers.firstIndex(where: { $0.round == round }) { node.takeovers[place].awaited.remove(run) }
            read(node)
        case .attendedNoMore(let round):
            if let place = node.takeovers.firstIndex(where: { $0.round == round }) { node.takeovers[place].awaited = [] }
            read(node)
        case .owned(let partitions): return stored(before: .owns(partitions), node)
        case .owns(let partitions): return own(partitions, node)
        case .taken(let round):
            guard let place = node.takeovers.firstIndex(where: { $0.round == round }) else { break }
            let takeover = node.takeovers.remove(at: place)
            for arrival in takeover.arrivals { read(arrival, node) }
            node.steps.first(takeover.held.map { .word($0) })
        }
        return []
    }

    /// Publishes that are decided go to the store before the word: they know the loops and partitions of that moment.
    private func stored(before word: NodeWord, _ node: SimNode) -> [DeliveryBook.Effect] {
        node.steps.first([.word(word)])
        return node.book.commit(at: moment(node))
    }

    /// Subscriptions to channels of other owners do not count.
    private func isConcerned(_ node: SimNode, _ report: DeliveryBook.Report) -> Bool {
        switch report {
        case .attached(_, _, _, let channel, _, _, _, _), .present(_, _, _, let channel, _, _, _, _, _, _): serves(node, channel)
        default: true
        }
    }

    private func take(_ item: DeliveryBook.Item, _ node: SimNode) -> [DeliveryBook.Effect] {
        var answer = DeliveryBook.Answer.nothing
        if let need = node.book.need(of: item), case .events(let needs) = need, let need = needs.first,
            case .publish(let publish) = item, let command = node.commands[publish.id]
        {
            let (it, number) = (publishes[command.publish], command.publish)
            var (random, time) = (it.id.random(need.channel), Optional(it.id.time))
            if settings.broken == .noPublishIDs {
                time = nil
                random = withUnsafeBytes(of: (node.run << 32 | publish.id).bigEndian) { Array($0) } + [0, 0]
            }
            answer = .events([
                DeliveryBook.EventInput(
                    audience: audience(it.channel), content: "{\"n\":\(number)}", data: .object(["n": .int(Int64(number))]),
                    random: random, idTime: time)
            ])
        }
        return node.book.take(item, answer, at: moment(node))
    }

    func audience(_ channel: Int) -> EventAudience {
        guard let (definition, placeholders) = definitions.match(channel: channels[channel].name) else {
            preconditionFailure("the channel has a definition")
        }
        let session = Session(
            app: "1", id: "\(channel)", number: Int64(channel), definition: definition.name, joinCode: nil, attributes: [:], createdAt: 0)
        let entries = channels[channel].people.map { person in
            EventAudience.Entry(
                user: people[person].name,
                participant: Participant(
                    app: "1", session: "\(channel)", user: people[person].name, number: Int64(person), name: people[person].name,
                    email: nil, role: nil, joinedAt: 0), devices: [people[person].device])
        }
        return EventAudience(app: "1", definition: definition, placeholders: placeholders, session: session, entries: entries)
    }

    /// - Parameter run: the run of the node that was asked; nil: the publish comes from the store.
    private func publish(_ index: Int, of run: UInt64?, _ word: NodeWord, _ node: SimNode) -> [DeliveryBook.Effect] {
        let publish = publishes[index]
        let channel = channels[publish.channel]
        guard node.owned.contains(channel.partition) else { return [] }
        if let place = node.takeovers.firstIndex(where: { $0.partitions.contains(channel.partition) }) {
            if run != nil || !node.takeovers[place].held.contains(where: { if case .row(index) = $0 { true } else { false } }) {
                node.takeovers[place].held.append(word)
            }
            return []
        }
        settleUnknown(node)
        let mayBeKnown = run == nil || node.rowsTaken.contains(index)
        if run == nil {
            guard waitingRows.contains(index), !node.commands.values.contains(where: { $0.publish == index }) else { return [] }
            node.rowsTaken.insert(index)
        }
        if mayBeKnown, !reaches(node) {
            if let run { answer(index, isTaken: false, to: run, node) }
            return []
        }
        if mayBeKnown, eventIndex[publish.id.event(channel.name)] != nil {
            if run == nil { waitingRows.remove(index) }
            if let run { answer(index, isTaken: true, to: run, node) }
            return []
        }
        node.lastCommand += 1
        node.commands[node.lastCommand] = (index, run)
        return take(
            .publish(
                DeliveryBook.Publish(
                    id: node.lastCommand, app: "1",
                    requests: [.init(name: SimKind.event(.notify, Int(publish.lifetime / 1000), role: nil), channels: [channel.name])],
                    purpose: run == nil ? .scheduled(id: publish.id.text) : .publish)), node)
    }

    // MARK: Partitions

    private func own(_ partitions: Set<Int32>, _ node: SimNode) -> [DeliveryBook.Effect] {
        let (gained, lost) = (partitions.subtracting(node.owned), node.owned.subtracting(partitions))
        node.owned = partitions
        var effects: [DeliveryBook.Effect] = []
        if !lost.isEmpty {
            if !node.operation.isLeaving { lapses.append(now) }
            for place in node.takeovers.indices { node.takeovers[place].partitions.subtract(lost) }
            effects = node.book.keep { self.serves(node, $1) }
        }
        if !gained.isEmpty {
            node.book.wasAway(at: moment(node))
            askWhoIsPresent(gained, holds: true, node)
        }
        return effects
    }

    private func askWhoIsPresent(_ partitions: Set<Int32>, holds: Bool, _ node: SimNode) {
        guard !partitions.isEmpty else { return }
        node.lastRound += 1
        let round = node.lastRound
        let isAsked = settings.broken != .noAttend
        if holds {
            let awaited = isAsked ? Set(node.watch.living).union(node.table.keys).union([node.run]) : []
            node.takeovers.append(NodeTakeover(round: round, partitions: partitions, awaited: awaited))
            schedule(isAsked ? 2000 : 0, .word(.attendedNoMore(round: round), node.index, life: node.life))
        }
        guard isAsked else { return }
        attend(node, round, partitions, asker: node.run)
        send(.attend(round: round, partitions: partitions), node)
    }

    /// Reads the open events of partitions where everybody's presence is known.
    private func read(_ node: SimNode) {
        for place in node.takeovers.indices where node.takeovers[place].awaited.isEmpty && !node.takeovers[place].isReading {
            node.takeovers[place].isReading = true
            schedule(between(2, 20), .readOpen(node.index, life: node.life, round: node.takeovers[place].round))
        }
    }

    func readOpen(_ node: SimNode, _ round: UInt64) {
        guard let takeover = node.takeovers.first(where: { $0.round == round }) else { return }
        guard reaches(node) else { return schedule(500, .readOpen(node.index, life: node.life, round: round)) }
        takeOverPushes(takeover.partitions, node)
        for index in openEvents.sorted() where settings.broken != .noTakeover {
            let event = events[index]
            let channel = publishes[event.publish].channel
            guard takeover.partitions.contains(channels[channel].partition) else { continue }
            let ahead = clocks[node.index] - event.ahead
            if ahead != 0 { event.retimed = ahead > 0 ? .early : .late }
            guard let recovered = recovered(event, channel, node) else {
                event.isOpen = false
                openEvents.remove(index)
                continue
            }
            let isFresh = !node.table.isEmpty && event.record.committedAt > wall(node) - Self.freshMilliseconds
            post(.item(isFresh ? .takenOver(recovered) : .recovered(recovered)), node)
        }
        post(.taken(round: round), node)
    }

    private func recovered(_ event: NodeEvent, _ channel: Int, _ node: SimNode) -> RecoveredEvent? {
        let audience = audience(channel)
        guard let told = audience.definition.events[event.record.name] else { return nil }
        var (confirmed, pushed) = (PlaceSet(count: event.notes.count), PlaceSet(count: event.notes.count))
        for place in event.notes.indices {
            if event.confirmed[place] { confirmed.insert(place) }
            if event.settled[place] { pushed.insert(place) }
        }
        let open = OpenRecipients(
            position: 0, event: event.record, users: event.users, notes: event.notes, confirmed: confirmed, pushed: pushed)
        return RecoveredEvent(
            open, event: told, audience: audience, data: .object(["n": .int(Int64(event.publish))]), rows: [], loopCount: 1,
            tokenAge: .standard, at: moment(node))
    }

    // MARK: Effects

    private func carryOut(_ effect: DeliveryBook.Effect, _ node: SimNode) {
        switch effect {
        case .letOut(let release): letOut(release, isAgain: false, node)
        case .letOutAgain(_, let release): letOut(release, isAgain: true, node)
        case .forecast: assertionFailure("nobody asks")
        case .respond(let number, let result):
            guard let command = node.commands.removeValue(forKey: number), let run = command.of else { return }
            if case .success = result { return answer(command.publish, isTaken: true, to: run, node) }
            answer(command.publish, isTaken: false, to: run, node)
        case .plan(let work):
            fallsDue(work)
            node.work.append(work)
            schedulePlan(node)
        case .prove(let event, let ids):
            let own = ids.filter { $0.loop == 0 }
            if !own.isEmpty { prove(event, own, node) }
            for (run, loops) in node.table.sorted(by: { $0.key < $1.key }) {
                let theirs = ids.filter { loops.contains($0.loop) }.map { ConnectionID(loop: 0, slot: $0.slot, generation: $0.generation) }
                if !theirs.isEmpty { send(.prove(node: run, event: event, theirs), node) }
            }
        case .ask(let round):
            schedule(1, .word(.item(.heard(round: round, source: 0, newcomers: 0)), node.index, life: node.life))
            guard settings.broken != .noQuestion else {
                for loops in node.table.values.sorted(by: { $0.lowerBound < $1.lowerBound }) {
                    let heard = NodeWord.item(.heard(round: round, source: loops.lowerBound, newcomers: 0))
                    schedule(1, .word(heard, node.index, life: node.life))
                }
                break
            }
            if !node.table.isEmpty { send(.ask(round: round), node) }
        case .commit: preconditionFailure("a commit is waited for")
        case .read(let arrival): read(arrival, node)
        case .replay(let token, let replay): send(replay, token, node)
        case .again, .done, .expel, .readmit, .definitions: assertionFailure("nothing of it is simulated")
        case .push, .comeback, .roles, .signed: break
        }
    }

    func letOut(_ release: DeliveryBook.Release, isAgain: Bool, _ node: SimNode) {
        guard let id = release.eventID, let index = eventIndex[id] else { return }
        node.lastSerial += 1
        var tickets: [UInt64: UInt64]?
        if let upTo = release.attendedUpTo {
            tickets = [node.run: upTo[0]]
            for (run, loops) in node.table { tickets?[run] = upTo[loops.lowerBound] }
        }
        let event = NodeRelease(
            event: index, owner: node.run, attendedUpTo: tickets, receipt: release.receipt, isAgain: isAgain, serial: node.lastSerial)
        send(.event(event), node)
    }

    // MARK: The plan

    private func schedulePlan(_ node: SimNode) {
        guard !node.isPlanning else { return }
        node.isPlanning = true
        schedule(between(0, Self.turnMax), .plan(node.index, life: node.life))
    }

    func turnOfPlan(_ node: SimNode) {
        // Rosters are read before anything is decided.
        if !reaches(node) { return schedule(1000, .plan(node.index, life: node.life)) }
        node.plan.begin()
        let work = node.work
        node.work = []
        for piece in work {
            var audience: EventAudience?
            if let context = node.plan.need(of: piece), let channel = channelIndex[context.record.channel] {
                audience = self.audience(channel)
            }
            for problem in node.plan.take(piece, audience, at: moment(node)) { violation("\(problem)") }
        }
        (node.writing, node.writingAt) = (node.plan.takeWrite(), now)
        schedule(node.writing == nil ? 0 : transactionTime(node), .planned(node.index, life: node.life))
    }

    func planned(_ node: SimNode) {
        if let write = node.writing {
            settleUnknown(node)
            if chance(1) || !transacts(node) { return schedule(1000, .planned(node.index, life: node.life)) }
            escalate(write, of: node)
            node.writing = nil
        }
        for (event, receipts) in node.plan.takeLate().sorted(by: { $0.key < $1.key }) where transacts(node) {
            cancel(event, receipts.map(\.cancellation))
        }
        node.isPlanning = false
        if !node.work.isEmpty { schedulePlan(node) }
    }
}

extension DeliveryBook.Report {
    /// The same of another node's loop, by its index in the book.
    func onLoop(_ loop: Int) -> DeliveryBook.Report {
        func known(_ id: ConnectionID) -> ConnectionID { ConnectionID(loop: loop, slot: id.slot, generation: id.generation) }
        switch self {
        case .attached(let id, let socket, let app, let channel, let user, let isBrowser, let ticket, let silence):
            return .attached(
                known(id), socket: socket, app: app, channel: channel, user: user, isBrowser: isBrowser, ticket: ticket,
                silenceMax: silence)
        case .present(let id, let socket, let app, let channel, let user, let isBrowser, let ticket, let silence, let state, let works):
            return .present(
                known(id), socket: socket, app: app, channel: channel, user: user, isBrowser: isBrowser, ticket: ticket,
                silenceMax: silence, state: state, keepsWorking: works)
        case .detached(let id, let channel): return .detached(known(id), channel: channel)
        case .state(let id, let state, let works): return .state(known(id), state, keepsWorking: works)
        case .disconnected(let id, let socket, let mayReturn): return .disconnected(known(id), socket: socket, mayReturn: mayReturn)
        case .receipt(let id, let cursor): return .receipt(known(id), cursor: cursor)
        case .replayed(let id, let tokens, let cursor): return .replayed(known(id), tokens: tokens, cursor: cursor)
        case .presentUpTo, .pinged, .proving, .definitionsRead: return self
        }
    }
}
