import HubCore
import HubDelivery

/// Rules that are broken on purpose: what the book is given, or what it says, is changed on the way.
extension Simulation {
    /// The items that a word becomes.
    func distorted(_ word: Word) -> [DeliveryBook.Item] {
        switch (settings.broken, word) {
        case (.ignoreReceipts, .receipt): return []
        case (.backgroundSettles, .receipt(let index, _, _)) where connections[index].attachedUserState == .background:
            let (loop, id) = (connections[index].id.loop, connections[index].id)
            return [
                .report(loop: loop, .state(id, .foreground, keepsWorking: false)), item(word),
                .report(loop: loop, .state(id, .background, keepsWorking: connections[index].keepsWorking)),
            ]
        case (.provisionalSettles, .attached(let index, _)) where !devices[connections[index].device].kind.declares:
            return [item(word), .report(loop: connections[index].id.loop, .state(connections[index].id, .foreground, keepsWorking: false))]
        case (.returnCancels, .attached(let index, _)):
            let device = devices[connections[index].device]
            return [item(word)]
                + openEvents.sorted().filter { events[$0].channel == device.channel }.compactMap { event in
                    events[event].places[device.person].map { place in
                        .received(
                            AppReceipt(
                                event: events[event].name, app: "1", channel: channels[device.channel].name,
                                user: people[device.person].name, device: device.name, recipient: place))
                    }
                }
        default: return [item(word)]
        }
    }

    func distorted(_ batch: DeliveryBook.Batch) -> DeliveryBook.Batch {
        var batch = batch
        for publish in batch.publishes.indices {
            for opening in batch.publishes[publish].openings.indices {
                distort(&batch.publishes[publish].openings[opening].0)
            }
            if settings.broken == .presenceDecides {
                for record in batch.publishes[publish].records.indices {
                    guard let recipients = batch.publishes[publish].records[record].recipients else { continue }
                    let notes = recipients.notes.map {
                        $0.state == .live && $0.choice == .awaited ? RecipientNote(state: .live, choice: .seen) : $0
                    }
                    batch.publishes[publish].records[record].recipients = RecipientOpening(snapshot: recipients.snapshot, notes: notes)
                }
            }
        }
        return batch
    }

    private func distort(_ opening: inout Escalation.Opening) {
        switch settings.broken {
        case .forgetLifetime: for index in opening.targets.indices { opening.targets[index].lifetime = .max / 4 }
        case .ignoreTicket: opening.attendedUpTo = opening.attendedUpTo.map { _ in .max }
        case .presenceDecides: opening.targets.removeAll { $0.reason == DeviceState.live.rawValue }
        default: break
        }
    }

    func distorted(_ event: RecoveredEvent) -> RecoveredEvent {
        var event = event
        if settings.broken == .recoverTogether {
            var seen: Set<String> = []
            event.opening.targets = event.opening.targets.filter { seen.insert($0.user).inserted }
            for index in event.opening.targets.indices { event.opening.targets[index].device = nil }
        }
        distort(&event.opening)
        return event
    }

    func distorted(_ work: PushPlan.Work) -> PushPlan.Work {
        guard settings.broken == .halfSettles, case .push(let event, let targets, _) = work else { return work }
        return .push(event: event, targets, settled: targets.map(\.recipient))
    }
}
