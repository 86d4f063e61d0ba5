import HubCore
import HubDefinitions
import Testing

@testable import HubDelivery

@Suite("Lateness")
struct LatenessTests {
    @Test("short delays are none, of others the rest counts, and stretches that meet are one")
    func stretches() {
        var lateness = Lateness()
        lateness.note(from: 100, until: 150)
        #expect(lateness.milliseconds(from: 0, until: 1000) == 0)
        lateness.note(from: 200, until: 300)
        lateness.note(from: 400, until: 500)
        lateness.note(from: 250, until: 450)
        #expect(lateness.count == 1 && lateness.milliseconds(from: 0, until: 1000) == 250)
        lateness.note(from: 600, until: 610, least: 0)
        #expect(lateness.milliseconds(from: 450, until: 605) == 55)
    }

    @Test("only the newest stretches are remembered")
    func bounded() {
        var lateness = Lateness()
        for start: Int64 in 0..<1000 { lateness.note(from: start * 1000, until: start * 1000 + 100) }
        #expect(lateness.count == 256 && lateness.milliseconds(from: 999_000, until: 1_000_000) == 50)
    }

    @Test(
        "a wait is stretched by what the hub was late, up to itself and five seconds",
        arguments: [(2000, 700, 650), (2000, 3000, 2000), (30_000, 9000, 5000)] as [(Int64, Int64, Int64)])
    func credit(wait: Int64, late: Int64, credit: Int64) {
        var lateness = Lateness()
        lateness.note(from: 1000, until: 1000 + late)
        #expect(lateness.credit(for: wait, from: 500, until: 20_000) == credit)
    }
}

@Suite("Escalation by a busy hub")
struct BusyEscalationTests {
    private let phone = ConnectionID.of(1)

    @Test("time in which the hub was late does not count, and the push says so")
    func late() {
        var stage = EscalationStage()
        stage.publish(.critical, to: ["ann"], wait: 2000)
        stage.escalation.hubWasLate(from: 500, until: 1500)
        #expect(stage.advance(to: 2949) == [])
        guard case .push(_, let targets, _)? = stage.escalation.advance(now: 2950).first else {
            Issue.record("no push")
            return
        }
        #expect(targets.map(\.isHubLate) == [true])
    }

    @Test("a receipt in that time settles")
    func receipt() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        let event = stage.publish(.critical, to: ["ann"], wait: 2000)
        stage.escalation.pinged(event, loop: 0, cursor: 2)
        stage.escalation.hubWasLate(from: 500, until: 1500)
        #expect(stage.advance(to: 2500) == [])
        stage.pong(phone, 2, at: 2500)
        #expect(stage.advance(to: 2500) == ["confirmed e1 [0]", "closed e1"])
    }

    @Test("a hub that stays late pushes after twice the wait all the same")
    func bounded() {
        var stage = EscalationStage()
        stage.publish(.critical, to: ["ann"], wait: 2000)
        for second: Int64 in 0..<10 { stage.escalation.hubWasLate(from: second * 1000, until: second * 1000 + 1000) }
        #expect(stage.advance(to: 3999) == [])
        #expect(stage.advance(to: 4000) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    @Test("no wait is stretched beyond the event's life")
    func life() {
        var stage = EscalationStage()
        stage.publish(.critical, to: ["ann"], wait: 2000, lifetime: 6500)
        stage.escalation.hubWasLate(from: 0, until: 2000)
        #expect(stage.advance(to: 2499) == [])
        #expect(stage.advance(to: 2500) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    @Test(
        "whoever has just come back to a channel with replay is given the replay's grace, once",
        arguments: [(Policy.notify, 5000), (.critical, 2000)] as [(Policy, Int64)])
    func back(policy: Policy, grace: Int64) {
        var stage = EscalationStage()
        stage.publish(policy, to: ["ann"], wait: 10_000)
        var cameAt: Int64? = 9900
        func push(at now: Int64) -> Bool { !stage.escalation.advance(now: now) { _, _, _ in cameAt }.isEmpty }
        #expect(!push(at: 10_000))
        cameAt = 9899 + grace
        #expect(!push(at: 9899 + grace))
        #expect(push(at: 9900 + grace))
    }

    @Test("a receipt behind its push is told once, of an app that says whether it is seen", arguments: [AppState.foreground, .unknown])
    func behind(state: AppState) {
        var stage = EscalationStage()
        stage.attach(phone, "ann", state)
        let event = stage.publish(.critical, to: ["ann", "bob"], wait: 2000)
        stage.publish(.notify, to: ["bob"], wait: 60_000)
        stage.escalation.pinged(event, loop: 0, cursor: 2)
        stage.attach(.of(2), "bob")
        #expect(stage.advance(to: 1999) == [])
        stage.escalation.replayed("e1", user: "bob", to: .of(2), cursor: 5, now: 1999)
        #expect(stage.advance(to: 2000) == ["push e1 ann", "settled [0]"])
        stage.pong(phone, 2, at: 2001)
        stage.pong(phone, 3, at: 2002)
        #expect(stage.advance(to: 2002) == (state == .foreground ? ["answered e1 ann"] : []))
    }

    @Test("the book knows since when somebody is there, and when the hub signed for them")
    func cameAt() {
        var book = Attendance()
        #expect(book.cameAt(app: "1", channel: "c", user: "ann") == nil)
        book.bind(socketID: "1.1", app: "1", user: "ann", device: "phone", now: 700)
        #expect(book.cameAt(app: "1", channel: "c", user: "ann") == 700)
        book.attach(phone, app: "1", channel: "c", user: "ann", device: "phone", ticket: 1, now: 900)
        #expect(book.cameAt(app: "1", channel: "c", user: "ann") == 900 && book.cameAt(app: "1", channel: "d", user: "ann") == 700)
        // A change of definitions takes no new seat.
        book.attach(phone, app: "1", channel: "c", user: "ann", device: "phone", ticket: nil, now: 5000)
        #expect(book.cameAt(app: "1", channel: "c", user: "ann") == 900)
        book.unbind(socketID: "1.1")
        book.disconnected(phone, now: 6000)
        #expect(book.cameAt(app: "1", channel: "c", user: "ann") == nil)
    }
}

@Suite("People who come back")
struct ComebacksTests {
    private func push(_ policy: Policy = .critical, event: String = "e", user: String = "ann", device: String = "phone") -> PushRecord {
        let message = PushMessage(
            nid: "n", event: event, kind: .alert, policy: policy, title: "t", body: "b", expiresAt: 600_000, committedAt: 0)
        return PushRecord(
            nid: "n", event: event, app: "1", user: user, device: device, state: .due, reason: "live, not confirmed", dueAt: 0,
            message: message)
    }

    @Test("whose replay is read or written has its pushes wait for the grace of the first one")
    func waits() {
        var book = Comebacks()
        book.came(app: "1", user: "ann", now: 100)
        #expect(book.ruling(push(), now: 200) == .waits(until: 2100) && book.ruling(push(.notify), now: 200) == .waits(until: 5100))
        #expect(book.ruling(push(user: "bob"), now: 200) == .goes)
        book.replays(["e"], app: "1", user: "ann", now: 300)
        #expect(book.ruling(push(), now: 400) == .waits(until: 2300) && book.ruling(push(event: "other"), now: 400) == .goes)
        book.replays(["e"], app: "1", user: "ann", now: 2200)
        #expect(book.ruling(push(), now: 2300) == .goes)
    }

    @Test("what was read stays, on all devices or on the one that stands for itself")
    func stays() {
        var book = Comebacks()
        book.confirmed("e", user: "ann", device: "phone", now: 0)
        #expect(book.ruling(push(), now: 1) == .stays && book.ruling(push(device: "tablet"), now: 1) == .goes)
        book.confirmed("e", user: "ann", device: nil, now: 2)
        #expect(book.ruling(push(device: "tablet"), now: 3) == .stays)
        #expect(book.ruling(push(.both), now: 3) == .goes)
    }

    @Test("entries are forgotten after a minute")
    func forgets() {
        var book = Comebacks()
        for index in 0..<3000 { book.confirmed("e\(index)", user: "ann", device: nil, now: 0) }
        book.confirmed("e", user: "ann", device: nil, now: Comebacks.rememberedMilliseconds)
        #expect(book.count == 1)
    }
}
