internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// The delivery task's facts for whoever looks at the moment. Each begins with one atomic read, and ends there while nobody looks.
extension DeliveryTask {
    /// A report that the book is about to take.
    func noteLive(_ report: DeliveryBook.Report) {
        guard let live = service.live, live.isWatched else { return }
        switch report {
        case .attached(_, let socket, let app, let channel, let user, _, let ticket, _) where ticket != nil:
            let named = user ?? book.definitions.match(channel: channel)?.placeholders.user
            live.note(app: app, .join, channel: channel, user: named) { .join(socket: socket) }
        case .detached(let connection, let channel):
            for seat in book.attendance.seats(of: connection) where seat.channel == channel { noteLeave(seat, socket: nil, live) }
        case .disconnected(let connection, let socket, _):
            for seat in book.attendance.seats(of: connection) { noteLeave(seat, socket: socket, live) }
        default: break
        }
    }

    private func noteLeave(_ seat: Attendance.KnownSeat, socket: String?, _ live: LiveStream) {
        live.note(app: seat.app, .leave, channel: seat.channel, user: seat.user) { .leave(socket: socket) }
    }

    /// A batch is committed.
    /// - Parameter events: as the store wrote them.
    func noteLive(_ batch: DeliveryBook.Batch, _ events: [EventRecord]) {
        guard let live = service.live, live.isWatched else { return }
        let sequences = Dictionary(events.map { ($0.id, $0.sequence) }, uniquingKeysWith: { first, _ in first })
        for publish in batch.publishes {
            for record in publish.records { live.note(record, sequence: sequences[record.event.id] ?? 0) }
            // Events without a policy have no record.
            guard let command = commands[publish.publish.id] else { continue }
            for release in publish.releases where release.eventID == nil {
                let request = command.requests[release.request]
                live.note(app: command.app.id, .event, channel: request.channels[release.channel].text, user: nil) {
                    .event(name: request.name, id: nil, policy: nil, recipients: nil, sequence: nil)
                }
            }
        }
    }

    /// Work for the store that tells of receipts.
    func noteLive(_ work: PushPlan.Work) {
        guard let live = service.live, live.isWatched else { return }
        switch work {
        case .confirmed(let event, let recipients, let at): live.noteReceipts(of: event, places: recipients, at: at)
        case .confirmedLate(let event, let recipient, let at): live.noteReceipts(of: event, places: [recipient], at: at)
        case .replayed(let items, let at): for item in items { live.noteReceipts(of: item.event, places: [item.recipient], at: at) }
        default: break
        }
    }
}
