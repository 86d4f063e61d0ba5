import HubCore
import HubDefinitions
import HubDelivery
import HubTesting

struct RowKey: Hashable {
    let event: String
    let user: String
    /// Empty for a row without a device.
    let device: String

    init(_ record: PushRecord) {
        (event, user, device) = (record.event, record.user, record.device)
    }

    init(event: String, user: String, device: String) {
        (self.event, self.user, self.device) = (event, user, device)
    }
}

/// The store: survives everything. Each function is one transaction.
extension Simulation {
    /// Commits events with their recipients and rows.
    func store(_ batch: DeliveryBook.Batch) -> [EventRecord] {
        for prepared in batch.publishes {
            let event = events[Int(prepared.publish.id)]
            for commit in prepared.records {
                assert(!event.isCommitted, "an event is committed once")
                event.record = commit.event
                event.committedAt = now
                event.life = life
                event.isCommitted = true
                eventIndex[commit.event.id] = event.index
                if let recipients = commit.recipients { event.setRecipients(recipients, people: personIndex) }
                recent[event.channel].removeAll { events[$0].expiresAt < now }
                recent[event.channel].append(event.index)
                schedule(event.lifetime + 1, .expired(event.index))
                if event.notes.contains(where: { $0.choice == .awaited }) {
                    event.isOpen = true
                    openEvents.insert(event.index)
                }
                for record in commit.deliveries { _ = insert(record, of: event) }
            }
        }
        return batch.records.map(\.event)
    }

    /// Inserts rows and writes settlements; the new rows that are due.
    func escalate(_ write: PushPlan.Write) -> [Int] {
        var written: [Int] = []
        for record in write.rows {
            guard let index = eventIndex[record.event] else { continue }
            if let row = insert(record, of: events[index]) { written.append(row) }
        }
        for settlement in write.settlements {
            guard let index = eventIndex[settlement.event] else { continue }
            for confirmation in settlement.confirmed { events[index].confirmed[confirmation.recipient] = true }
            for place in settlement.pushed { events[index].settled[place] = true }
            if settlement.isClosed {
                events[index].isOpen = false
                openEvents.remove(index)
            }
        }
        return written
    }

    func insert(_ record: PushRecord, of event: SimEvent) -> Int? {
        guard rowIndex[RowKey(record)] == nil else { return nil }
        guard record.state == .due else {
            if let person = personIndex[record.user] { event.endings[person] = "\(record.state.rawValue): \(record.reason)" }
            return nil
        }
        rows.append(Row(event: event.index, device: deviceIndex(record.device), record: record))
        rowIndex[RowKey(record)] = rows.count - 1
        openRows.insert(rows.count - 1)
        return rows.count - 1
    }

    /// Ends pushes that wait to be sent; one that is with its gateway stays.
    func cancel(_ event: String, _ cancellations: [PushCancellation]) {
        for cancellation in cancellations {
            guard let person = personIndex[cancellation.user] else { continue }
            for device in people[person].devices where cancellation.device == nil || cancellation.device == devices[device].name {
                guard let row = rowIndex[RowKey(event: event, user: cancellation.user, device: devices[device].name)], !rows[row].isDone
                else { continue }
                let policy = events[rows[row].event].policy
                guard cancellation.isOfNotification || policy != .both && policy != .pushOnly else { continue }
                guard rows[row].record.state != .leased || rows[row].sentInLife != life else {
                    rows[row].isWithdrawn = true
                    continue
                }
                rows[row].record.state = .cancelled
                rows[row].isDone = true
                openRows.remove(row)
                hub.flow.drop([rows[row].record])
            }
        }
    }

    /// The fan-outs that were left open, for a start.
    func openRecipients(_ event: SimEvent) -> OpenRecipients {
        var (confirmed, pushed) = (PlaceSet(count: event.notes.count), PlaceSet(count: event.notes.count))
        for place in event.notes.indices {
            if event.confirmed[place] { confirmed.insert(place) }
            if event.settled[place] { pushed.insert(place) }
        }
        return OpenRecipients(
            position: Int64(event.index), event: event.record, users: event.users, notes: event.notes, confirmed: confirmed, pushed: pushed)
    }

    // MARK: Gateways

    func shown(_ row: Int) {
        let event = events[rows[row].event]
        guard !devices[rows[row].device].isUninstalled, !event.cells.isEmpty, event.expiresAt >= now else { return }
        let cell = rows[row].device - channels[event.channel].firstDevice
        if event.cells[cell].pushShownAt == nil {
            event.cells[cell].pushShownAt = now
        } else if event.cells[cell].shownInLife == rows[row].sentInLife {
            violation("\(event.name) is pushed twice to \(devices[rows[row].device].name) without a crash")
        } else {
            report.duplicates["sent again after a crash: same apns-id and tag", default: 0] += 1
        }
        event.cells[cell].shownInLife = rows[row].sentInLife
    }

    // MARK: Crash

    func crash() {
        if !isEnding { schedule(between(0, 2 * settings.crashInterval), .crash) }
        guard isUp, !isEnding else { return }
        report.crashes += 1
        isUp = false
        // The disk may have had it before the process could tell.
        if let batch = hub.committing, chance(50) { _ = store(batch) }
        if let write = hub.writing, chance(50) { _ = escalate(write) }
        for index in connections.indices.reversed() {
            let connection = connections[index]
            guard connection.life == life else { break }
            connection.isOpenAtServer = false
            devices[connection.device].attached = []
            let device = devices[connection.device]
            if device.connection == index, isRunning(device) {
                schedule(between(200, 6000), .connect(connection.device, step: device.step))
            }
        }
        let down = between(300, 5000)
        downtimes.append((now, now + down))
        schedule(down, .boot)
    }

    func boot() {
        life += 1
        isUp = true
        hub = newHub()
        loopsState = SimLoops(channels: channels.count)
        hub.book.wasAway(at: moment)
        // A receipt that came during an attempt ends its push with the process, as in the store.
        for row in openRows.sorted() where rows[row].isWithdrawn {
            rows[row].record.state = .cancelled
            rows[row].isDone = true
            openRows.remove(row)
        }
        hub.flow.resume(openRows.sorted().map { rows[$0].record }, isWhole: true, at: moment)
        runFlow()
        for index in openEvents.sorted() { takeUp(events[index]) }
        // A retry with the same Idempotency-Key finds the answer of a committed one.
        unanswered.removeAll { events[$0].isCommitted }
        for event in unanswered { post(.publish(event)) }
        post(.item(.tick))
    }

    /// Whoever was not done with gets the boot grace, and then a push.
    private func takeUp(_ event: SimEvent) {
        let channel = channels[event.channel]
        guard settings.broken != .noRecovery, let (definition, placeholders) = definitions.match(channel: channel.name),
            let told = definition.events[event.eventName]
        else { return close(event) }
        var own: [PushRecord] = []
        if channel.kind.scope == .device {
            for device in channel.firstDevice..<channel.endDevice {
                let key = RowKey(event: event.name, user: people[devices[device].person].name, device: devices[device].name)
                if let row = rowIndex[key] { own.append(rows[row].record) }
            }
        }
        let audience = channel.isLiving ? audience(event, definition, placeholders, event.policy) : nil
        let recovered = RecoveredEvent(
            openRecipients(event), event: told, audience: audience, data: .object(["n": .int(Int64(event.index % 3))]), rows: own,
            loopCount: Self.loops, tokenAge: .standard, at: moment)
        guard let recovered else { return close(event) }
        post(.item(.recovered(distorted(recovered))))
    }

    private func close(_ event: SimEvent) {
        event.isOpen = false
        openEvents.remove(event.index)
    }
}
