import HubCore
import HubDelivery
import HubTesting

/// PostgreSQL: events, pushes and leases; each function is one transaction. And the gateways, which take every push.
extension NodeSimulation {
    private func passes(_ node: SimNode, _ channel: Int) -> Bool {
        settings.broken == .noFence || owners[channels[channel].partition] == node.run
    }

    /// Commits events, behind the fence.
    func store(_ batch: DeliveryBook.Batch, of node: SimNode) -> Result<[EventRecord], DeliveryBook.CommitFailure> {
        // One publish may be in it twice: as its node's message, and as the row in which that node left it.
        guard Set(batch.records.map(\.event.id)).count == batch.records.count else { return .failure(.store) }
        for commit in batch.records {
            guard let channel = channelIndex[commit.event.channel], passes(node, channel), eventIndex[commit.event.id] == nil else {
                return .failure(.store)
            }
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
                    publish: publish.index, record: commit.event, at: now, lifetime: publish.lifetime, users: recipients.snapshot.users,
                    notes: recipients.notes)
                eventIndex[commit.event.id] = events.count
                publish.events.append(events.count)
                told[publish.channel, default: []].append(events.count)
                if event.isOpen { openEvents.insert(events.count) }
                events.append(event)
                for record in commit.deliveries { insert(record, isAtCommit: true) }
            }
        }
        return .success(batch.records.map(\.event))
    }

    /// Takes back what was committed without an answer, as what ships does before its next transaction. A successor has read the rest.
    func settleUnknown(_ node: SimNode) {
        defer { node.unknown = [] }
        for commit in node.unknown where settings.broken != .unknownStays {
            for index in commit.events where passes(node, publishes[events[index].publish].channel) {
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
        func passes(_ id: String) -> Int? {
            guard let index = eventIndex[id], self.passes(node, publishes[events[index].publish].channel) else { return nil }
            return index
        }
        for record in write.rows where passes(record.event) != nil { insert(record, isAtCommit: false) }
        for settlement in write.settlements {
            guard let index = passes(settlement.event) else { continue }
            for confirmation in settlement.confirmed { events[index].confirmed[confirmation.recipient] = true }
            for place in settlement.pushed { events[index].settled[place] = true }
            if settlement.isClosed {
                events[index].isOpen = false
                openEvents.remove(index)
            }
        }
    }

    private func insert(_ record: PushRecord, isAtCommit: Bool) {
        guard let index = eventIndex[record.event], let place = events[index].users.firstIndex(of: record.user) else { return }
        guard place < events[index].cells.count else { return violation("a push of \(record.event), which is judged already") }
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
            let dueAt = record.dueAt - ManualClock.start
            events[index].cells[place].pushDecidedAt = min(dueAt, events[index].cells[place].fellDueAt ?? dueAt)
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
        for (run, at) in leases where now - at > 3500 { leases[run] = nil }
        share()
        for push in openPushes.sorted() {
            let owner = owners[Partition.of(MemberPlace(app: "1", channel: pushes[push].record.user))]
            guard let owner, pushes[push].leasedBy != owner, leases[owner].map({ now - $0 < 1000 }) == true else { continue }
            pushes[push].leasedBy = owner
            schedule(between(40, 300), .gateway(push, run: owner))
        }
    }

    /// Gives partitions without an owner to the node that has fewest, and moves one to a node that has fewer.
    private func share() {
        let living = leases.keys.sorted()
        guard !living.isEmpty else { return }
        var counts = Dictionary(uniqueKeysWithValues: living.map { ($0, 0) })
        for owner in owners.values { counts[owner]? += 1 }
        func least() -> UInt64 { living.min { (counts[$0] ?? 0, $0) < (counts[$1] ?? 0, $1) } ?? 0 }
        for partition in 0..<Partition.count where owners[partition].map({ leases[$0] == nil }) ?? true {
            owners[partition] = least()
            counts[least()]? += 1
        }
        guard let most = living.max(by: { (counts[$0] ?? 0, $0) < (counts[$1] ?? 0, $1) }),
            (counts[most] ?? 0) > (counts[least()] ?? 0) + 1
        else { return }
        let moved = (0..<Partition.count).filter { owners[$0] == most }.randomElement(using: &random)
        if let moved { owners[moved] = least() }
    }

    /// The push is on the phone, and its row says so if the node lives to write it.
    func answered(_ push: Int, _ run: UInt64) {
        let event = events[pushes[push].event]
        if event.cells[pushes[push].place].shownAt != nil { report.duplicates["sent again by a new owner: same nid", default: 0] += 1 }
        event.cells[pushes[push].place].shownAt = event.cells[pushes[push].place].shownAt ?? now
        guard !pushes[push].isDone, leases[run] != nil, pushes[push].leasedBy == run else { return }
        pushes[push].isDone = true
        openPushes.remove(push)
    }
}
