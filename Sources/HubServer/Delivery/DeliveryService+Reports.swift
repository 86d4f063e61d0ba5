internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// What loops and apps tell delivery: who is there, in which state, and what they have read.
extension DeliveryService {
    func handle(_ item: Item, _ desk: inout DecisionDesk) async {
        switch item {
        case .publish, .definitions, .reports, .heard, .tick: break
        case .replay(let replay, let frames):
            let arrival = replay.arrival
            let token = replay.items.isEmpty ? nil : desk.replays.announce(replay)
            let written = token == nil ? [] : replay.items.map(\.event)
            outbox.comebacks.withLock { $0.replays(written, app: arrival.app, user: arrival.user, now: now) }
            if replay.items.isEmpty { return desk.replays.finished(arrival.connection, now: now) }
            guard let token else { return }
            figures.withLock { $0.replayed(events: replay.items.count) }
            ports.post(
                .replay(arrival.connection, channel: arrival.channel, frames: frames, events: [token]), to: arrival.connection.loop)
        case .recovered(let events):
            for event in events {
                var opening = event.opening
                opening.number = desk.nextNumber()
                desk.escalation.open(opening, now: now)
                escalator.post(.opened(event.context))
            }
        case .received(let receipt):
            figures.withLock { $0.received(.http) }
            received(receipt, &desk)
        case .deviceState(let app, let user, let device, let state, let keepsWorking):
            desk.attendance.setDeviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking)
        case .bind(let socketID, let app, let user, let device, let channel, let done):
            bind(socketID, app: app, user: user, device: device, channel: channel, &desk)
            done.resume()
        case .removed(let session, let users, let isOver, let done):
            remove(users, from: session, isOver: isOver, &desk)
            done.resume()
        case .presence(let app, let channel, let users, let done):
            done.resume(returning: desk.presence(app: app, channel: channel, users: users))
        case .rosterChanged(let app, let session, let user):
            await rolesChanged(app: app, session: session, user: user, &desk)
        }
    }

    /// Settles who an app spoke for, and stops what is still on its way: to all of the participant's devices, or where each stands for
    /// itself to its own alone.
    private func received(_ receipt: AppReceipt, _ desk: inout DecisionDesk) {
        let isAlone = isOfOneDevice(receipt.channel)
        if desk.escalation.isWaiting(event: receipt.event, user: receipt.user) {
            desk.escalation.confirmed(event: receipt.event, user: receipt.user, device: receipt.device)
            // Who is waited for has no push under way, save for devices that stand for themselves.
            if !isAlone { return }
        } else {
            escalator.post(.confirmed(event: receipt.event, recipients: [receipt.recipient], at: time.wallMilliseconds))
        }
        withdraw(
            receipt.event,
            PushCancellation(user: receipt.user, device: isAlone ? receipt.device : nil, isOfNotification: receipt.isOfNotification),
            clearingFrom: clearsSiblings(receipt.channel) ? receipt.device : nil)
    }

    /// Stops what is still on its way to a gateway: at once what has not left, and durably.
    private func withdraw(_ event: String, _ cancellation: PushCancellation, clearingFrom device: String?) {
        outbox.comebacks.withLock { $0.confirmed(event, user: cancellation.user, device: cancellation.device, now: now) }
        escalator.post(.late(event: event, Escalator.LateReceipt(cancellation: cancellation, clearingFrom: device)))
    }

    private func isOfOneDevice(_ channel: String) -> Bool { currentDefinitions.match(channel: channel)?.definition.scope == .device }
    private func clearsSiblings(_ channel: String) -> Bool {
        currentDefinitions.match(channel: channel)?.definition.clearsSiblings ?? false
    }

    /// Enters a report in the book; true when it completes a change of the definitions.
    func handle(_ report: LoopReport, loop: Int, _ desk: inout DecisionDesk, _ change: inout DefinitionChange?) async -> Bool {
        switch report {
        case .attached(let connection, let socketID, let app, let channel, let reportedUser, let isBrowser, let ticket):
            desk.attendedUpTo[loop] = ticket
            await attach(connection, socketID, app: app, channel: channel, user: reportedUser, isBrowser: isBrowser, ticket: ticket, &desk)
        case .stillAttached(let connection, let socketID, let app, let channel, let reportedUser):
            if let definition = currentDefinitions.match(channel: channel.text)?.definition,
                change?.keeps(definition, of: channel) == true
            {
                break
            }
            await attach(connection, socketID, app: app, channel: channel, user: reportedUser, isBrowser: false, ticket: nil, &desk)
        case .definitionsRead: return change?.loopAnswered() ?? false
        case .detached(let connection, let channel): desk.attendance.detach(connection, channel: channel.text)
        case .state(let connection, let state, let keepsWorking):
            desk.attendance.setState(connection, state == .foreground ? .foreground : .background, keepsWorking: keepsWorking)
            // Often its first word comes just behind its answer to the replay.
            if state == .foreground { stop(desk.replays.takeUnseen(connection), desk) }
        case .probed(let events, let cursor):
            for event in events { desk.escalation.probed(event, loop: loop, cursor: cursor) }
        case .proving(let event, let cursor): desk.escalation.proving(event, loop: loop, cursor: cursor)
        case .replayed(let connection, let tokens, let cursor):
            for replay in tokens.compactMap({ desk.replays.wrote($0, cursor: cursor, now: now) }) {
                for item in replay.items {
                    desk.escalation.replayed(item.event, user: item.user, to: connection, cursor: cursor, now: now)
                }
            }
        case .receipt(let connection, let cursor, _):
            desk.attendance.heard(connection, now: now)
            let seats = desk.attendance.seats(of: connection)
            confirmReplays(to: connection, cursor: cursor, seats, &desk)
            desk.escalation.received(Escalation.Receipt(connection: connection, cursor: cursor), seats: seats, now: now)
        case .disconnected(let connection, let departure):
            desk.replays.disconnected(connection)
            desk.attendance.disconnected(connection, mayReturn: departure == .abnormal || departure == .server, now: now)
            desk.attendance.unbind(socketID: process.socketID(of: connection).description)
        }
        return false
    }

    private func attach(
        _ connection: ConnectionID, _ socketID: SocketID, app: Int, channel: ChannelName, user reportedUser: String?,
        isBrowser: Bool, ticket: UInt64?, _ desk: inout DecisionDesk
    ) async {
        guard let (definition, placeholders) = currentDefinitions.match(channel: channel.text), let user = reportedUser ?? placeholders.user
        else { return desk.attendance.detach(connection, channel: channel.text) }
        let appID = apps.apps[app].id
        let device = desk.attendance.device(boundTo: socketID.description, app: appID, user: user)
        let timing = apps.apps[app]
        desk.attendance.attach(
            connection, app: appID, channel: channel.text, user: user, device: device, ticket: ticket, isBrowser: isBrowser,
            silenceMax: timing.pingInterval + timing.pongTimeout, now: now)
        if definition.replays, ticket != nil {
            desk.arrived(
                Arrival(connection: connection, app: appID, channel: channel, user: user), now: time.wallMilliseconds, monotonic: now)
        }
        if await !assignRole(of: user, to: [connection], app: appID, channel: channel, definition, session: placeholders.session) {
            // What it is sent is not known, so its receipts say nothing.
            desk.attendance.restart(connection, channel: channel.text, firstEvent: .max)
        }
    }

    /// A replay was read: it is not sent again, and what is still on its way to a gateway is stopped. Events that somebody is still
    /// waited for are judged with all others.
    private func confirmReplays(
        to connection: ConnectionID, cursor: UInt64, _ seats: [Attendance.KnownSeat], _ desk: inout DecisionDesk
    ) {
        for replay in desk.replays.received(connection, cursor: cursor, now: now) {
            guard let seat = seats.first(where: { $0.channel == replay.arrival.channel.text }) else { continue }
            let settled = replay.items.filter { !desk.escalation.isWaiting(event: $0.event, user: $0.user) }
            if !settled.isEmpty { escalator.post(.replayed(settled, at: time.wallMilliseconds)) }
            // An app that says nothing of its state, or is out of sight, may read without anybody looking: what is on its way to a
            // gateway stays so, until it says that it is on the screen.
            if seat.state == .foreground || seat.state == .background && seat.keepsWorking {
                stop([replay], desk)
            } else if seat.state == .unknown {
                desk.replays.keepUnseen(replay)
            }
        }
    }

    /// Stops what is on its way to a gateway of replays that somebody has seen.
    private func stop(_ replays: [Replay], _ desk: DecisionDesk) {
        for replay in replays {
            let channel = replay.arrival.channel.text
            guard let seat = desk.attendance.seats(of: replay.arrival.connection).first(where: { $0.channel == channel }) else { continue }
            let device = isOfOneDevice(channel) ? seat.device : nil
            // Nobody is told where it is not known which device they are the others of.
            let clearingFrom = clearsSiblings(channel) ? seat.device : nil
            for item in replay.items where !desk.escalation.isWaiting(event: item.event, user: item.user) {
                withdraw(item.event, PushCancellation(user: item.user, device: device), clearingFrom: clearingFrom)
            }
        }
    }

    // MARK: What falls due

    /// Carries out what the escalation asks for.
    func carryOut(_ effects: [Escalation.Effect], _ desk: DecisionDesk) {
        if !effects.isEmpty { figures.withLock { $0.carriedOut(effects) } }
        for effect in effects {
            switch effect {
            case .push(let event, let targets, let settled): escalator.post(.push(event: event, targets, settled: settled))
            case .confirmed(let event, let recipients):
                escalator.post(.confirmed(event: event, recipients: recipients, at: time.wallMilliseconds))
            case .answered(let answer):
                escalator.post(.confirmed(event: answer.event, recipients: [answer.recipient], at: time.wallMilliseconds))
                withdraw(
                    answer.event, PushCancellation(user: answer.user, device: answer.target),
                    clearingFrom: clearsSiblings(answer.channel) ? answer.device : nil)
            case .closed(let event): escalator.post(.closed(event: event))
            case .prove(let number, _, let app, let channel, let users):
                let connections = users.flatMap { desk.attendance.connections(app: app, channel: channel, user: $0) }
                for (loop, connections) in Dictionary(grouping: connections, by: \.loop) {
                    ports.post(.prove(event: number, connections), to: loop)
                }
            }
        }
    }

    // MARK: Roles

    /// Tells the loops for which roles connections stand. Definitions without roles need none of it.
    /// - Returns: false when the role could not be read.
    private func assignRole(
        of user: String, to connections: [ConnectionID], app: String, channel: ChannelName, _ definition: ChannelDefinition,
        session: String?
    ) async -> Bool {
        guard !definition.roles.isEmpty, let session, !connections.isEmpty else { return true }
        var role: String?
        var isKnown = true
        do {
            role = try await directory.participant(app: app, session: session, user: user)?.role
        } catch {
            isKnown = false
            logger.error("a role could not be read; the connection gets what is for everybody", metadata: ["error": "\(error)"])
        }
        let roles = RoleSet(role: role, in: definition)
        for connection in connections { ports.post(.audience(connection, channel: channel, roles), to: connection.loop) }
        return isKnown
    }

    private func rolesChanged(app: String, session: String, user: String, _ desk: inout DecisionDesk) async {
        do {
            guard let found = try await directory.session(app: app, id: session),
                let definition = currentDefinitions.definition(named: found.definition),
                let text = definition.pattern.channelName(session: session, user: user), let channel = ChannelName(text)
            else { return }
            readmit(user, to: channel, app: app, definition, desk)
            let connections = desk.attendance.connections(app: app, channel: text, user: user)
            let isKnown = await assignRole(of: user, to: connections, app: app, channel: channel, definition, session: session)
            // What they were sent in another role, their receipts do not speak of.
            let firstEvent = isKnown ? desk.lastNumber + 1 : .max
            for connection in connections { desk.attendance.restart(connection, channel: text, firstEvent: firstEvent) }
        } catch {
            logger.error("a changed role could not be read", metadata: ["error": "\(error)"])
        }
    }
}
