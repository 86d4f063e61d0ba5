import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Testing

@testable import HubOutbox

/// Which pushes go out, and when: the value alone, without store, gateway or clock.
@Suite("PushFlow")
struct PushFlowTests {
    private let hour: Int64 = 3_600_000

    /// The last row that was stored of a push.
    private func row(_ stage: FlowStage, _ nid: String = "n") -> PushRecord? { stage.written.last { $0.nid == nid } }

    @Test("a push that may go out is asked about in the order of the list, and its lease comes before its handover")
    func order() {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        #expect(stage.takeSteps() == ["waits", "look up", "admit", "lease", "hand"])
        #expect(stage.sent.map(\.target.token) == ["token-of-u"] && stage.sent.map(\.push.attempts) == [1])
        #expect(stage.flow.inFlight == 1 && stage.flow.unanswered == 1 && stage.wait() == nil)
        stage.answer(.accepted(providerID: "p"))
        #expect(row(stage)?.state == .accepted && row(stage)?.providerID == "p")
        #expect(stage.flow.inFlight == 0 && stage.flow.unanswered == 0 && stage.wait() == nil)
        #expect(stage.flow.takeNotes() == [.ended(nid: "n", .accepted, outcome: "accepted")] && stage.flow.takeNotes().isEmpty)
    }

    @Test("an expired push ends without a question")
    func expired() {
        let stage = FlowStage()
        let push = stage.push(life: 1_000)
        stage.pass(milliseconds: 1_000)
        stage.enqueue(push)
        #expect(stage.takeSteps() == ["pause", "write"] && stage.sent.isEmpty)
        #expect(row(stage)?.state == .expired && row(stage)?.attempts == 0)
    }

    @Test("quiet hours: the event and the device's zone are read, and the push waits in its row until the morning")
    func quietHours() throws {
        let yaml = """
            channel: presence-quiz-{session}
            quiet_hours: { from: "22:00", to: "08:00", timezone: Europe/Berlin }
            events: { n: { to: all, policy: notify, notification: { title: a, body: b } } }
            """
        let stage = FlowStage(definitions: try DefinitionSet.load([("quiz.yaml", yaml)]))
        stage.enqueue(stage.push(policy: .notify, life: 20 * hour))
        #expect(stage.takeSteps() == ["channels", "zones", "pause", "write"])
        // Two in the night in Berlin when the clock begins.
        let morning = ManualClock.start + 6 * hour
        #expect(row(stage)?.outcome == "quiet hours" && row(stage)?.dueAt == morning && row(stage)?.attempts == 0)
        #expect(stage.wait() == 6 * hour)
        stage.pass(milliseconds: 6 * hour)
        stage.run()
        #expect(stage.sent.count == 1)
    }

    @Test("429 with Retry-After: tried again then, not before, as the second attempt")
    func tooMany() throws {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        stage.answer(.retry(after: .seconds(90), reason: "throttled: http 429"))
        let waiting = try #require(row(stage))
        #expect(waiting.state == .retry && waiting.dueAt == stage.now.wall + 90_000 && waiting.outcome == "throttled: http 429")
        #expect(waiting.attempt?.number == 1 && waiting.attempt?.answer == "throttled: http 429" && stage.flow.inFlight == 0)
        #expect(stage.wait() == 90_000)
        stage.pass(milliseconds: 89_999)
        stage.run()
        #expect(stage.sent.count == 1)
        stage.pass(milliseconds: 1)
        stage.run()
        #expect(stage.sent.map(\.push.attempts) == [1, 2])
        #expect(stage.sent.last?.push.firstAttemptAt == ManualClock.start)
    }

    /// As the store has a push that this process has leased.
    private func leased(_ push: PushRecord) -> PushRecord {
        var push = push
        (push.state, push.attempts) = (.leased, 1)
        push.dueAt += PushFlow.leaseMilliseconds
        return push
    }

    @Test("a read that is whole says nothing about pushes that came to a full queue meanwhile")
    func overflowed() {
        let stage = FlowStage()
        stage.flow.resume([], isWhole: false, at: stage.now)
        #expect(stage.flow.hasOverflowed == true)
        stage.flow.resume([], isWhole: true, at: stage.now)
        #expect(stage.flow.hasOverflowed == true, "the next reload reads them")
    }

    @Test("a push that is being sent is not taken up a second time, and one whose answer the store does not have is")
    func takenUp() {
        let stage = FlowStage()
        let push = stage.push()
        stage.enqueue(push)
        // Its recipient's partition went to another node and came back.
        stage.flow.resume([leased(push)], isWhole: true, at: stage.now)
        stage.run()
        // A node tells of it late.
        stage.enqueue(push)
        #expect(stage.sent.count == 1 && stage.flow.inFlight == 1 && stage.flow.queue.count == 0)
        stage.isStoreDown = true
        stage.answer(.accepted(providerID: "m", environment: nil))
        stage.isStoreDown = false
        stage.flow.resume([leased(push)], isWhole: true, at: stage.now)
        stage.run()
        #expect(stage.sent.count == 2 && stage.flow.inFlight == 1)
    }

    @Test("a push that a node tells of while its lane is asked is sent once, also when both were asked about")
    func toldMeanwhile() {
        let stage = FlowStage()
        let (push, other) = (stage.push(), stage.push("other"))
        stage.toldAtAdmission = [push, other]
        stage.enqueue(push)
        #expect(stage.sent.map(\.push.nid) == ["n", "other"] && stage.flow.inFlight == 2 && stage.flow.queue.count == 0)
        stage.answer(.accepted(providerID: "p"))
        #expect(stage.written.filter { $0.nid == "n" }.count == 1 && stage.flow.inFlight == 0 && stage.flow.unanswered == 0)
    }

    @Test("a push that waits for its next attempt keeps its time, whatever an earlier look at the store has found")
    func takenUpLate() {
        let stage = FlowStage()
        let push = stage.push()
        stage.enqueue(push)
        stage.answer(.retry(after: .seconds(90), reason: "throttled: http 429"))
        stage.flow.resume([leased(push)], isWhole: true, at: stage.now)
        stage.run()
        #expect(stage.sent.count == 1 && stage.flow.queue.count == 1 && stage.wait() == 90_000)
    }

    @Test("410: the token is forgotten, the push has failed, and the next one ends without an attempt")
    func dead() {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        let since = stage.now.wall + 1
        stage.answer(.dead(reason: "Unregistered", since: since))
        #expect(stage.tokenNotes == [.dead(token: "token-of-u", app: "1", .fcm, since: since)])
        #expect(row(stage)?.state == .failed && row(stage)?.outcome == "Unregistered")
        _ = stage.takeSteps()
        stage.enqueue(stage.push("later"))
        #expect(stage.sent.count == 1 && row(stage, "later")?.state == .undeliverable && row(stage, "later")?.outcome == "no token")
        #expect(stage.flow.inFlight == 0)
    }

    @Test("a token that an answer calls dead without certainty is kept")
    func uncertain() {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        stage.answer(.dead(reason: "BadDeviceToken", since: nil, isCertain: false))
        #expect(stage.tokenNotes.isEmpty && row(stage)?.state == .failed)
    }

    @Test("a push to a dead token follows its recipient to a device that has come since")
    func deadFollowed() {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        stage.pass(milliseconds: 5)
        stage.device("u", id: "new", token: "new")
        stage.answer(.dead(reason: "UNREGISTERED", since: nil))
        #expect(row(stage)?.state == .failed && row(stage)?.outcome == "UNREGISTERED")
        #expect(stage.flow.takeNotes() == [.ended(nid: "n", .failed, outcome: "UNREGISTERED")])
        #expect(stage.sent.map(\.target.token) == ["token-of-u", "new"] && stage.sent.map(\.push.nid) == ["n", "n"])
        #expect(stage.flow.inFlight == 1)
    }

    @Test("a stopped lane parks its pushes without a lease, holds up no other, and is asked again when it said, critical pushes first")
    func stopped() throws {
        let stage = FlowStage(users: ["u", "v"])
        stage.device("i", provider: .apns)
        stage.stopped[.fcm] = .seconds(30)
        stage.enqueue(stage.push("bulk", policy: .notify), stage.push("critical", user: "v"), stage.push("other", user: "i"))
        #expect(stage.sent.map(\.push.nid) == ["other"] && stage.flow.inFlight == 1)
        #expect(stage.flow.queue.parkedCount == 2 && stage.written.isEmpty)
        #expect(stage.flow.counters(at: stage.now).parked.values.reduce(0, +) == 2)
        let asked = stage.wait()
        let wait = try #require(asked)
        #expect((30_000...30_001).contains(wait))
        _ = stage.takeSteps()
        stage.pass(milliseconds: wait - 1)
        stage.run()
        #expect(stage.takeSteps() == [] && stage.sent.count == 1)
        stage.stopped = [:]
        stage.pass(milliseconds: 1)
        stage.run()
        #expect(stage.takeSteps() == ["rooms", "waits", "look up", "admit", "lease", "hand"])
        #expect(stage.sent.map(\.push.nid) == ["other", "critical", "bulk"] && stage.sent.map(\.push.attempts) == [1, 1, 1])
    }

    @Test("a new push joins the queue of its lane without a look at its device; an urgent one joins urgent ones only")
    func crowded() {
        let stage = FlowStage(users: ["u", "v", "w"])
        let lane = PushRoute(app: "1", provider: .fcm, isUnproven: true)
        stage.stopped[.fcm] = .seconds(30)
        stage.enqueue(stage.push("first", policy: .notify))
        _ = stage.takeSteps()
        var second = stage.push("second", user: "v", policy: .notify)
        second.route = lane
        stage.enqueue(second)
        #expect(stage.takeSteps() == ["waits", "pause"] && stage.flow.queue.parkedCount == 2)
        var urgent = stage.push("urgent", user: "w")
        urgent.route = lane
        stage.enqueue(urgent)
        #expect(stage.takeSteps() == ["waits", "look up", "admit", "pause"] && stage.flow.queue.parkedCount == 3)
        stage.stopped = [:]
        stage.pass(milliseconds: 30_001)
        stage.run()
        #expect(stage.sent.map(\.push.nid) == ["urgent", "first", "second"])
    }

    @Test("a push whose life ends while its lane is stopped expires")
    func expiresParked() {
        let stage = FlowStage()
        stage.stopped[.fcm] = .seconds(600)
        stage.enqueue(stage.push(life: 30_000))
        #expect(stage.wait() == 30_000)
        stage.pass(milliseconds: 30_000)
        stage.run()
        #expect(row(stage)?.state == .expired && stage.flow.queue.count == 0)
    }

    @Test("a push goes to the token that its device has when it is sent, and its recipient's devices are read again")
    func rotated() {
        let stage = FlowStage()
        stage.enqueue(stage.push(delay: 10_000))
        #expect(stage.takeSteps() == [])
        stage.pass(milliseconds: 10_000)
        stage.device("u", token: "new")
        stage.run()
        #expect(stage.takeSteps() == ["waits", "look up", "devices", "redirect", "admit", "lease", "hand"])
        #expect(stage.redirected.map(\.token) == [TokenMark("new", of: .fcm)])
        #expect(stage.sent.map(\.target.token) == ["new"])
    }

    @Test("a push whose followers cannot be stored waits a second, without a lease")
    func notFollowed() {
        let stage = FlowStage()
        stage.enqueue(stage.push(delay: 10_000))
        stage.pass(milliseconds: 10_000)
        stage.device("u", token: "new")
        stage.isStoreDown = true
        stage.run()
        #expect(stage.takeSteps() == ["waits", "look up", "devices", "redirect", "pause"] && stage.wait() == 1_000)
        stage.isStoreDown = false
        stage.pass(milliseconds: 1_000)
        stage.run()
        #expect(stage.sent.count == 1)
    }

    @Test("a push that has ended in the store is not leased, and does not go out")
    func notLeased() {
        let stage = FlowStage(users: ["u", "v"])
        stage.ended = ["gone"]
        stage.enqueue(stage.push("gone"), stage.push("here", user: "v"))
        #expect(stage.sent.map(\.push.nid) == ["here"] && stage.flow.inFlight == 1 && stage.flow.queue.count == 0)
    }

    @Test("if the store fails to lease, nothing goes out, and the pushes are tried again in a second")
    func storeDown() {
        let stage = FlowStage()
        stage.isStoreDown = true
        stage.enqueue(stage.push())
        #expect(stage.sent.isEmpty && stage.flow.inFlight == 0 && stage.wait() == 1_000)
        stage.isStoreDown = false
        stage.pass(milliseconds: 999)
        stage.run()
        #expect(stage.sent.isEmpty)
        stage.pass(milliseconds: 1)
        stage.run()
        #expect(stage.sent.map(\.push.attempts) == [1])
    }

    @Test("a wall clock that is set moves neither waits nor lives", arguments: [-2, 3])
    func wallClock(hours: Int64) throws {
        let stage = FlowStage()
        stage.enqueue(stage.push(life: 300_000))
        stage.answer(.retry(after: .seconds(90), reason: "throttled: http 429"))
        _ = stage.flow.takeNotes()
        stage.now.wall += hours * hour
        // Not before the next round: what a test or a route asks meanwhile is answered by the old time.
        #expect(stage.wait() == 90_000)
        stage.run()
        let notes = stage.flow.takeNotes()
        #expect(notes == [.clockSet(ClockSteps.Step(from: ManualClock.start, to: stage.now.wall), waiting: 1)])
        #expect(stage.sent.count == 1 && stage.wait() == 90_000)
        stage.pass(milliseconds: 90_000)
        stage.run()
        let again = try #require(stage.sent.last)
        #expect(again.push.attempts == 2 && again.push.timing?.expiresAt == ManualClock.start + 300_000 + hours * hour)
        // A push that the gateway has when the clock is set again is moved with its answer.
        stage.now.wall -= hours * hour
        stage.run()
        stage.answer(.retry(after: .seconds(100), reason: "unavailable: http 503"))
        #expect(row(stage)?.state == .retry && row(stage)?.timing?.expiresAt == ManualClock.start + 300_000)
        #expect(stage.wait() == 100_000)
    }

    @Test("a receipt before the push leaves its lane keeps it back: no attempt counts, and the store refuses the next lease")
    func receiptBeforeDeparture() throws {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        let attempt = try #require(stage.sent.first)
        stage.comebacks.confirmed("event of n", user: "u", device: nil, now: stage.now.monotonic)
        let wait = stage.comebacks.wait(of: attempt.push, at: stage.now)
        #expect(wait == 1_000)
        stage.answer(.retry(after: nil, reason: "lane: the request was not to go any more"), keptBack: wait)
        let kept = try #require(row(stage))
        #expect(kept.state == .retry && kept.outcome == "came back" && kept.attempts == 0 && kept.firstAttemptAt == nil)
        #expect(kept.dueAt == stage.now.wall + 1_000)
        stage.ended = ["n"]
        stage.comebacks = Comebacks()
        stage.pass(milliseconds: 1_000)
        stage.run()
        #expect(stage.sent.count == 1 && stage.flow.inFlight == 0 && stage.wait() == nil)
    }

    @Test("a push whose recipient has just come back waits before its lease, unless it would be too late afterwards")
    func cameBack() {
        let stage = FlowStage(users: ["u", "v"])
        for user in ["u", "v"] { stage.comebacks.replays(["event of \(user)"], app: "1", user: user, now: stage.now.monotonic) }
        stage.enqueue(stage.push("u"), stage.push("v", user: "v", life: 6_000))
        #expect(stage.sent.map(\.push.nid) == ["v"])
        stage.pass(milliseconds: 2_000)
        stage.run()
        #expect(stage.sent.map(\.push.nid) == ["v", "u"])
    }

    @Test("a receipt during an attempt that would be repeated ends the push")
    func receiptDuringAttempt() {
        let stage = FlowStage()
        stage.enqueue(stage.push())
        stage.ended = ["n"]
        stage.answer(.retry(after: nil, reason: "unavailable: http 503"))
        #expect(stage.flow.takeNotes() == [.ended(nid: "n", .cancelled, outcome: "receipt")])
        #expect(stage.flow.queue.count == 0 && stage.flow.inFlight == 0 && stage.wait() == nil)
    }

    @Test("a dropped push does not go out, waiting for its time or for its lane")
    func dropped() {
        let stage = FlowStage(users: ["u", "v"])
        stage.stopped[.fcm] = .seconds(60)
        let (later, parked) = (stage.push("later", delay: 1_000), stage.push("parked", user: "v"))
        stage.enqueue(later, parked)
        stage.flow.drop([later, parked])
        stage.stopped = [:]
        stage.pass(milliseconds: 61_000)
        stage.run()
        #expect(stage.sent.isEmpty && stage.flow.queue.count == 0)
    }

    @Test("a closed flow sends nothing, and still settles what the gateways answer")
    func closed() {
        let stage = FlowStage(users: ["u", "v"])
        stage.enqueue(stage.push(), stage.push("later", user: "v", delay: 1_000))
        stage.flow.close()
        stage.answer(.accepted(providerID: "p"))
        stage.pass(milliseconds: 1_000)
        stage.run()
        #expect(stage.sent.map(\.push.nid) == ["n"] && row(stage)?.state == .accepted && stage.wait() == nil)
        _ = stage.takeSteps()
        stage.enqueue(stage.push("late"))
        #expect(stage.takeSteps() == [])
    }

    @Test("pushes for which memory has no room are read from the store when the others have ended, once")
    func overflow() {
        let stage = FlowStage()
        stage.enqueue(stage.push("first"))
        stage.flow.enqueue(Array(repeating: stage.push("many"), count: PushFlow.queuedMax + 1), at: stage.now)
        #expect(stage.flow.queue.count == 0 && stage.flow.counters(at: stage.now).hasOverflowed)
        stage.run()
        #expect(!stage.steps.contains("reload"))
        stage.stored = [stage.push("many")]
        stage.answer(.accepted(providerID: "p"))
        #expect(stage.sent.map(\.push.nid) == ["first", "many"] && stage.steps.count { $0 == "reload" } == 1)
        #expect(!stage.flow.counters(at: stage.now).hasOverflowed)
    }

    @Test("no more than may be in flight are leased, whether they wait for their time or for a lane, and answers make room")
    func inFlight() {
        let users = (0..<PushFlow.inFlightMax + 10).map { "u\($0)" }
        let stage = FlowStage(users: users)
        stage.device("parked", provider: .apns)
        stage.stopped[.apns] = .seconds(1)
        stage.enqueue(stage.push("parked", user: "parked"))
        stage.flow.enqueue(users.map { stage.push($0, user: $0) }, at: stage.now)
        stage.run()
        #expect(stage.sent.count == PushFlow.inFlightMax && stage.flow.inFlight == PushFlow.inFlightMax)
        #expect(stage.wait() == nil)
        _ = stage.takeSteps()
        stage.stopped = [:]
        stage.pass(milliseconds: 2_000)
        stage.run()
        #expect(stage.takeSteps() == [])
        stage.answer(.accepted(providerID: "p"))
        #expect(stage.sent.count == users.count + 1 && stage.flow.queue.count == 0)
    }
}
