import HubCore
import HubDelivery
import HubTesting

/// The messages in the stream, and a node's loop that acts on them.
extension NodeSimulation {
    func take(_ message: NodeMessage, of origin: UInt64, _ node: SimNode) {
        let isOwn = origin == node.run
        switch message {
        case .hello(let isQuestion):
            if isOwn { break }
            node.greeted.insert(origin)
            post(.joined(origin), node)
            if isQuestion { send(.hello(isQuestion: false), node) }
        case .reports(let reports): if !isOwn { post(.reports(origin, reports), node) }
        case .publish(let index): post(.publish(index, of: origin), node)
        case .published(let asker, let index, let isTaken): if asker == node.run { published(index, isTaken: isTaken, node) }
        case .event(let event):
            // An owner that Redis does not hear lets its own events out past it, for as long as PostgreSQL confirms its leases.
            if isDead(node) {
                // A beat in the memory of a later failover says nothing about the former one.
                if node.reader == node.writer { violation("node \(node.index) hands on an event after it was declared dead") }
                report.changes["events handed on from a memory that only the way for writing had left", default: 0] += 1
            }
            if !isOwn || !node.alone.contains(event.serial) { letOut(event, node) }
        case .wasLetOut(let number, let ticket): post(.wasLetOut(origin, number: number, ticket: ticket), node)
        case .prove(let run, let event, let ids): if run == node.run { prove(event, ids, node) }
        case .replay(let run, let id, let token, let events): if run == node.run { replay(id, token, events, node) }
        case .ask(let round): if !isOwn { send(.heard(asker: origin, round: round), node) }
        case .heard(let asker, let round): if asker == node.run { post(.heard(origin, round: round), node) }
        case .attend(let round, let partitions): if !isOwn { attend(node, round, partitions, asker: origin) }
        case .dead(let run): post(.left(run), node)
        case .attended(let asker, let round): if asker == node.run { post(.attended(origin, round: round), node) }
        }
    }

    // MARK: The loop

    func report(_ report: DeliveryBook.Report, _ node: SimNode) {
        post(.item(.report(loop: 0, report)), node)
        send(.reports([report]), node)
    }

    func attend(_ node: SimNode, _ round: UInt64, _ partitions: Set<Int32>, asker: UInt64) {
        for channel in channels.indices where partitions.contains(channels[channel].partition) {
            for socket in node.subscribers[channel] {
                report(
                    .present(
                        sockets[socket].id, socket: "s\(socket)", app: "1", channel: channels[channel].name,
                        user: people[sockets[socket].person].name, isBrowser: false, ticket: sockets[socket].ticket,
                        silenceMax: .seconds(25), state: sockets[socket].state, keepsWorking: false), node)
            }
        }
        report(.presentUpTo(ticket: node.lastTicket), node)
        if asker == node.run { return post(.attended(node.run, round: round), node) }
        let number = send(.attended(asker: asker, round: round), node)
        if node.operation.isLeaving, let number { node.operation.telling.append((number, partitions)) }
    }

    /// An event comes to a node's subscribers.
    func letOut(_ release: NodeRelease, _ node: SimNode) {
        let event = events[release.event]
        let channel = publishes[event.publish].channel
        let upTo = release.attendedUpTo.map { $0[node.run] ?? 0 } ?? .max
        if release.isAgain, let known = node.letOut[event.record.id] {
            if let number = release.receipt {
                // The own task has to hear it before a receipt, which takes no way through Redis.
                if release.owner == node.run {
                    post(.wasLetOut(node.run, number: number, ticket: known), node)
                } else {
                    send(.wasLetOut(number: number, ticket: known), node)
                }
            }
        } else {
            node.letOut.set(upTo, for: event.record.id, now: now)
            for socket in node.subscribers[channel] where sockets[socket].ticket <= upTo {
                write(.frame(socket, event: release.event, isReplay: false), to: socket)
            }
        }
        guard let number = release.receipt else { return }
        node.lastCursor += 1
        for socket in node.subscribers[channel] { write(.ping(socket, cursor: node.lastCursor), to: socket) }
        report(.pinged(events: [number], cursor: node.lastCursor), node)
    }

    func prove(_ event: UInt64, _ ids: [ConnectionID], _ node: SimNode) {
        node.lastCursor += 1
        for id in ids where id.slot < sockets.count && sockets[id.slot].isOpenAtServer && sockets[id.slot].run == node.run {
            write(.ping(id.slot, cursor: node.lastCursor), to: id.slot)
        }
        report(.proving(event: event, cursor: node.lastCursor), node)
    }

    // MARK: Publishes that came in here

    func publish() {
        guard publishedPairs < settings.pairs else {
            isEnding = true
            return
        }
        schedule(between(0, 2 * 2000 / Int64(settings.channels)), .publish)
        let asker = Int.random(in: nodes.indices, using: &random)
        guard nodes[asker].hasBegun, !nodes[asker].operation.isClosing else { return }
        let index = publishes.count
        let lifetime: Int64 = chance(50) ? 90_000 : 120_000
        let id = PublishID(text: "p\(index)", time: wall(nodes[asker]))
        let channel = Int.random(in: channels.indices, using: &random)
        publishes.append(NodePublish(index: index, channel: channel, lifetime: lifetime, id: id, asker: asker))
        publishedPairs += settings.participantsPerChannel
        report.events += 1
        schedule(lifetime + 30_000, .expired(index))
        schedule(0, .asked(index))
    }

    func ask(_ index: Int) {
        let node = nodes[publishes[index].asker]
        guard node.isUp else { return }
        node.asked.insert(index)
        schedule(1000, .late(index, node: node.index, life: node.life))
        send(.publish(index), node)
    }

    /// The owner answers.
    func answer(_ index: Int, isTaken: Bool, to run: UInt64, _ node: SimNode) {
        if run == node.run { return published(index, isTaken: isTaken, node) }
        send(.published(asker: run, index, isTaken: isTaken), node)
    }

    private func published(_ index: Int, isTaken: Bool, _ node: SimNode) {
        guard isTaken else { return leaveToStore(index, node) }
        if node.asked.remove(index) != nil { publishes[index].isAnswered = true }
    }

    func leaveToStore(_ index: Int, _ node: SimNode) {
        guard node.asked.remove(index) != nil else { return }
        schedule(transactionTime(node), .rowStored(index, node: node.index, life: node.life))
    }

    func rowStored(_ index: Int, _ node: SimNode, isAlive: Bool) {
        // An answer that is lost on a broken way may hide a row.
        guard isAlive ? transacts(node) : postgres.isUp && chance(50) else { return }
        publishes[index].isRow = true
        if isAlive { publishes[index].isAnswered = true }
        waitingRows.insert(index)
    }
}
