internal import CLoadSockets

/// The players of one worker: each answers every question after a while, and some leave and come back.
final class Players: LinkWatcher {
    private struct Player {
        /// -1: away.
        var slot = -1
        var answers: UInt32 = 0
        /// Time of the last answer.
        var answeredAt: UInt64 = 0
        /// Was away, so some events may be missing.
        var hasBeenAway = false
    }

    private let worker: Worker
    private let dialect: PusherDialect
    private let channels: [String]
    /// Supplies only the form of the data.
    private let form: PublishPlan
    /// Maximum of a player's time to answer, in nanoseconds.
    private let think: UInt64
    private var players: [Int: Player] = [:]
    private var numbers: [Int] = []
    private var nextLeaving = 0
    private var isLeaving = false
    private var awayCount = 0
    /// Due answers by the millisecond.
    private var due: [UInt64: [Int]] = [:]
    private var dueCount = 0
    private var checked: UInt64 = 0
    private(set) var left: UInt64 = 0
    private(set) var refused: UInt64 = 0

    static let awaySeconds = 1.0
    private static let millisecond: UInt64 = 1_000_000
    /// Minimum time between a player's last answer and leaving: output just before the cut may be lost, and would look like the server's
    /// loss.
    private static let calm: UInt64 = 1_000_000_000

    init(worker: Worker, dialect: PusherDialect, channels: [String], bytes: Int, think: UInt64) {
        self.worker = worker
        self.dialect = dialect
        self.channels = channels
        self.think = think
        form = PublishPlan(
            channels: channels, pace: .outstanding(1), connections: 0, bytes: bytes, kind: MixedScenario.Kind.answer, answeredKind: 0)
        checked = tandem_load_now() / Self.millisecond
        worker.add(Pace(due: tandem_load_now()) { [weak self] now in self?.answerDue(now: now) })
    }

    var isSettled: Bool { dueCount == 0 && awayCount == 0 }

    /// Number of answers that each player sent.
    var sent: [Senders.Sent] {
        players.map { .init(channel: $0.key % channels.count, stream: $0.key / channels.count, count: $0.value.answers) }
    }

    /// Own answers, which players do not receive, of those whose sequences began at 0.
    var ownExpected: UInt64 {
        players.values.reduce(UInt64(0)) { $0 + ($1.hasBeenAway || $1.slot < 0 ? 0 : UInt64($1.answers)) }
    }

    func plan(number: Int, isReturning: Bool) -> ConnectionPlan {
        let channel = number % channels.count
        let plan = ConnectionPlan(dialect, channel: channels[channel], index: channel)
        plan.steps = dialect.opening(channel: channels[channel], member: "player-\(number)")
        plan.tag = number
        plan.number = number
        plan.hearsAll = !isReturning
        plan.wantsMessages = true
        plan.watcher = self
        if isReturning { plan.openedKind = MixedScenario.Kind.returned } else { numbers.append(number) }
        return plan
    }

    func opened(_ slot: Int, now: UInt64) {
        guard let number = worker.plans[slot]?.tag else { return }
        if players[number]?.hasBeenAway == true { awayCount -= 1 }
        players[number, default: Player()].slot = slot
    }

    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {
        players[plan.tag]?.slot = -1
    }

    // MARK: Answers

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard let mark else {
            if let base = message.baseAddress, unsafe tandem_load_find(base, message.count, "pusher:error", 12) >= 0 { refused += 1 }
            return
        }
        guard mark.kind == MixedScenario.Kind.question, let number = worker.plans[slot]?.tag else { return }
        // Spread evenly, and the same in every run.
        let share = (UInt64(number) &* 2_654_435_761 &+ UInt64(mark.sequence) &* 40_503) % 1000
        let at = now + think / 10 + (think - think / 10) / 1000 * share
        due[at / Self.millisecond, default: []].append(number)
        dueCount += 1
    }

    private func answerDue(now: UInt64) -> UInt64? {
        let until = now / Self.millisecond
        while checked < until {
            checked += 1
            guard let numbers = due.removeValue(forKey: checked) else { continue }
            dueCount -= numbers.count
            for number in numbers { answer(number, due: checked * Self.millisecond, now: now) }
        }
        return (until + 1) * Self.millisecond
    }

    private func answer(_ number: Int, due: UInt64, now: UInt64) {
        guard var player = players[number], player.slot >= 0, worker.links[player.slot].phase == .open else { return }
        let mark = EventMark(kind: MixedScenario.Kind.answer, stream: number / channels.count, due: due, sequence: player.answers)
        player.answers += 1
        player.answeredAt = now
        players[number] = player
        let channel = PusherDialect.quoted(channels[number % channels.count])
        worker.sendMessage(player.slot, "{\"event\":\"client-answer\",\"channel\":\(channel),\"data\":\(form.data(mark))}")
    }

    // MARK: Leaving

    func beginLeaving(rate: Double) {
        isLeaving = true
        worker.add(
            Pace(OpenLoop(rate: rate, start: tandem_load_now())) { [weak self] _ in
                guard let self, self.isLeaving else { return false }
                self.leaveNext(now: tandem_load_now())
                return true
            })
    }

    func stopLeaving() { isLeaving = false }

    private func leaveNext(now: UInt64) {
        for _ in numbers.indices {
            let number = numbers[nextLeaving % numbers.count]
            nextLeaving += 1
            guard var player = players[number], player.slot >= 0, worker.links[player.slot].phase == .open,
                now > player.answeredAt + Self.calm
            else { continue }
            worker.hangUp(player.slot, saysGoodbye: true)
            player.slot = -1
            player.hasBeenAway = true
            players[number] = player
            left += 1
            awayCount += 1
            let back = now + UInt64(Self.awaySeconds * 1e9)
            worker.add(
                Pace(due: back) { [weak self] _ in
                    guard let self else { return nil }
                    let plan = self.plan(number: number, isReturning: true)
                    plan.due = back
                    self.worker.open(plan)
                    return nil
                })
            return
        }
    }
}
