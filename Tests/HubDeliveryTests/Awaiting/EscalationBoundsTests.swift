import Foundation
import HubCore
import HubDelivery
import HubTesting
import Testing

/// Order, bounds and cost.
@Suite("Escalation's bounds")
struct EscalationBoundsTests {
    private let phone = ConnectionID.of(1)

    @Test("what is due comes in the order of its time, and an event without targets is none")
    func order() {
        var stage = EscalationStage()
        stage.publish(to: [])
        #expect(stage.escalation.eventCount == 0)
        for wait in [3000, 1000, 2000] as [Int64] { stage.publish(to: ["ann"], wait: wait) }
        #expect(stage.escalation.nextDue == 1000)
        #expect(stage.advance(to: 5000).filter { $0.hasPrefix("push") } == ["push e3 ann", "push e4 ann", "push e2 ann"])
    }

    @Test("closed events leave nothing behind")
    func memory() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        for round in 0..<10_000 {
            let now = Int64(round)
            let event = stage.publish(to: ["ann"], at: now)
            stage.escalation.pinged(event, loop: 0, cursor: event)
            stage.pong(phone, event)
            _ = stage.advance(to: now)
            #expect(stage.escalation.eventCount == 0 && stage.escalation.targetCount == 0)
            #expect(stage.escalation.agendaCount <= 65)
            #expect(stage.escalation.channelCount == 0)
        }
    }

    @Test("events and targets are bounded")
    func room() {
        var stage = EscalationStage()
        #expect(
            stage.escalation.hasRoom(forTargets: Escalation.targetsMax) && !stage.escalation.hasRoom(forTargets: Escalation.targetsMax + 1))
        for _ in 0..<Escalation.eventsMax { stage.publish(to: ["ann"]) }
        #expect(!stage.escalation.hasRoom(forTargets: 1))
    }

    /// Each step in the number of recipients may cost O(1) or O(log n); a quadratic one would take minutes here.
    @Test("10,000 targets with due times of their own, receipts, proofs and pushes")
    func large() {
        let began = Self.threadSeconds
        defer { #expect(Self.threadSeconds - began < 60 * Double(SlowBuild.factor)) }
        var stage = EscalationStage()
        let count = 10_000
        for slot in 0..<count { stage.attach(.of(slot), "u\(slot)") }
        let targets = (0..<count).map { index in
            Escalation.Target(
                user: "u\(index)", device: nil, policy: .notify, wait: 2000 + Int64(index % 3000), recipient: index, reason: "live")
        }
        for number in 1...10 as ClosedRange<UInt64> {
            let opening = Escalation.Opening(
                number: number, event: "e\(number)", app: "1", channel: "c", attendedUpTo: [UInt64(count)], targets: targets)
            stage.escalation.open(opening, now: 0)
            stage.escalation.pinged(number, loop: 0, cursor: number)
        }
        for slot in 0..<count where slot % 2 == 0 { stage.pong(.of(slot), 10) }
        var pushes = 0
        for now in 0...5000 as ClosedRange<Int64> { pushes += stage.advance(to: now).filter { $0.hasPrefix("push") }.count }
        #expect(pushes == 10 * count / 2)
        let asked = stage.advance(to: 35_000)
        #expect(asked.count == 10)
        for number in 1...10 as ClosedRange<UInt64> { stage.escalation.proving(number, loop: 0, cursor: 20) }
        for slot in 0..<count where slot % 4 == 0 { stage.pong(.of(slot), 20) }
        pushes = stage.advance(to: 40_000).filter { $0.hasPrefix("push") }.count
        #expect(pushes == 10 * count / 4 && stage.escalation.eventCount == 0)
    }

    /// Seconds for which this thread had a core; other programs do not change them.
    private static var threadSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test("the agenda gives every time in order, whatever is added, removed and left out")
    func agenda() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("Escalation seed \(seed)")
        var random = SeededRandom(state: seed)
        var stage = EscalationStage()
        var expected: [(Int64, String)] = []
        for index in 1...2000 {
            let wait = Int64.random(in: 0..<500, using: &random)
            stage.publish(to: ["u"], wait: wait)
            if index % 3 == 0 {
                stage.escalation.confirmed(event: "e\(index)", user: "u")
            } else {
                expected.append((wait, "push e\(index) u"))
            }
        }
        var now: Int64 = 0
        while now < 500 {
            now += Int64.random(in: 1..<20, using: &random)
            let due = expected.filter { $0.0 <= now }.map(\.1)
            expected.removeAll { $0.0 <= now }
            #expect(Set(stage.advance(to: now).filter { $0.hasPrefix("push") }) == Set(due))
        }
        #expect(stage.escalation.nextDue == nil && stage.escalation.eventCount == 0)
    }
}
