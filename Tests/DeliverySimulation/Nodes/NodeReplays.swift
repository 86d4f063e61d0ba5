import HubCore
import HubDelivery

/// Replays to whoever comes back, over nodes: read from the store by the channel's owner, written by the connection's node.
extension NodeSimulation {
    func read(_ arrival: Arrival, _ node: SimNode) {
        let place = channelIndex[arrival.channel].flatMap { channel in
            node.takeovers.firstIndex { $0.partitions.contains(channels[channel].partition) }
        }
        if let place, settings.broken != .replayAtOnce { return node.takeovers[place].arrivals.append(arrival) }
        schedule(between(2, 20), .missed(node.index, life: node.life, arrival))
    }

    /// The store's answer.
    func missed(_ arrival: Arrival, _ node: SimNode) {
        guard let channel = channelIndex[arrival.channel], let person = personIndex[arrival.user] else { return }
        let place = people[person].place
        let recent = reaches(node) ? (told[channel] ?? []).suffix(400).filter { events[$0].record.expiresAt > wall(node) } : []
        let missed = recent.filter { !events[$0].confirmed[place] }.map { index in
            MissedEvent(
                event: events[index].record, recipient: place, note: events[index].notes[place], isPushed: events[index].settled[place])
        }
        let items = arrival.replayed(missed).map { Replay.Item(event: $0.event.id, user: arrival.user, recipient: $0.recipient) }
        post(.item(.replay(Replay(arrival: arrival, items: items))), node)
    }

    func send(_ replay: Replay, _ token: UInt64, _ node: SimNode) {
        let (id, events) = (replay.arrival.connection, replay.items.compactMap { eventIndex[$0.event] })
        if id.loop == 0 { return self.replay(id, token, events, node) }
        guard let run = node.table.first(where: { $0.value.contains(id.loop) })?.key else {
            return post(.item(.report(loop: id.loop, .replayed(id, tokens: [token], cursor: 0))), node)
        }
        let known = ConnectionID(loop: 0, slot: id.slot, generation: id.generation)
        send(.replay(node: run, known, token: token, events), node)
    }

    /// The connection's loop writes the replay, and a PING behind it.
    func replay(_ id: ConnectionID, _ token: UInt64, _ events: [Int], _ node: SimNode) {
        guard id.slot < sockets.count, sockets[id.slot].isOpenAtServer, sockets[id.slot].run == node.run else {
            return report(.replayed(id, tokens: [token], cursor: 0), node)
        }
        for event in events { write(.frame(id.slot, event: event, isReplay: true), to: id.slot) }
        node.lastCursor += 1
        write(.ping(id.slot, cursor: node.lastCursor), to: id.slot)
        report(.replayed(id, tokens: [token], cursor: node.lastCursor), node)
    }
}
