internal import HubCore
internal import HubDefinitions

/// Reports of loops and apps: attendance, app states, receipts.
extension DeliveryBook {
    mutating func take(_ report: Report, loop: Int, _ answer: Answer, at now: Moment) -> [Effect] {
        switch report {
        case .attached(let connection, let socket, let app, let channel, let user, let isBrowser, let ticket, let silenceMax):
            if let ticket {
                assert(ticket > attendedUpTo[loop], "a loop's tickets grow: \(attendedUpTo[loop]), \(ticket)")
                attendedUpTo[loop] = ticket
            } else if let definition = definitions.match(channel: channel)?.definition, change?.keeps(definition, of: channel) == true {
                break
            }
            let seat = NewSeat(
                connection: connection, socket: socket, app: app, channel: channel, user: user, isBrowser: isBrowser, ticket: ticket,
                silenceMax: silenceMax)
            return attach(seat, answer, at: now)
        case .present: return present(report, answer, at: now)
        case .presentUpTo(let ticket): attendedUpTo[loop] = max(attendedUpTo[loop], ticket)
        case .definitionsRead: return change?.loopAnswered() == true ? finishChange() : []
        case .detached(let connection, let channel): attendance.detach(connection, channel: channel)
        case .state(let connection, let state, let keepsWorking):
            attendance.setState(connection, state, keepsWorking: keepsWorking)
            if state == .foreground { return cameToScreen(connection, at: now) }
            if state == .background { leftScreen(connection, at: now) }
        case .pinged(let events, let cursor):
            for event in events {
                escalation.pinged(event, loop: loop, cursor: cursor)
                unseenPushes.pinged(event, loop: loop, cursor: cursor)
            }
        case .proving(let event, let cursor): escalation.proving(event, loop: loop, cursor: cursor)
        case .replayed(let connection, let tokens, let cursor):
            attendance.replayed(connection, cursor: cursor)
            for replay in tokens.compactMap({ replays.wrote($0, cursor: cursor, now: now.monotonic) }) {
                for item in replay.items {
                    escalation.replayed(item.event, user: item.user, to: connection, cursor: cursor, now: now.monotonic)
                }
            }
        case .receipt(let connection, let cursor):
            let judged = attendance.heard(connection, cursor: cursor, now: now.monotonic)
            let seats = attendance.seats(of: connection)
            var effects = confirmReplays(to: connection, cursor: cursor, seats, at: now)
            effects += stop(unseenPushes.received(connection, seats: seats, upTo: cursor), at: now)
            let receipt = Escalation.Receipt(connection: connection, cursor: cursor, judgedUpTo: judged)
            escalation.received(receipt, seats: seats, now: now.monotonic)
            return effects
        case .disconnected(let connection, let socket, let mayReturn):
            replays.disconnected(connection)
            unseenPushes.left(connection)
            attendance.disconnected(connection, mayReturn: mayReturn, now: now.monotonic)
            attendance.unbind(socketID: socket)
        }
        return []
    }

    // MARK: Attendance

    private struct NewSeat {
        let connection: ConnectionID
        let socket: String
        let app: String
        let channel: String
        let user: String?
        let isBrowser: Bool
        let ticket: UInt64?
        let silenceMax: Duration
    }

    private mutating func attach(_ seat: NewSeat, _ answer: Answer, at now: Moment) -> [Effect] {
        guard let (definition, placeholders) = definitions.match(channel: seat.channel), let user = seat.user ?? placeholders.user else {
            attendance.detach(seat.connection, channel: seat.channel)
            return []
        }
        attendance.attach(
            seat.connection, app: seat.app, channel: seat.channel, user: user,
            device: attendance.device(boundTo: seat.socket, app: seat.app, user: user), ticket: seat.ticket, isBrowser: seat.isBrowser,
            silenceMax: seat.silenceMax, now: now.monotonic)
        if definition.replays, seat.ticket != nil {
            var arrival = Arrival(connection: seat.connection, app: seat.app, channel: seat.channel, user: user, at: now.wall)
            if justDecided.at == now.wall { arrival.decidedJustBefore = justDecided.events }
            replays.arrived(arrival, now: now.monotonic)
        }
        return placeholders.session == nil ? [] : assign(answer, in: definition, to: seat.connection, on: seat.channel)
    }

    /// The roles that a new subscription stands for.
    mutating func assign(
        _ answer: Answer, in definition: ChannelDefinition, to connection: ConnectionID, on channel: String
    ) -> [Effect] {
        if definition.roles.isEmpty { return [] }
        guard let roles = roles(answer, in: definition) else {
            // The frames of this connection are unknown, so its receipts say nothing.
            attendance.restart(connection, channel: channel, firstEvent: .max)
            return [.roles(connection, channel: channel, .unmatched)]
        }
        return [.roles(connection, channel: channel, roles)]
    }

    /// The roles that a person stands for; nil: the directory failed.
    private func roles(_ answer: Answer, in definition: ChannelDefinition) -> RoleSet? {
        guard case .person(_, let participant) = answer else { return nil }
        return RoleSet(role: participant?.role, in: definition)
    }

    /// A changed roster: the user may come back to the channel, and their connections stand for another role.
    mutating func rosterChanged(app: String, session: String, user: String, _ answer: Answer) -> [Effect] {
        var (found, role, isKnown): (Session?, String?, Bool) = (nil, nil, true)
        switch answer {
        case .person(let session, let participant): (found, role) = (session, participant?.role)
        case .unreadable(let session): (found, isKnown) = (session, false)
        default: break
        }
        guard let found, let definition = definitions.definition(named: found.definition),
            let channel = definition.pattern.channelName(session: session, user: user)
        else { return [] }
        var effects: [Effect] = []
        if hasExpelled {
            let isEverybody = definition.pattern.placeholders.contains(.user)
            effects.append(.readmit(app: app, channel: channel, user: isEverybody ? nil : user))
        }
        let connections = attendance.connections(app: app, channel: channel, user: user)
        if definition.roles.isEmpty {
            isKnown = true
        } else {
            let roles = RoleSet(role: role, in: definition)
            effects += connections.map { .roles($0, channel: channel, roles) }
        }
        // Receipts of these connections say nothing about events that were sent to another role.
        for connection in connections { attendance.restart(connection, channel: channel, firstEvent: isKnown ? lastNumber + 1 : .max) }
        return effects
    }

    /// The app is in the background: for receipts under way alone is waited. Nothing changes if another connection may be read on the
    /// screen.
    /// - Parameter event: the number of the only event that is meant; nil for all.
    mutating func leftScreen(_ connection: ConnectionID, event: UInt64? = nil, at now: Moment) {
        unseenPushes.left(connection)
        for (app, channel, user, device) in attendance.places(of: connection) {
            let own = isOfOneDevice(channel) ? device : nil
            let (state, _) = attendance.state(app: app, channel: channel, user: user, device: own, now: now.monotonic)
            guard state == .background else { continue }
            escalation.leftScreen(app: app, channel: channel, user: user, device: own, event: event, now: now.monotonic)
        }
    }

    /// The app is on the screen: what its socket brought before is seen, once its receipt has come. An app's first word often follows its
    /// answer to the replay.
    private mutating func cameToScreen(_ connection: ConnectionID, at now: Moment) -> [Effect] {
        unseenPushes.left(connection)
        let replayed = replays.takeUnseen(connection)
        var effects = stop(replayed, at: now)
        let (seats, cursor) = (attendance.seats(of: connection), attendance.readUpTo(connection))
        if cursor > 0 {
            escalation.received(Escalation.Receipt(connection: connection, cursor: cursor), seats: seats, now: now.monotonic)
        }
        for seat in seats {
            let isAlone = isOfOneDevice(seat.channel)
            let (seen, unread) = unseenPushes.opened(connection, seat, isOfOneDevice: isAlone, readUpTo: cursor, now: now.monotonic)
            effects += stop(seen, at: now)
            if !unread.isEmpty { effects.append(.comeback(.reads(unread, user: seat.user))) }
        }
        return effects
    }

    /// Stops pushes on their way to a gateway, for events that somebody has seen.
    private func stop(_ seen: [UnseenPushes.Seen], at now: Moment) -> [Effect] {
        seen.flatMap { event -> [Effect] in
            let item = event.item
            let cancellation = PushCancellation(user: item.user, device: event.device)
            let withdrawal = withdraw(item.event, cancellation, clearingFrom: clearsSiblings(event.channel) ? event.reader : nil)
            // Another device of the recipient is still awaited.
            if escalation.isWaiting(event: item.event, user: item.user) { return withdrawal }
            return [.plan(.confirmedLate(event: item.event, recipient: item.recipient, at: now.wall))] + withdrawal
        }
    }

    // MARK: Replays

    /// Sends the events that somebody missed; without any, the connection's next replay may begin.
    mutating func send(_ replay: Replay, at now: Moment) -> [Effect] {
        let arrival = replay.arrival
        let token = replay.items.isEmpty ? nil : replays.announce(replay)
        let written = token == nil ? [] : replay.items.map(\.event)
        let word = Effect.comeback(.replays(written, app: arrival.app, user: arrival.user))
        if replay.items.isEmpty { replays.finished(arrival, now: now.monotonic) }
        return token.map { [word, .replay(token: $0, replay)] } ?? [word]
    }

    /// Ends replays that were read: their events are not sent again, and pushes on their way to a gateway stop. Events with an open wait
    /// are judged with all others.
    private mutating func confirmReplays(
        to connection: ConnectionID, cursor: UInt64, _ seats: [Attendance.KnownSeat], at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        for replay in replays.received(connection, cursor: cursor, now: now.monotonic) {
            guard let seat = seats.first(where: { $0.channel == replay.arrival.channel }) else { continue }
            let settled = replay.items.filter { !escalation.isWaiting(event: $0.event, user: $0.user) }
            if !settled.isEmpty { effects.append(.plan(.replayed(settled, at: now.wall))) }
            // An app that says nothing of its state, or is out of sight, may read unseen. Its pushes stay on their way until the app says
            // that it is on the screen.
            if seat.state == .foreground || seat.state == .background && seat.keepsWorking {
                effects += stop([replay], at: now)
            } else {
                replays.keepUnseen(replay)
            }
        }
        return effects
    }

    /// Stops pushes on their way to a gateway, for replays that somebody has seen.
    private func stop(_ replays: [Replay], at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        for replay in replays {
            let channel = replay.arrival.channel
            guard let seat = attendance.seats(of: replay.arrival.connection).first(where: { $0.channel == channel }) else { continue }
            let device = isOfOneDevice(channel) ? seat.device : nil
            // Without the confirming device the other ones are unknown, so nothing is cleared.
            let clearingFrom = clearsSiblings(channel) ? seat.device : nil
            for item in replay.items where !escalation.isWaiting(event: item.event, user: item.user) {
                effects += withdraw(item.event, PushCancellation(user: item.user, device: device), clearingFrom: clearingFrom)
            }
        }
        return effects
    }

    // MARK: Receipts

    /// Settles the person that an app spoke for, and stops pushes on their way to the participant's devices. If each device stands for
    /// itself, only pushes to the receipt's device are stopped.
    mutating func received(_ receipt: AppReceipt, at now: Moment) -> [Effect] {
        let isAlone = isOfOneDevice(receipt.channel)
        var effects: [Effect] = []
        if escalation.isWaiting(event: receipt.event, user: receipt.user) {
            escalation.confirmed(event: receipt.event, user: receipt.user, device: receipt.device)
            // An awaited person has no push under way, except on devices that stand for themselves.
            if !isAlone { return [] }
        } else {
            effects.append(.plan(.confirmedLate(event: receipt.event, recipient: receipt.recipient, at: now.wall)))
        }
        return effects
            + withdraw(
                receipt.event,
                PushCancellation(user: receipt.user, device: isAlone ? receipt.device : nil, isOfNotification: receipt.isOfNotification),
                clearingFrom: clearsSiblings(receipt.channel) ? receipt.device : nil)
    }

    /// Stops pushes on their way to a gateway: at once in memory, and durably in the store.
    private func withdraw(_ event: String, _ cancellation: PushCancellation, clearingFrom device: String?) -> [Effect] {
        [
            .comeback(.confirmed(event, user: cancellation.user, device: cancellation.device)),
            .plan(.late(event: event, PushPlan.LateReceipt(cancellation: cancellation, clearingFrom: device))),
        ]
    }

    private func isOfOneDevice(_ channel: String) -> Bool { definitions.match(channel: channel)?.definition.scope == .device }
    private func clearsSiblings(_ channel: String) -> Bool { definitions.match(channel: channel)?.definition.clearsSiblings ?? false }

    // MARK: Waits

    /// Waits again for an event of an earlier process.
    mutating func recover(_ event: RecoveredEvent, at now: Moment) -> [Effect] {
        var opening = event.opening
        opening.number = nextNumber()
        escalation.open(opening, now: now.monotonic)
        waitBriefly(opening, at: now)
        return [.plan(.opened(event.context))]
    }

    /// Waits only for receipts under way of people whose apps are in the background already.
    mutating func waitBriefly(_ opening: Escalation.Opening, at now: Moment) {
        if attendance.connectionCount == 0 { return }
        for user in Set(opening.targets.map(\.user)) {
            let connections = attendance.connections(app: opening.app, channel: opening.channel, user: user)
            guard let away = connections.first(where: { attendance.state(of: $0) == .background }) else { continue }
            leftScreen(away, event: opening.number, at: now)
        }
    }

    /// Everything that is due up to a time, as effects. A person who has just come back to a channel with replays is waited for.
    /// - Parameter time: milliseconds on the monotonic clock; every receipt that had arrived by then is in the book.
    mutating func advance(upTo time: Int64, at now: Moment) -> [Effect] {
        let (definitions, attendance) = (definitions, attendance)
        // Mostly all that fall due are of one channel.
        var known: (channel: String, replays: Bool)?
        let due = escalation.advance(now: time, clock: now.monotonic) { app, channel, user in
            if known?.channel != channel { known = (channel, definitions.match(channel: channel)?.definition.replays == true) }
            return known?.replays == true ? attendance.cameAt(app: app, channel: channel, user: user) : nil
        }
        return due.flatMap { effects(of: $0, at: now) }
    }

    private func effects(of due: Escalation.Effect, at now: Moment) -> [Effect] {
        switch due {
        case .push(let event, let targets, let settled): return [.plan(.push(event: event, targets, settled: settled))]
        case .confirmed(let event, let recipients): return [.plan(.confirmed(event: event, recipients: recipients, at: now.wall))]
        case .answered(let answer):
            let device = clearsSiblings(answer.channel) ? answer.device : nil
            let withdrawal = withdraw(answer.event, PushCancellation(user: answer.user, device: answer.target), clearingFrom: device)
            // Another device of the recipient is still awaited: a recipient counts as confirmed only with the last one.
            if escalation.isWaiting(event: answer.event, user: answer.user) { return withdrawal }
            return [.plan(.confirmedLate(event: answer.event, recipient: answer.recipient, at: now.wall))] + withdrawal
        case .closed(let event): return [.plan(.closed(event: event))]
        case .prove(let number, _, let app, let channel, let users):
            return [.prove(event: number, users.flatMap { attendance.connections(app: app, channel: channel, user: $0) })]
        }
    }
}
