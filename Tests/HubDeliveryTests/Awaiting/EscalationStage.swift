import HubCore
import HubDefinitions
import HubDelivery

extension ConnectionID {
    static func of(_ slot: Int, loop: Int = 0) -> ConnectionID { ConnectionID(loop: loop, slot: slot, generation: 1) }
}

/// Attendance and escalation of one channel `c` of app `1`, driven together as delivery drives them.
struct EscalationStage {
    var book = Attendance()
    var escalation = Escalation()
    /// Each receipt is judged as if none had come before.
    var forgets = false
    private var lastTicket: UInt64 = 0
    private var lastNumber: UInt64 = 0

    mutating func attach(
        _ id: ConnectionID, _ user: String, device: String? = nil, _ state: AppState = .unknown,
        keepsWorking: Bool = false
    ) {
        lastTicket += 1
        book.attach(id, app: "1", channel: "c", user: user, device: device, ticket: lastTicket)
        if state != .unknown { book.setState(id, state, keepsWorking: keepsWorking) }
    }

    /// Opens an event for users or `user/device`, committed at `now`. Its id contains its number: `e1`, `e2`, …
    @discardableResult
    mutating func publish(
        _ policy: Policy = .notify, to users: [String], wait: Int64 = 5000, lifetime: Int64 = 600_000, channel: String = "c",
        at now: Int64 = 0
    ) -> UInt64 {
        lastNumber += 1
        var recipients: [String] = []
        let targets = users.map { text in
            let parts = text.split(separator: "/").map(String.init)
            if recipients.last != parts[0] { recipients.append(parts[0]) }
            return Escalation.Target(
                user: parts[0], device: parts.count > 1 ? parts[1] : nil, policy: policy, wait: wait, lifetime: lifetime,
                recipient: recipients.count - 1, reason: "live")
        }
        escalation.open(
            .init(
                number: lastNumber, event: "e\(lastNumber)", app: "1", channel: channel, attendedUpTo: [lastTicket, lastTicket],
                targets: targets),
            now: now)
        return lastNumber
    }

    /// - Parameter now: nil for time 0.
    mutating func pong(_ id: ConnectionID, _ cursor: UInt64, at now: Int64? = nil) {
        let judged = book.heard(id, cursor: cursor, now: now ?? 0)
        let receipt = Escalation.Receipt(connection: id, cursor: cursor, judgedUpTo: forgets ? 0 : judged)
        escalation.received(receipt, seats: book.seats(of: id), now: now ?? 0)
    }

    /// Writes the event once more.
    mutating func replay(_ event: String, _ user: String, to id: ConnectionID, cursor: UInt64, at now: Int64) {
        book.replayed(id, cursor: cursor)
        escalation.replayed(event, user: user, to: id, cursor: cursor, now: now)
    }

    /// Effects up to a time, as words: `push e1 ann`, `prove e1 ann`, `confirmed e1 0`, `closed e1`.
    mutating func advance(to now: Int64) -> [String] {
        escalation.advance(now: now).flatMap { effect -> [String] in
            switch effect {
            case .push(let event, let targets, let settled):
                targets.map { "push \(event) \($0.user)\($0.device.map { "/\($0)" } ?? "")" } + [
                    settled.isEmpty ? "unsettled" : "settled \(settled)"
                ]
            case .prove(_, let event, _, _, let users): ["prove \(event) \(users.joined(separator: " "))"]
            case .confirmed(let event, let recipients): ["confirmed \(event) \(recipients)"]
            case .answered(let answer): ["answered \(answer.event) \(answer.user)"]
            case .closed(let event): ["closed \(event)"]
            }
        }
    }
}
