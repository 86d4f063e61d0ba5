import HubCore
import HubDelivery
import HubTesting

/// PostgreSQL: events, pushes and leases; each function is one transaction. And the gateways, which take every push.
extension NodeSimulation {
    /// Commits events, behind the fence.
    func store(_ batch: DeliveryBook.Batch, of node: SimNode) -> Result<[EventRecord], DeliveryBook.CommitFailure> {
        guard transacts(node) else { return .failure(.store) }
        // One publish may be in it twice: as its node's message, and as the row in which that node left it.
        guard Set(batch.records.map(\.event.id)).count == batch.records.count else { return .failure(.store) }
        for commit in batch.records {
            guard let channel = channelIndex[commit.event.channel], eventIndex[commit.event.id] == nil else { return .failure(.store) }
            let isOwn = node.owning.book.owned[channels[channel].partition] != nil
            guard isOwn || settings.broken == .noFence else { return .failure(.store) }
        }
        let rows = batch.publishes.compactMap { prepared -> Int? in
            guard case .scheduled = prepared.publish.purpose else { return nil }
            return node.commands[prepared.publish.id]?.publish
        }
        let gone = rows.filter { !waitingRows.contains($0) }
        if !gone.isEmpty { return .failure(.notWaiting(gone.map { publishes[$0].id.text })) }
        waitingRows.subtract(rows)
        for prepared in batch.publishes {
            guard let command = node.commands[prepared.publish.id] else { continue }
            for commit in prepared.records {
                guard let recipients = commit.recipients else { continue }
                let publish = publishes[command.publish]
                let event = NodeEvent(
                    publish: publish.index, record: commit.event, at: now, ahead: ahead(of: commit.event, node), lifetime: publish.lifetime,
                    users: recipients.snapshot.users, notes: recipients.notes)
                eventIndex[commit.event.id] = events.count
                publish.events.append(events.count)
                told[publish.channel, default: []].append(events.count)
                if event.isOpen { openEvents.insert(events.count) }
                events.append(event)
                for record in commit.deliveries { insert(record, at: node.committingAt, isAtCommit: true) }
            }
        }
        return .success(batch.records.map(\.event))
    }

    /// How far the owner's clock was ahead when it decided. It may have been set since; a decision takes less than a second to be stored.
    private func ahead(of event: EventRecord, _ node: SimNode) -> Int64 {
        let since = event.committedAt - wall(node)
        return clocks[node.index] + (abs(since) < 1000 ? 0 : since)
    }

    /// Takes back what was committed without an answer, as what ships does before its next transaction. A successor has read the rest.
    func settleUnknown(_ node: SimNode) {
        guard reaches(node) else { return }
        defer { node.unknown = [] }
        for commit in node.unknown where settings.broken != .unknownStays && passes(commit.fence, node.owning.process) {
            for index in commit.events {
                let event = events[index]
                eventIndex[event.record.id] = nil
                publishes[event.publish].events.removeAll { $0 == index }
                told[publishes[event.publish].channel]?.removeAll { $0 == index }
                openEvents.remove(index)
                for push in pushes.indices where pushes[push].event == index {
                    openPushes.remove(push)
                    pushIndex[RowKey(pushes[push].record)] = nil
                }
                if commit.rows.contains(event.publish) { waitingRows.insert(event.publish) }
            }
        }
    }

    /// Inserts rows and writes settlements.
    func escalate(_ write: PushPlan.Write, of node: SimNode) {
        for record in write.rows where eventIndex[record.event] != nil { insert(record, at: node.writingAt, isAtCommit: false) }
        for settlement in write.settlements {
            guard let index = eventIndex[settlement.event] else { continue }
            for confirmation in settlement.confirmed { events[index].confirmed[confirmation.recipient] = true }
            for place in settlement.pushed { events[index].settled[place] = true }
            if settlement.isClosed {
                events[index].isOpen = false
                openEvents.remove(index)
            }
        }
    }

    /// - Parameter at: when it was decided.
    private func insert(_ record: PushRecord, at: Int64, isAtCommit: Bool) {
        guard let index = eventIndex[record.event], let place = events[index].users.firstIndex(of: record.user) else { return }
        guard place < events[index].cells.count else {
            if events[index].retimed != nil { return }
            return violation("a push of \(record.event), which is judged already")
        }
        let key = RowKey(record)
        guard pushIndex[key] == nil else { return }
        guard record.state == .due else {
            events[index].cells[place].end = "\(record.state.rawValue): \(record.reason)"
            return
        }
        noteWrongSurface(events[index].cells[place], people[personIndex[record.user] ?? 0])
        judgePush(events[index], place, personIndex[record.user] ?? 0)
        pushIndex[key] = pushes.count
        openPushes.insert(pushes.count)
        pushes.append(NodePush(record: record, event: index, place: place))
        if events[index].cells[place].pushDecidedAt == nil {
            events[index].cells[place].pushDecidedAt = min(at, events[index].cells[place].fellDueAt ?? at)
            events[index].cells[place].atCommit = isAtCommit
        }
    }

    /// A push to somebody who could have read the event in a replay: it surprises, but nobody is told twice by it.
    private func noteWrongSurface(_ cell: NodeEvent.Cell, _ person: NodePerson) {
        guard person.channel % 2 == 1, !person.isHidden, cell.seenAt == nil, let number = person.connection else { return }
        guard sockets[number].isOpenAtServer, sockets[number].since <= now - 3000 else { return }
        report.changes["pushes after three seconds on the screen, without a replay", default: 0] += 1
    }

    func cancel(_ event: String, _ cancellations: [PushCancellation]) {
        for cancellation in cancellations {
            guard let person = personIndex[cancellation.user],
                let push = pushIndex[RowKey(event: event, user: cancellation.user, device: people[person].device.id)],
                pushes[push].leasedBy == nil
            else { continue }
            pushes[push].isDone = true
            openPushes.remove(push)
        }
    }

    // MARK: Leases and pushes

    /// Every 250 ms: whose leases are over, who owns what, which pushes go out.
    func engines() {
        schedule(250, .engines)
        judgeTables()
        let senders = nodes.filter { $0.isUp && !$0.isStopped && transacts($0) }.map {
            (process: $0.owning.process, life: $0.life, owned: ownedNow($0))
        }
        for push in openPushes.sorted() where pushes[push].leasedBy == nil {
            let partition = Partition.of(MemberPlace(app: "1", channel: pushes[push].record.user))
            guard let owner = senders.first(where: { $0.owned.contains(partition) }) else { continue }
            // Long past its event's end. It was not stored that it went out, or its end came late by another owner's clock.
            if events[pushes[push].event].cells.isEmpty {
                pushes[push].isDone = true
                openPushes.remove(push)
                continue
            }
            (pushes[push].leasedBy, pushes[push].isSending) = (owner.process, true)
            schedule(between(40, 300), .gateway(push, process: owner.process, life: owner.life))
        }
    }

    /// The push is on the phone, and its row says so if the node lives to write it.
    func answered(_ push: Int, _ process: Int64, _ life: Int) {
        shown(push)
        guard let node = nodes.first(where: { $0.isUp && $0.owning.process == process }) else { return }
        schedule(between(2, 15), .outcome(push, node.index, life: life, tries: 10))
    }

    private func shown(_ push: Int) {
        let event = events[pushes[push].event]
        guard pushes[push].place < event.cells.count else {
            if event.retimed != nil { return }
            return violation("a push of \(event.record.id) is sent, which is judged already")
        }
        // A node that stops waits for its pushes on their way, so that their next owner does not send them again.
        if event.cells[pushes[push].place].shownAt != nil, pushes[push].isGivenBack {
            report.duplicates["sent again by a new owner, to which it was given back: same nid", default: 0] += 1
        } else if let shownAt = event.cells[pushes[push].place].shownAt {
            let who = personIndex[pushes[push].record.user] ?? 0
            explain(event, "sent again by a new owner: same nid", from: shownAt, until: now, who: who)
        }
        event.cells[pushes[push].place].shownAt = event.cells[pushes[push].place].shownAt ?? now
    }

    /// The gateway's answer goes to the store, which may not take it for a while.
    func stored(_ push: Int, _ node: SimNode, tries: Int) {
        guard !pushes[push].isDone, pushes[push].leasedBy == node.owning.process else { return }
        guard transacts(node) || tries == 0 else { return schedule(1000, .outcome(push, node.index, life: node.life, tries: tries - 1)) }
        pushes[push].isSending = false
        guard tries > 0 else { return }
        pushes[push].isDone = true
        openPushes.remove(push)
    }

    /// A new owner sends again what the former one had in hand, and not what it has sent itself meanwhile.
    func takeOverPushes(_ partitions: Set<Int32>, _ node: SimNode) {
        for push in openPushes where partitions.contains(Partition.of(MemberPlace(app: "1", channel: pushes[push].record.user))) {
            if pushes[push].leasedBy == node.owning.process, pushes[push].isSending { continue }
            let isGivenBack = nodes.contains { $0.isUp && $0.owning.process == pushes[push].leasedBy }
            if isGivenBack, pushes[push].isSending { pushes[push].isGivenBack = true }
            pushes[push].leasedBy = nil
        }
    }
}
