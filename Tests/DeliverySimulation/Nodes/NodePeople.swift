import HubCore
import HubDelivery

/// People with one phone each, who come to any node, and what their nodes hear of it.
extension NodeSimulation {
    func live(_ index: Int) {
        if isEnding { return hangUp(index, isCut: false) }
        guard people[index].connection != nil else {
            connect(index)
            return
        }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30:
            hangUp(index, isCut: false)
            opensAnew(index)
        case 30..<45:
            hangUp(index, isCut: true)
            opensAnew(index)
        case 45..<70:
            look(index)
            next(index, 5000, 60_000)
        default:
            hangUp(index, isCut: true)
            schedule(between(1000, 4000), .connect(index, step: people[index].step))
        }
    }

    /// The app ends, and begins again later.
    private func opensAnew(_ index: Int) {
        (people[index].isHidden, people[index].unseen) = (false, [])
        next(index, 3000, 60_000)
    }

    /// The app goes to the background, or comes back to the screen, and tells so.
    private func look(_ index: Int) {
        people[index].isHidden.toggle()
        people[index].looks = people[index].looks.suffix(31) + [now]
        if !people[index].isHidden {
            for event in people[index].unseen.sorted() { seen(event, by: index, isAgain: true) }
            people[index].unseen = []
        }
        guard let number = people[index].connection else { return }
        sockets[number].upAt = max(sockets[number].upAt, now + between(10, 150))
        let state: AppState = people[index].isHidden ? .background : .foreground
        schedule(sockets[number].upAt - now, .says(number, state))
    }

    private func next(_ index: Int, _ least: Int64, _ most: Int64) {
        people[index].step += 1
        schedule(between(least, most), .person(index, step: people[index].step))
    }

    func connect(_ index: Int) {
        if isEnding { return }
        let node = nodes[Int.random(in: nodes.indices, using: &random)]
        people[index].step += 1
        // A balancer finds no node that answers, or one that will let them in when it goes on.
        let refuses = node.isStopped || isDead(node) || node.owning.book.isCutOff
        guard node.letsIn, !refuses || chance(30) else {
            return schedule(between(200, 1000), .connect(index, step: people[index].step))
        }
        let number = sockets.count
        let socket = NodeSocket(
            id: ConnectionID(loop: 0, slot: number & 0xFF_FFFF, generation: 1), person: index, node: node)
        sockets.append(socket)
        people[index].connection = number
        socket.upAt = now + between(20, 300)
        schedule(socket.upAt - now, .up(number, cursor: nil, read: 0))
        schedule(between(5000, 60_000), .person(index, step: people[index].step))
    }

    private func hangUp(_ index: Int, isCut: Bool) {
        guard let number = people[index].connection else { return }
        people[index].connection = nil
        sockets[number].isOpenAtClient = false
        sockets[number].isCut = isCut
        // The node hears of it at once, or by silence.
        if isCut { return schedule(chance(50) ? between(20, 500) : 25_000, .lost(number)) }
        sockets[number].upAt = max(sockets[number].upAt, now + between(10, 150))
        schedule(sockets[number].upAt - now, .up(number, cursor: 0, read: 0))
    }

    func write(_ action: Action, to number: Int) {
        var delay = between(10, 150)
        // A phone in a tunnel hears late, and answers late.
        if case .ping = action, chance(1) {
            delay = between(2000, 6000)
            sockets[number].slowUntil = now + delay
        }
        sockets[number].downAt = max(sockets[number].downAt, now + delay)
        schedule(sockets[number].downAt - now, action)
    }

    // MARK: What the program reads

    func arrived(_ socket: NodeSocket, _ index: Int, isReplay: Bool) {
        guard socket.isOpenAtClient else { return }
        let (event, person) = (events[index], people[socket.person])
        socket.read.append((index, !person.isHidden))
        guard now <= event.committedAt + event.lifetime else {
            if !event.cells.isEmpty { event.cells[person.place].cameTooLate = true }
            return
        }
        if !isReplay, event.cells[person.place].seenAt != nil || person.unseen.contains(index) {
            if isYounger(socket, event) {
                report.duplicates["written again by a node that began after it: same event id", default: 0] += 1
            } else {
                explain(event, "written again: same event id", from: event.committedAt, until: now, who: socket.person)
            }
        }
        if person.isHidden {
            people[socket.person].unseen.insert(index)
        } else {
            seen(index, by: socket.person, isAgain: isReplay)
            if isYounger(socket, event) { event.cells[person.place].isOfYounger = true }
        }
    }

    /// A node that began after an event does not know that it was let out. It writes it to everybody when a new owner hands it out.
    private func isYounger(_ socket: NodeSocket, _ event: NodeEvent) -> Bool {
        nodes[socket.node].operation.takesPartSince.map { $0 > event.committedAt } ?? false
    }

    private func seen(_ index: Int, by person: Int, isAgain: Bool) {
        let (event, place) = (events[index], people[person].place)
        guard !event.cells.isEmpty, event.cells[place].seenAt == nil else { return }
        guard now <= event.committedAt + event.lifetime else {
            event.cells[place].cameTooLate = true
            return
        }
        event.cells[place].seenAt = now
        event.cells[place].isSeenAgain = isAgain
    }

    func pinged(_ socket: NodeSocket, _ number: Int, _ cursor: UInt64) {
        guard socket.isOpenAtClient else { return }
        socket.upAt = max(socket.upAt, now + between(10, 150))
        schedule(socket.upAt - now, .up(number, cursor: cursor, read: socket.readBefore + socket.read.count))
    }

    // MARK: What the node hears

    /// - Parameter cursor: nil: a subscription; 0: a goodbye.
    func received(_ socket: NodeSocket, _ number: Int, _ cursor: UInt64?, _ read: Int) {
        let node = nodes[socket.node]
        guard node.isUp, node.life == socket.life, socket.isOpenAtServer else { return }
        guard !socket.isCut || cursor.map({ $0 > 0 && $0 <= socket.lies }) ?? false else { return }
        if cursor == nil { socket.run = node.run }
        guard node.run == socket.run else { return }
        let channel = people[socket.person].channel
        switch cursor {
        case nil:
            node.lastTicket += 1
            (socket.ticket, socket.since) = (node.lastTicket, now)
            node.subscribers[channel].append(number)
            report(
                .attached(
                    socket.id, socket: "s\(number)", app: "1", channel: channels[channel].name, user: people[socket.person].name,
                    isBrowser: false, ticket: socket.ticket, silenceMax: .seconds(25)), node)
            says(number, people[socket.person].isHidden ? .background : .foreground)
        case 0: disconnect(number, mayReturn: false)
        case let cursor?:
            let place = people[socket.person].place
            for (index, isSeen) in socket.read.prefix(max(0, read - socket.readBefore))
            where isSeen && !events[index].cells.isEmpty && events[index].cells[place].answeredAt == nil {
                events[index].cells[place].answeredAt = now
            }
            let old = socket.read.prefix { now > events[$0.event].committedAt + 5000 }.count
            socket.read.removeFirst(old)
            socket.readBefore += old
            report(.receipt(socket.id, cursor: cursor), node)
        }
    }

    /// The app tells where it is.
    func says(_ number: Int, _ state: AppState) {
        let socket = sockets[number]
        let node = nodes[socket.node]
        guard node.isUp, node.run == socket.run, socket.isOpenAtServer, !socket.isCut else { return }
        socket.state = state
        report(.state(socket.id, state, keepsWorking: false), node)
    }

    func disconnect(_ number: Int, mayReturn: Bool) {
        let socket = sockets[number]
        let node = nodes[socket.node]
        guard node.isUp, node.run == socket.run, socket.isOpenAtServer else { return }
        socket.isOpenAtServer = false
        node.subscribers[people[socket.person].channel].removeAll { $0 == number }
        report(.disconnected(socket.id, socket: "s\(number)", mayReturn: mayReturn), node)
    }

    /// The node is gone, or closes the socket with 4200: the app connects again, anywhere.
    func dropSockets(of node: SimNode) {
        for number in node.subscribers.flatMap({ $0 }) { drop(number) }
    }

    func drop(_ number: Int) {
        let socket = sockets[number]
        guard socket.isOpenAtClient else { return }
        socket.isOpenAtClient = false
        let person = socket.person
        guard people[person].connection == number else { return }
        people[person].connection = nil
        people[person].step += 1
        schedule(between(200, 5000), .connect(person, step: people[person].step))
    }
}
