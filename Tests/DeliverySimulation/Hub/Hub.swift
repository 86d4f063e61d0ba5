import HubCore
import HubDefinitions
import HubDelivery
import HubOutbox
import HubTesting

/// The hub's tasks around the values that ship: a `DeliveryBook`, a `PushPlan` and a `PushFlow`. A crash takes all of it.
struct SimHub: ~Copyable {
    /// One effect to carry out, or one word to give to the book.
    enum Step {
        case effect(DeliveryBook.Effect)
        case word(Word)
    }

    enum Phase { case items, commit, end, rest }

    var book: DeliveryBook
    var plan = PushPlan()
    var flow: PushFlow
    var comebacks = Comebacks()
    var isFlowing = false
    var leasing: [PushRecord] = []
    var answers: [PushFlow.Answer] = []

    // The delivery task.
    var inbox: [Word] = []
    var isTurnPlanned = false
    var steps = StepStack<Step>()
    var phase = Phase.rest
    var committing: DeliveryBook.Batch?
    /// When the task last waited for nothing.
    var freeSince: Int64 = 0
    /// When the rounds were asked that loops have not all answered, and how many have.
    var rounds: [UInt64: (askedAt: Int64, answers: Int)] = [:]
    /// Everything that had come by then was given to the book.
    var heardUpTo = Int64.min
    /// Events by the number that the loops know them by.
    var numbers: [UInt64: Int] = [:]

    // The task of the plan.
    var work: [PushPlan.Work] = []
    var isPlanning = false
    var writing: PushPlan.Write?
    /// Callers of a reload that wait.
    var reloads = 0
}

extension Simulation {
    /// A turn of the delivery task begins no later after it could, and a round of the loops takes no longer, in milliseconds.
    private static let turnMax: Int64 = 3
    private static let roundMax: Int64 = 30

    var moment: Moment { Moment(monotonic: now, wall: wall) }

    func newHub() -> SimHub {
        let settings = DeliveryBook.Settings(loopCount: Self.loops, fraction: { 0.5 })
        return SimHub(book: DeliveryBook(settings, definitions: definitions), flow: newFlow())
    }

    // MARK: The delivery task

    func post(_ word: Word) {
        if case .publish(let event) = word { events[event].postedAt = now }
        hub.inbox.append(word)
        scheduleTurn()
    }

    private func scheduleTurn() {
        guard !hub.isTurnPlanned, hub.phase == .rest else { return }
        hub.isTurnPlanned = true
        schedule(between(0, Self.turnMax), .turn(life: life))
    }

    func turn() {
        hub.isTurnPlanned = false
        guard hub.phase == .rest else { return }
        hub.steps = StepStack(hub.inbox.map { .word($0) })
        hub.inbox = []
        if settings.broken == .dueBeforeReceipts { hearFirst() }
        hub.book.begin(at: moment)
        hub.phase = .items
        work()
    }

    /// The broken rule: loops' answers are heard before the reports that came before them.
    private func hearFirst() {
        func isHeard(_ step: SimHub.Step) -> Bool { if case .word(.item(.heard)) = step { true } else { false } }
        let heard = hub.steps.all.filter(isHeard)
        guard !heard.isEmpty else { return }
        let rest = hub.steps.all.filter { !isHeard($0) }
        hub.steps = StepStack(heard)
        hub.inbox = rest.compactMap { if case .word(let word) = $0 { word } else { nil } } + hub.inbox
    }

    /// Works on until the store has to be waited for, or the turn is over.
    private func work() {
        while true {
            if let step = hub.steps.next() {
                switch step {
                case .word(let word): first(give(word))
                case .effect(.commit(let batch)): return commit(batch)
                case .effect(let effect): carryOut(effect)
                }
                continue
            }
            switch hub.phase {
            case .items:
                hub.phase = .commit
                first(hub.book.commit(at: moment))
            case .commit:
                hub.phase = .end
                first(hub.book.end(at: moment))
            case .end, .rest: return rest()
            }
        }
    }

    private func first(_ effects: [DeliveryBook.Effect]) {
        if !effects.isEmpty { hub.steps.first(effects.map { .effect($0) }) }
    }

    private func rest() {
        hub.phase = .rest
        hub.freeSince = now
        if !hub.inbox.isEmpty { return scheduleTurn() }
        if let wake = hub.book.wakeAt { schedule(max(1, wake - now), .wake(life: life)) }
    }

    /// The task sleeps only while nothing is due: checked after every step.
    func checkLateness() {
        guard hub.phase == .rest, !isStalled, let due = hub.book.escalation.nextDue else { return }
        let since = max(due, hub.freeSince, loopsState.resumedAt)
        if now - since > Self.roundMax { violation("a push is \(now - since) ms late") }
    }

    private func commit(_ batch: DeliveryBook.Batch) {
        let batch = distorted(batch)
        hub.committing = batch
        for prepared in batch.publishes { note(prepared) }
        if settings.broken == .publishBeforeCommit {
            for release in batch.publishes.flatMap(\.releases) { carryOut(.letOut(release)) }
        }
        // Now and then the disk takes its time.
        let takes = chance(1) && chance(20) ? between(1000, 4000) : between(2, 15)
        if takes >= 1000 { slowCommits.append((now, now + takes)) }
        schedule(takes, .committed(life: life))
    }

    func committed() {
        guard let batch = hub.committing else { return }
        hub.committing = nil
        let fails = chance(1)
        if fails { report.failedCommits += 1 }
        let result: Result<[EventRecord], DeliveryBook.CommitFailure> = fails ? .failure(.store) : .success(store(batch))
        var effects = hub.book.committed(batch, fails && settings.broken == .failedGoesOut ? .success([]) : result, at: moment)
        if settings.broken == .publishBeforeCommit {
            effects.removeAll { if case .letOut = $0 { true } else { false } }
        }
        first(effects)
        work()
    }

    // MARK: Items

    private func give(_ word: Word) -> [DeliveryBook.Effect] {
        switch word {
        case .attached(let index, _): devices[connections[index].device].attached.append(index)
        case .state(let index, let state, let keepsWorking):
            connections[index].attachedUserState = state
            connections[index].keepsWorking = keepsWorking
        case .deviceState(let device, let state):
            for index in devices[device].attached { connections[index].attachedUserState = state }
        case .disconnected(let index, _): devices[connections[index].device].attached.removeAll { $0 == index }
        case .receipt(let index, let cursor, let read): noteReceipt(connections[index], index, cursor: cursor, read: read)
        case .item(.heard(let round, _, _)):
            hub.rounds[round]?.answers += 1
            if let known = hub.rounds[round], known.answers == Self.loops {
                hub.heardUpTo = known.askedAt
                hub.rounds[round] = nil
            }
        case .publish, .item: break
        }
        return distorted(word).flatMap { take($0) }
    }

    private func take(_ item: DeliveryBook.Item) -> [DeliveryBook.Effect] {
        var answer = DeliveryBook.Answer.nothing
        if let need = hub.book.need(of: item) { answer = read(need, for: item) }
        return hub.book.take(item, answer, at: moment)
    }

    /// The book's item for a word.
    func item(_ word: Word) -> DeliveryBook.Item {
        switch word {
        case .attached(let index, let ticket): .report(loop: connections[index].id.loop, attached(index, ticket: ticket))
        case .state(let index, let state, let keepsWorking):
            .report(loop: connections[index].id.loop, .state(connections[index].id, state, keepsWorking: keepsWorking))
        case .deviceState(let device, let state):
            .deviceState(
                app: "1", user: people[devices[device].person].name, device: devices[device].name, state,
                keepsWorking: devices[device].kind.showsUnseen && state == .background)
        case .disconnected(let index, let mayReturn):
            .report(loop: connections[index].id.loop, .disconnected(connections[index].id, socket: "s\(index)", mayReturn: mayReturn))
        case .receipt(let index, let cursor, _):
            .report(loop: connections[index].id.loop, .receipt(connections[index].id, cursor: cursor))
        case .publish(let index):
            .publish(
                DeliveryBook.Publish(
                    id: UInt64(index), app: "1",
                    requests: [
                        .init(
                            name: events[index].eventName, channels: [channels[events[index].channel].name],
                            excluded: events[index].excluded)
                    ]))
        case .item(let item): item
        }
    }

    private func read(_ need: DeliveryBook.Need, for item: DeliveryBook.Item) -> DeliveryBook.Answer {
        switch need {
        case .events(let needs):
            guard case .publish(let publish) = item, let need = needs.first else { return .nothing }
            let event = events[Int(publish.id)]
            let channel = channels[event.channel]
            guard channel.isLiving || event.policy == .realtimeOnly else {
                return .refused(PublishRefusal(status: 404, sentence: "there is no session"))
            }
            // A try of its own has a name of its own: what a crash left of an earlier one may be in the store.
            event.tries += 1
            let random = [0, UInt8(truncatingIfNeeded: event.tries), 0] + withUnsafeBytes(of: UInt64(event.index)) { Array($0.prefix(7)) }
            return .events([
                DeliveryBook.EventInput(
                    audience: audience(event, need.definition, need.placeholders, event.policy), content: "{\"n\":\(event.index % 3)}",
                    data: .object(["n": .int(Int64(event.index % 3))]), random: random)
            ])
        case .person(_, let session, let user, _):
            guard let person = personIndex[user] else { return .person(session: nil, nil) }
            let isThere = people[person].isOnRoster
            return .person(session: self.session(session), isThere ? participant(person) : nil)
        }
    }

    /// The people of an event as the directory has them now.
    func audience(
        _ event: SimEvent, _ definition: ChannelDefinition, _ placeholders: ChannelPattern.Match, _ policy: Policy
    ) -> EventAudience {
        let channel = channels[event.channel]
        if policy == .realtimeOnly {
            return EventAudience(app: "1", definition: definition, placeholders: placeholders)
        }
        let entries = channel.people.filter { people[$0].isOnRoster }.map {
            EventAudience.Entry(user: people[$0].name, participant: participant($0), devices: people[$0].record)
        }
        return EventAudience(
            app: "1", definition: definition, placeholders: placeholders, session: session(channel.session), entries: entries)
    }

    // MARK: Effects

    private func carryOut(_ effect: DeliveryBook.Effect) {
        switch effect {
        case .commit: preconditionFailure("a commit is waited for")
        case .letOutAgain: assertionFailure("one node takes nothing over")
        case .forecast: assertionFailure("nobody asks")
        case .letOut(let release):
            if let number = release.receipt {
                hub.numbers[number] = Int(release.publish)
                events[Int(release.publish)].attendedUpTo = release.attendedUpTo ?? []
            }
            for loop in 0..<Self.loops { schedule(1, .publication(life: life, loop: loop, release)) }
        case .respond(let publish, let result): answered(publish: Int(publish), result)
        case .again(let publishes): hub.steps.first(publishes.map { .word(.publish(Int($0.id))) })
        case .done: hub.reloads -= 1
        case .push(let due): enqueue(due)
        case .plan(let work):
            note(work)
            hub.work.append(distorted(work))
            schedulePlan()
        case .prove(let event, let ids):
            for (loop, ids) in Dictionary(grouping: ids.sorted { $0.rawValue < $1.rawValue }, by: \.loop).sorted(by: { $0.key < $1.key }) {
                tell(loop, .prove(event, ids))
            }
        case .read(let arrival): schedule(between(1, 20), .missed(life: life, arrival))
        case .replay(let token, let replay): tell(replay.arrival.connection.loop, .replay(token, replay))
        case .ask(let round):
            hub.rounds[round] = (now, 0)
            for loop in 0..<Self.loops { tell(loop, .hear(round)) }
        case .comeback(let word): hub.comebacks.note(word, now: now)
        case .roles(let id, _, let roles): tell(id.loop, .roles(id, roles))
        case .signed, .readmit: break
        case .expel(let removal): for loop in 0..<Self.loops { tell(loop, .expel(removal)) }
        case .definitions(let definitions):
            hub.flow.change(to: definitions)
            for loop in 0..<Self.loops { tell(loop, .definitionsChanged) }
            if settings.broken == .reloadAtOnce {
                hub.steps.first((0..<Self.loops).map { .word(.item(.report(loop: $0, .definitionsRead))) })
            }
        }
    }

    private func tell(_ loop: Int, _ word: LoopWord) { schedule(1, .loop(life: life, loop: loop, word)) }

    /// The publisher has its answer; after a 503 it asks again, and a 404 is its own affair.
    private func answered(publish index: Int, _ result: Result<[[String?]], PublishRefusal>) {
        switch result {
        case .success:
            if events[index].policy != .realtimeOnly, !events[index].isCommitted {
                violation("\(events[index].name) is answered and not stored")
            }
            unanswered.removeAll { $0 == index }
        case .failure(let refusal) where refusal.status == 503: schedule(between(300, 2000), .again(index))
        case .failure:
            unanswered.removeAll { $0 == index }
            events[index].cells = []
            report.refused += 1
        }
    }

    /// The missed events of an arrival, as the store has them now.
    func missed(_ arrival: Arrival) {
        guard let channel = channelIndex[arrival.channel], let person = personIndex[arrival.user] else { return }
        var missed: [MissedEvent] = []
        for index in recent[channel] where missed.count < Replays.eventsMax {
            let event = events[index]
            guard event.isCommitted, event.record.expiresAt > wall, let place = event.places[person], !event.confirmed[place],
                event.notes[place].choice != .actor
            else { continue }
            missed.append(MissedEvent(event: event.record, recipient: place, note: event.notes[place], isPushed: event.settled[place]))
        }
        let items = arrival.replayed(missed).map { Replay.Item(event: $0.event.id, user: arrival.user, recipient: $0.recipient) }
        post(.item(.replay(Replay(arrival: arrival, items: items))))
    }

    // MARK: The task of the plan

    private func schedulePlan() {
        guard !hub.isPlanning else { return }
        hub.isPlanning = true
        schedule(between(0, Self.turnMax), .plan(life: life))
    }

    /// One turn of the plan: everything that has come is written together.
    func turnOfPlan() {
        hub.plan.begin()
        // The broken rule: the clocks look as if they had moved together.
        let at = settings.broken == .ignoreClockSteps ? Moment(monotonic: now + wallShift, wall: wall) : moment
        let work = hub.work
        hub.work = []
        for piece in work {
            var audience: EventAudience?
            if let context = hub.plan.need(of: piece), let index = eventIndex[context.record.id],
                channels[events[index].channel].isLiving
            {
                audience = self.audience(events[index], context.definition, context.placeholders, context.record.policy)
            }
            for problem in hub.plan.take(piece, audience, at: at) { violation("\(problem)") }
        }
        hub.writing = hub.plan.takeWrite()
        schedule(hub.writing == nil ? 0 : between(2, 15), .planned(life: life))
    }

    /// The store has the turn's write, or refuses it: then it is tried again.
    func planned() {
        if let write = hub.writing {
            if chance(1) {
                report.failedCommits += 1
                if settings.broken != .dropFailedWrite { return schedule(1000, .planned(life: life)) }
            } else {
                enqueue(escalate(write).map { rows[$0].record })
            }
            hub.writing = nil
        }
        for (event, receipts) in hub.plan.takeLate().sorted(by: { $0.key < $1.key }) { cancel(event, receipts.map(\.cancellation)) }
        schedule(20, .rested(life: life))
    }

    func rested() {
        hub.isPlanning = false
        if !hub.work.isEmpty { schedulePlan() }
    }
}
