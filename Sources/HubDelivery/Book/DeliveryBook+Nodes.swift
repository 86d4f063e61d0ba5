package import HubCore
internal import HubDefinitions

/// Several nodes: the loops of the others, and channels that come from another owner or go to one.
extension DeliveryBook {
    // MARK: Loops

    /// Adds the loops of another node. Its first loop names it in `Item.heard`.
    /// - Returns: indexes of the loops; nil: no room for so many.
    package mutating func addLoops(_ count: Int) -> Range<Int>? {
        assert(prepared.isEmpty && !isCommitting, "loops come between two commits")
        var first = settings.loopCount
        for taken in nodeLoops.sorted(by: { $0.lowerBound < $1.lowerBound }) where first + count > taken.lowerBound {
            first = max(first, taken.upperBound)
        }
        guard count > 0, first + count <= ConnectionID.loopsMax else { return nil }
        let loops = first..<first + count
        nodeLoops.append(loops)
        while attendedUpTo.count < loops.upperBound { attendedUpTo.append(0) }
        escalation.grow(toLoops: attendedUpTo.count)
        hearing.add(source: first)
        return loops
    }

    /// The node of these loops is gone. Everybody on it counts as on the way back.
    package mutating func removeLoops(_ loops: Range<Int>, at now: Moment) {
        assert(prepared.isEmpty && !isCommitting, "loops go between two commits")
        guard let place = nodeLoops.firstIndex(of: loops) else { return assertionFailure("loops \(loops) are no node's") }
        nodeLoops.remove(at: place)
        for connection in attendance.connections(ofLoops: loops) {
            log(.lost, of: connection, at: now)
            replays.disconnected(connection)
            unseenPushes.left(connection)
            attendance.disconnected(connection, mayReturn: true, now: now.monotonic)
        }
        for loop in loops { attendedUpTo[loop] = 0 }
        // The next node with these indexes begins with low tickets and cursors.
        escalation.forget(loops: loops)
        unseenPushes.forget(loops: loops)
        note(hearing.remove(source: loops.lowerBound, now: begunAt))
    }

    /// Gives up everything about the connections of these loops, whose reports have a gap. Their node reports who is present.
    package mutating func forgetAttendance(ofLoops loops: Range<Int>, at now: Moment) {
        for connection in attendance.connections(ofLoops: loops) {
            log(.lost, of: connection, at: now)
            replays.disconnected(connection)
            unseenPushes.left(connection)
            attendance.disconnected(connection, mayReturn: true, now: now.monotonic)
        }
    }

    // MARK: Channels

    /// Gives up the channels that this book serves no more. Their next owner finds the events open in the store.
    package mutating func keep(_ isServed: (_ app: String, _ channel: String) -> Bool) -> [Effect] {
        assert(prepared.isEmpty && !isCommitting, "channels go between two turns")
        attendance.keep(isServed)
        // The next owner notes what follows, so these would lack it after a return.
        changes.keep(isServed)
        unseenPushes.keep(isServed)
        replays.keep(isServed, now: begunAt)
        return escalation.keep(isServed).map { .plan(.abandoned(event: $0)) }
    }

    /// An earlier owner had handed the event out to these loops: subscribers up to these tickets were written it. Whoever came since and is
    /// waited for is sent it as a replay: the former owner's replay, or its receipt, may be lost.
    /// - Parameter number: as of `letOutAgain`.
    package mutating func wasLetOut(_ number: UInt64, upTo tickets: [(loop: Int, ticket: UInt64)], at now: Moment) {
        for (loop, ticket) in tickets where loop < attendedUpTo.count { escalation.setAttended(number, loop: loop, upTo: ticket) }
        guard let (opening, users) = escalation.waiting(number), definitions.match(channel: opening.channel)?.definition.replays == true
        else { return }
        let upTo = Dictionary(tickets.map { ($0.loop, $0.ticket) }, uniquingKeysWith: { first, _ in first })
        for user in users {
            for connection in attendance.connections(app: opening.app, channel: opening.channel, user: user) {
                guard let ticket = upTo[connection.loop], let seat = attendance.ticket(of: connection, on: opening.channel), seat > ticket
                else { continue }
                var arrival = Arrival(connection: connection, app: opening.app, channel: opening.channel, user: user, at: now.wall)
                arrival.events = [opening.event]
                replays.arrived(arrival, now: now.monotonic)
            }
        }
    }

    /// Waits for the receipts of an event that an earlier owner of the channel left open, and hands it out to loops that lack it.
    mutating func takeOver(_ event: RecoveredEvent, at now: Moment) -> [Effect] {
        var opening = event.opening
        opening.number = nextNumber()
        opening.attendedUpTo = attendedUpTo
        escalation.open(opening, now: now.monotonic)
        waitBriefly(opening, at: now)
        var release = Release(publish: 0, request: 0, channel: 0, eventID: opening.event)
        release.roles = event.roles
        release.attendedUpTo = attendedUpTo
        release.receipt = opening.number
        return [.plan(.opened(event.context)), .letOutAgain(event.context.record, release)]
    }

    mutating func present(_ report: Report, _ answer: Answer, at now: Moment) -> [Effect] {
        guard
            case .present(
                let connection, let socket, let app, let channel, let user, let isBrowser, let ticket, let silenceMax, let state,
                let keepsWorking) = report,
            let (definition, placeholders) = definitions.match(channel: channel), let user = user ?? placeholders.user
        else { return [] }
        if attendance.connections(app: app, channel: channel, user: user).contains(connection) {
            attendance.repeatState(connection, state, keepsWorking: keepsWorking)
            if state == .background { leftScreen(connection, at: now) }
            return []
        }
        attendance.attach(
            connection, app: app, channel: channel, user: user, device: attendance.device(boundTo: socket, app: app, user: user),
            ticket: ticket, isBrowser: isBrowser, silenceMax: silenceMax, now: now.monotonic)
        if state != .unknown { attendance.setState(connection, state, keepsWorking: keepsWorking) }
        if state == .background { leftScreen(connection, at: now) }
        // The subscription may have come when the channel had no owner who could have assigned its roles.
        return placeholders.session == nil ? [] : assign(answer, in: definition, to: connection, on: channel)
    }
}
