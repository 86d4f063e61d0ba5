import HubDelivery

/// The judge's own knowledge: receipts that lie at a node, and people who never left the screen.
extension NodeSimulation {
    /// A receipt lies at a node that stands still.
    func lies(_ socket: NodeSocket, _ cursor: UInt64, _ read: Int) {
        let node = nodes[socket.node]
        guard node.isUp, node.life == socket.life, node.run == socket.run, socket.isOpenAtServer, !socket.isCut else { return }
        socket.lies = max(socket.lies, cursor)
        let place = people[socket.person].place
        for (index, isSeen) in socket.read.prefix(max(0, read - socket.readBefore))
        where isSeen && place < events[index].cells.count && events[index].cells[place].lyingAt == nil {
            events[index].cells[place].lyingAt = now
        }
    }

    /// Long after a fault every node knows all others, and nobody else.
    func judgeTables() {
        guard !isEnding, now > 20_000, now % 5000 < 250, !isFaulty(now, now) else { return }
        // A node that stops in order is missed as one that is killed, and no fault.
        let areSettled = nodes.allSatisfy { $0.isUp && !$0.isJoining && $0.operation.takesPartSince.map { $0 < now - 10_000 } ?? false }
        guard areSettled else { return }
        for node in nodes where node.isUp && !node.isSlow {
            let others = Set(nodes.filter(\.isUp).map(\.run)).subtracting([node.run])
            if Set(node.table.keys) != others {
                violation("node \(node.index) knows the runs \(node.table.keys.sorted()), and there are \(others.sorted())")
            }
        }
    }

    /// The plan writes a push down later, where the store refuses a write before it.
    func fallsDue(_ work: PushPlan.Work) {
        guard case .push(let id, let targets, _) = work, let index = eventIndex[id] else { return }
        for target in targets where target.recipient < events[index].cells.count { events[index].cells[target.recipient].fellDueAt = now }
    }

    /// Without a fault nobody is pushed to who has been on the screen, on a socket, since long before the event.
    func judgePush(_ event: NodeEvent, _ place: Int, _ who: Int) {
        guard let number = people[who].connection, !people[who].isHidden, event.cells[place].seenAt == nil else { return }
        let (socket, before) = (sockets[number], event.committedAt - 3000)
        let looked = people[who].looks.last ?? 0
        guard socket.isOpenAtServer, !socket.isCut, max(socket.since, socket.slowUntil, looked) < before else { return }
        explain(event, "pushed to somebody who is on the screen", from: before, until: now, who: who)
    }
}
