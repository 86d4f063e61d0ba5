internal import CLoadSockets
internal import Synchronization

/// Due times of leaves by the sequence in the member's mark. Written by the leavers' thread, read by the receivers' threads.
final class Departures: Sendable {
    private let due = Mutex<[UInt32: UInt64]>([:])

    func note(_ sequence: UInt32, due time: UInt64) { due.withLock { $0[sequence] = time } }

    func due(_ sequence: UInt32) -> UInt64? { due.withLock { $0[sequence] } }
}

/// Listens for the members who stay. A member's id contains a mark, which identifies joins and leaves.
final class MemberWatcher: LinkWatcher {
    private let worker: Worker
    private let departures: Departures

    init(worker: Worker, departures: Departures) {
        self.worker = worker
        self.departures = departures
    }

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard let mark, let base = message.baseAddress else { return }
        // The event's name is near the front of a frame; the rest may be long.
        let front = min(message.count, 200)
        let node = Int(worker.links[slot].node)
        if unsafe tandem_load_find(base, front, "member_added", 12) >= 0 {
            worker.tally.record(PresenceScenario.Kind.added, from: mark.due, to: now, node: node)
        } else if unsafe tandem_load_find(base, front, "member_removed", 14) >= 0 {
            worker.tally.record(PresenceScenario.Kind.removed, from: departures.due(mark.sequence) ?? now, to: now, node: node)
        }
    }
}

/// Members who come and go over connections that stay: a join subscribes, a leave unsubscribes.
final class MemberTraffic: LinkWatcher {
    struct Counts: Sendable {
        /// Acknowledged joins.
        var joined: UInt64 = 0
        var left: UInt64 = 0
        var refused: UInt64 = 0
        /// The server's message for the first refusal.
        var refusal = ""
        /// Joins that fell due with no connection free.
        var unserved: UInt64 = 0
    }

    private struct Stay {
        var due: UInt64
        var sequence: UInt32
        var isAcknowledged = false
    }

    private let worker: Worker
    private let dialect: PusherDialect
    private let channel: String
    private let stay: UInt64
    private let departures: Departures
    private let lines: Int
    private var connected = 0
    private var free: [Int] = []
    /// Members present or joining, by slot.
    private var inside: [Int: Stay] = [:]
    private var leaving: [(at: UInt64, slot: Int)] = []
    private var socketIDs: [Int: String] = [:]
    private var sequence: UInt32 = 0
    private var isComing = true
    private(set) var counts = Counts()

    private static let check: UInt64 = 1_000_000

    init(worker: Worker, dialect: PusherDialect, channel: String, lines: Int, stay: UInt64, departures: Departures) {
        self.worker = worker
        self.dialect = dialect
        self.channel = channel
        self.stay = stay
        self.departures = departures
        self.lines = lines
        for _ in 0..<lines {
            let plan = ConnectionPlan()
            plan.path = dialect.path(channel: channel)
            // No opening: the first message, which gives the socket id, goes to the watcher like the rest.
            plan.isTallied = false
            plan.isCounted = false
            plan.wantsMessages = true
            plan.watcher = self
            worker.open(plan)
        }
    }

    var isConnected: Bool { connected == lines }

    func begin(rate: Double) {
        worker.add(
            Pace(OpenLoop(rate: rate, start: tandem_load_now())) { [weak self] due in
                guard let self, self.isComing else { return false }
                self.join(due: due)
                return true
            })
        worker.add(Pace(due: tandem_load_now()) { [weak self] now in self?.leave(now: now) })
    }

    func stopComing() { isComing = false }

    private func join(due: UInt64) {
        guard let slot = free.popLast(), let socketID = socketIDs[slot] else {
            counts.unserved += 1
            return
        }
        let mark = EventMark(kind: PresenceScenario.Kind.added, stream: 0, due: due, sequence: sequence)
        inside[slot] = Stay(due: due, sequence: sequence)
        sequence += 1
        worker.sendMessage(slot, dialect.subscription(to: channel, member: mark.text, socketID: socketID))
    }

    private func leave(now: UInt64) -> UInt64? {
        while let first = leaving.first, first.at <= now {
            leaving.removeFirst()
            guard let stay = inside.removeValue(forKey: first.slot) else { continue }
            departures.note(stay.sequence, due: first.at)
            worker.sendMessage(
                first.slot, "{\"event\":\"pusher:unsubscribe\",\"data\":{\"channel\":\(PusherDialect.quoted(channel))}}")
            counts.left += 1
            free.insert(first.slot, at: 0)
        }
        return now + Self.check
    }

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard let base = message.baseAddress else { return }
        let front = min(message.count, 200)
        if socketIDs[slot] == nil {
            let text = unsafe String(decoding: message, as: UTF8.self)
            guard text.contains("pusher:connection_established") else { return }
            socketIDs[slot] = PusherDialect.socketID(in: text)
            connected += 1
            free.append(slot)
        } else if unsafe tandem_load_find(base, front, "pusher_internal:subscription_succeeded", 38) >= 0 {
            guard var stay = inside[slot], !stay.isAcknowledged else { return }
            stay.isAcknowledged = true
            inside[slot] = stay
            counts.joined += 1
            worker.tally.record(PresenceScenario.Kind.joined, from: stay.due, to: now, node: Int(worker.links[slot].node))
            leaving.append((now + self.stay, slot))
        } else if unsafe tandem_load_find(base, front, "pusher:error", 12) >= 0 {
            guard let stay = inside[slot], !stay.isAcknowledged else { return }
            if counts.refused == 0 { counts.refusal = unsafe String(decoding: message, as: UTF8.self) }
            counts.refused += 1
            inside[slot] = nil
            free.insert(slot, at: 0)
        }
    }

    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {
        free.removeAll { $0 == slot }
        inside[slot] = nil
    }
}
