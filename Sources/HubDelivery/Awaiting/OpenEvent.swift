internal import HubCore

/// A committed event that some targets have not confirmed yet.
///
/// A class, so that a receipt changes one element and copies nothing. Owned by one `Escalation`.
final class OpenEvent {
    enum Phase: UInt8 {
        case waiting
        /// An app that says nothing of its state has answered; it has to answer once more.
        case provisional
        case settled
    }

    /// A repeated write of the event, followed by a PING.
    struct Replay {
        let connection: ConnectionID
        let cursor: UInt64
        let at: Int64
    }

    /// Replays that are remembered per user; receipts of older ones are ignored.
    static let replaysMax = 8
    /// Milliseconds between questions for a sign of life: questions of one event go out together.
    private static let proofInterval: Int64 = 500
    /// Milliseconds for which a hearing may put a push off that falls due at the last moment. The rest of the last call's spare second is
    /// for the commit.
    private static let lastHearingMax: Int64 = 500

    private(set) var opening: Escalation.Opening
    let committedAt: Int64
    private(set) var phases: [Phase]
    private(set) var unsettled: Int
    /// Per target, the time of its push.
    private var dues: [Int64]
    /// Index of the first target, by user.
    private let firstTarget: [String: Int]
    /// Indexes of the targets by their first due times, and the number of those already visited.
    private let order: [Int32]
    private var orderHead = 0
    /// Targets whose due times were moved, and targets to ask for a sign of life.
    private var moved = Agenda()
    private var proofs = Agenda()
    /// Per provisional target, the time of the event's write, real or inferred from a late receipt. Targets without an entry were written
    /// to at the commit.
    private var writtenAgain: [Int: Int64] = [:]
    /// Per due target, the time of its user's return, and the time of the last replay. Each extends the wait once.
    private var returns: [Int: Int64] = [:]
    private var replayed: [Int: Int64] = [:]
    /// Pushed targets that have not answered since.
    var pushed: Set<Int> = []
    /// Receipts that said nothing before may say something now: an answer was taken back, or an earlier owner had sent the event.
    private var isJudgedAnew = false
    /// Targets whose waits were stretched because the hub was late.
    private(set) var late: Set<Int> = []
    /// Provisional targets that were given time to prove that they read a later replay, once each.
    private var askedAgain: Set<Int> = []

    /// Per loop, the cursor of the PING after the event.
    var cursors: [UInt64?]
    /// Per loop, the cursors and times of the later questions for a sign of life.
    var asks: [[(cursor: UInt64, at: Int64)]]
    var askedAt: Int64
    /// Replays by user.
    var replays: [String: [Replay]] = [:]
    /// Time at which the agenda lists the event; nil if not listed.
    var scheduled: Int64?
    /// Recipients whose confirmations are not yet among the effects.
    var confirmations: [Int] = []

    init(_ opening: Escalation.Opening, committedAt: Int64) {
        self.opening = opening
        self.committedAt = committedAt
        phases = Array(repeating: .waiting, count: opening.targets.count)
        let dues = opening.targets.map { committedAt + min($0.wait, max(0, $0.lifetime - Decision.lastCallMilliseconds)) }
        self.dues = dues
        order = dues.indices.map { Int32($0) }.sorted { (dues[Int($0)], $0) < (dues[Int($1)], $1) }
        var firstTarget: [String: Int] = [:]
        firstTarget.reserveCapacity(opening.targets.count)
        for (index, target) in opening.targets.enumerated() where firstTarget[target.user] == nil { firstTarget[target.user] = index }
        self.firstTarget = firstTarget
        cursors = Array(repeating: nil, count: opening.attendedUpTo.count)
        asks = Array(repeating: [], count: opening.attendedUpTo.count)
        askedAt = committedAt
        unsettled = opening.targets.count
    }

    // MARK: Loops of other nodes

    func grow(toLoops count: Int) {
        while cursors.count < count {
            cursors.append(nil)
            asks.append([])
            opening.attendedUpTo.append(0)
        }
    }

    func forget(loops: Range<Int>) {
        for loop in loops where loop < cursors.count {
            (cursors[loop], asks[loop], opening.attendedUpTo[loop]) = (nil, [], 0)
        }
    }

    func setAttended(loop: Int, upTo ticket: UInt64) {
        opening.attendedUpTo[loop] = ticket
        isJudgedAnew = true
    }

    // MARK: Targets

    /// Indexes of the user's targets.
    func targets(of user: String) -> Range<Int> {
        guard let first = firstTarget[user] else { return 0..<0 }
        var end = first
        while end < opening.targets.count, opening.targets[end].user == user { end += 1 }
        return first..<end
    }

    /// Whether none of the user's targets waits any more.
    func isSettled(userOf index: Int) -> Bool {
        targets(of: opening.targets[index].user).allSatisfy { phases[$0] == .settled }
    }

    // MARK: Receipts

    /// Time at which the event was written to the seat, if the receipt proves that it was read; nil otherwise.
    func timeWritten(to seat: Attendance.KnownSeat, readBy receipt: Escalation.Receipt) -> Int64? {
        // The first of several replays over one connection counts: a client that reads now was reading then.
        let own = replays.isEmpty ? nil : replays[seat.user]
        if let replay = own?.first(where: { $0.connection == receipt.connection && receipt.cursor >= $0.cursor }) { return replay.at }
        let loop = receipt.connection.loop
        // A client that subscribed after the commit was not sent the event, whatever the client answers.
        guard seat.ticket <= opening.attendedUpTo[loop], opening.number >= seat.firstEvent, let cursor = cursors[loop] else { return nil }
        return receipt.cursor >= cursor ? committedAt : nil
    }

    /// Whether an earlier receipt of the connection said all that this one says of the event. An app that tells its state is asked nothing.
    func wasJudged(before receipt: Escalation.Receipt, _ seat: Attendance.KnownSeat) -> Bool {
        let (loop, judged) = (receipt.connection.loop, receipt.judgedUpTo)
        guard judged > 0, !isJudgedAnew, let cursor = cursors[loop], cursor <= judged else { return false }
        return seat.state != .unknown || !asks[loop].contains { $0.cursor > judged && $0.cursor <= receipt.cursor }
    }

    /// Whether a receipt of the target may change anything.
    func canAnswer(_ index: Int) -> Bool { phases[index] != .settled || !pushed.isEmpty && pushed.contains(index) }

    /// Whether the receipt answers a question so late that an app in the background would no longer answer.
    func isProof(_ receipt: Escalation.Receipt, of index: Int, writtenAt: Int64) -> Bool {
        let asked = max(writtenAgain[index] ?? committedAt, writtenAt) + DeviceState.afterglow.milliseconds
        return asks[receipt.connection.loop].contains { $0.at >= asked && receipt.cursor >= $0.cursor }
    }

    func settle(_ index: Int) {
        phases[index] = .settled
        unsettled -= 1
    }

    /// Postpones the push until a later sign of life can be had.
    func provision(_ index: Int, writtenAt: Int64) {
        let times = opening.targets[index].policy.provisionalTimes
        // If the event would expire meanwhile, the push goes sooner, and questions whose answer could not count are left out.
        let due = max(dues[index], min(writtenAt + times.due.milliseconds, latest(index)))
        let asks = asks(index, writtenAt: writtenAt, due: due)
        phases[index] = .provisional
        if writtenAt != committedAt { writtenAgain[index] = writtenAt }
        move(index, to: due)
        addProof(asks.first, index)
        if asks.last != asks.first { addProof(asks.last, index) }
    }

    /// Gives a provisional target more time, once, if it read the event over another connection too late for the last question.
    /// - Returns: whether something has changed.
    func provisionAgain(_ index: Int, writtenAt: Int64) -> Bool {
        let last = asks(index, writtenAt: writtenAgain[index] ?? committedAt, due: dues[index]).last
        let ask = writtenAt + DeviceState.afterglow.milliseconds
        guard ask > last, askedAgain.insert(index).inserted else { return false }
        let due = max(dues[index], min(ask + answerTime(index), latest(index)))
        if due != dues[index] { move(index, to: due) }
        addProof(ask, index)
        return true
    }

    /// Brings the push forward, and takes back an answer that counted for the time being.
    func hasten(_ index: Int, to due: Int64) {
        isJudgedAnew = true
        phases[index] = .waiting
        guard due < dues[index] else { return }
        opening.targets[index].wait = min(opening.targets[index].wait, due - committedAt)
        move(index, to: due)
    }

    /// Times of the first and the last question for a sign of life. The first is as early as an answer counts.
    private func asks(_ index: Int, writtenAt: Int64, due: Int64) -> (first: Int64, last: Int64) {
        let first = writtenAt + DeviceState.afterglow.milliseconds
        let last = writtenAt + opening.targets[index].policy.provisionalTimes.lastAsk.milliseconds
        return (first, max(first, min(last, due - answerTime(index))))
    }

    private func answerTime(_ index: Int) -> Int64 {
        let times = opening.targets[index].policy.provisionalTimes
        return (times.due - times.lastAsk).milliseconds
    }

    /// Last time at which the push is not too late.
    private func latest(_ index: Int) -> Int64 { committedAt + opening.targets[index].lifetime - Decision.lastCallMilliseconds }

    /// Time at which the first of the waiting targets can wait for no hearing any more; nil: none waits. O(n) in the targets.
    var lastCall: Int64? {
        opening.targets.indices.lazy.filter { self.phases[$0] != .settled }.map { self.opening.targets[$0].lifetime }.min().map {
            committedAt + max(0, $0 - Decision.lastCallMilliseconds) + Self.lastHearingMax
        }
    }

    private func addProof(_ ask: Int64, _ index: Int) {
        let rounded = committedAt + (ask - committedAt + Self.proofInterval - 1) / Self.proofInterval * Self.proofInterval
        if rounded < dues[index] { proofs.add(rounded, UInt64(index)) }
    }

    private func move(_ index: Int, to due: Int64) {
        dues[index] = due
        moved.add(due, UInt64(index))
    }

    // MARK: Time

    /// Time at which `takeProofs` or `takeDue` has work next; nil for none.
    var nextTime: Int64? {
        while orderHead < order.count, phases[Int(order[orderHead])] == .settled { orderHead += 1 }
        while let first = moved.first, !isDue(Int(first.number), at: first.at) { moved.removeFirst() }
        while let first = proofs.first, phases[Int(first.number)] != .provisional { proofs.removeFirst() }
        let ordered = orderHead < order.count ? firstDue(order[orderHead]) : nil
        return [ordered, moved.first?.at, proofs.first?.at].compactMap { $0 }.min()
    }

    /// The target's due time before any extension.
    private func firstDue(_ index: Int32) -> Int64 {
        let target = opening.targets[Int(index)]
        return committedAt + min(target.wait, max(0, target.lifetime - Decision.lastCallMilliseconds))
    }

    private func isDue(_ index: Int, at time: Int64) -> Bool { phases[index] != .settled && dues[index] == time }

    /// Takes the users to ask for a sign of life now, each once.
    func takeProofs(now: Int64) -> [String] {
        var users: [String] = []
        while let first = proofs.first, first.at <= now {
            proofs.removeFirst()
            let index = Int(first.number)
            if phases[index] == .provisional { users.append(opening.targets[index].user) }
        }
        guard users.count > 1 else { return users }
        var seen: Set<String> = []
        return users.filter { seen.insert($0).inserted }
    }

    /// Settles the targets whose time has come, and returns their indexes.
    func takeDue(now: Int64, _ patience: Escalation.Patience) -> [Int] {
        var due: [Int] = []
        while orderHead < order.count, firstDue(order[orderHead]) <= now {
            let index = Int(order[orderHead])
            orderHead += 1
            if isDue(index, at: firstDue(Int32(index))), !extend(index, now: now, patience) {
                settle(index)
                pushed.insert(index)
                due.append(index)
            }
        }
        while let first = moved.first, first.at <= now {
            moved.removeFirst()
            let index = Int(first.number)
            // A push that was moved onto its old time is in both lists.
            if isDue(index, at: first.at), !extend(index, now: now, patience) {
                settle(index)
                pushed.insert(index)
                due.append(index)
            }
        }
        return due
    }

    /// Postpones the push by the time in which the hub was late, and by the grace after a return or a replay.
    /// - Returns: whether the push was postponed.
    private func extend(_ index: Int, now: Int64, _ patience: Escalation.Patience) -> Bool {
        let target = opening.targets[index]
        guard phases[index] == .waiting else { return false }
        let wait = firstDue(Int32(index)) - committedAt
        let credit = patience.lateness.credit(for: wait, from: committedAt, until: now)
        if credit > 0 { late.insert(index) }
        var due = committedAt + wait + credit
        let grace = Escalation.replayGrace(target.policy)
        if returns[index] == nil { returns[index] = patience.cameAt(opening.app, opening.channel, target.user) }
        if replayed[index] == nil { replayed[index] = replays[target.user]?.last?.at }
        for since in [returns[index], replayed[index]].compactMap({ $0 }) {
            due = max(due, since + grace + patience.lateness.credit(for: grace, from: since, until: now))
        }
        due = min(due, latest(index))
        guard due > now else { return false }
        move(index, to: due)
        return true
    }
}
