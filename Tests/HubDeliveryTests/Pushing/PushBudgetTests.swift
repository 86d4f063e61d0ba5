import HubDefinitions
import HubDelivery
import HubTesting
import Testing

private let minute: Int64 = 60_000
/// 2026-01-09T01:00Z
private let start = ManualClock.start

@Suite("PushBudget")
struct PushBudgetTests {
    private func push(
        _ id: String, _ policy: Policy = .notify, user: String = "ann", device: String? = nil, group: String? = "g",
        life: Int64 = 600 * 60_000,
        at: Int64 = 0, timezone: String? = nil
    ) -> PushBudget.Push {
        .init(
            app: "1", user: user, device: device, id: id, policy: policy, group: group, expiresAt: start + life, committedAt: at,
            timezone: timezone)
    }

    // MARK: Alerts

    @Test("a burst passes, then one each interval, and the newest of a group takes the place of those that wait")
    func cap() {
        var budget = PushBudget()
        for id in 0..<5 { #expect(budget.rule(push("\(id)"), now: start) == .init(verdict: .send)) }
        #expect(budget.rule(push("5"), now: start) == .init(verdict: .wait(until: start + 10_000)))
        #expect(budget.rule(push("other", group: "h"), now: start) == .init(verdict: .wait(until: start + 10_000)))
        #expect(budget.rule(push("6"), now: start + 1000) == .init(verdict: .wait(until: start + 10_000), displaced: ["5"]))
        // If both ask again, one of them gets the turn, the other the next one.
        #expect(budget.rule(push("6"), now: start + 10_000) == .init(verdict: .send))
        #expect(budget.rule(push("other", group: "h"), now: start + 10_000) == .init(verdict: .wait(until: start + 20_000)))
        #expect(budget.rule(push("other", group: "h"), now: start + 20_000) == .init(verdict: .send))
        #expect(budget.rule(push("x", user: "bob"), now: start) == .init(verdict: .send))
    }

    @Test("a newer one that is sent at once takes the place of one that waits")
    func sentAtOnce() {
        var budget = PushBudget()
        for id in 0..<6 { _ = budget.rule(push("\(id)"), now: start) }
        #expect(budget.rule(push("6"), now: start + 10_000) == .init(verdict: .send, displaced: ["5"]))
    }

    @Test("an older one that is asked about later has no purpose beside a newer one that waits", arguments: [Policy.notify, .sync])
    func olderLater(policy: Policy) {
        var budget = PushBudget()
        for id in 0..<5 { _ = budget.rule(push("\(id)", policy, device: "d", group: policy == .sync ? "g" : "\(id)"), now: start) }
        guard case .wait = budget.rule(push("newer", policy, device: "d", at: 2), now: start).verdict else {
            Issue.record("sent")
            return
        }
        #expect(budget.rule(push("older", policy, device: "d", at: 1), now: start) == .init(verdict: .drop(.displaced)))
        // An exempt push goes out all the same, and replaces no newer one.
        #expect(budget.rule(push("exempt", .critical, at: 1), now: start) == .init(verdict: .send))
        #expect(budget.rule(push("newer", policy, device: "d", at: 2), now: start + 20 * minute) == .init(verdict: .send))
    }

    @Test("one that is exempt takes the place of an older one that waits")
    func exemptDisplaces() {
        var budget = PushBudget()
        for id in 0..<6 { _ = budget.rule(push("\(id)"), now: start) }
        #expect(budget.rule(push("c", .critical, at: 1), now: start) == .init(verdict: .send, displaced: ["5"]))
    }

    @Test("what an earlier process told to wait is displaced by a newer one", arguments: [Policy.notify, .pushOnly, .sync])
    func restored(policy: Policy) {
        var budget = PushBudget()
        budget.restore(push("second", policy, device: "d", at: 2), now: start)
        budget.restore(push("first", policy, device: "d", at: 1), now: start)
        #expect(budget.rule(push("first", policy, device: "d", at: 1), now: start).verdict == .drop(.displaced))
        #expect(budget.rule(push("third", policy, device: "d", at: 3), now: start) == .init(verdict: .send, displaced: ["second"]))
    }

    @Test("pushes without a group wait, each for itself")
    func noGroup() {
        var budget = PushBudget()
        for id in 0..<5 { _ = budget.rule(push("\(id)", group: nil), now: start) }
        for id in 5..<5 + PushBudget.heldMax {
            #expect(budget.rule(push("\(id)", group: nil), now: start) == .init(verdict: .wait(until: start + 10_000)))
        }
        // If one more waits than may, the oldest gives way.
        #expect(budget.rule(push("new", group: nil), now: start).displaced == ["5"])
    }

    @Test("critical and both pass and count", arguments: [Policy.critical, .both])
    func exempt(policy: Policy) {
        var budget = PushBudget()
        for id in 0..<50 { #expect(budget.rule(push("\(id)", policy), now: start) == .init(verdict: .send)) }
        // However many came before, the next alert is at most one burst away.
        #expect(budget.rule(push("n"), now: start) == .init(verdict: .wait(until: start + 10_000)))
        #expect(budget.rule(push("p", .pushOnly, group: "h"), now: start) == .init(verdict: .wait(until: start + 10_000)))
        // Without a push in between the bucket has filled again.
        for id in 0..<50 { _ = budget.rule(push("\(id)", policy, user: "bob"), now: start) }
        #expect(budget.rule(push("n", user: "bob"), now: start + 40_000) == .init(verdict: .send))
    }

    @Test("a clock that is set back makes nobody wait longer than a burst")
    func clockSetBack() {
        var budget = PushBudget()
        for id in 0..<5 { _ = budget.rule(push("\(id)"), now: start) }
        _ = budget.rule(push("s", .sync, device: "d", group: "s"), now: start)
        let now = start - 300 * minute
        #expect(budget.rule(push("5"), now: now) == .init(verdict: .wait(until: now + 10_000)))
        #expect(budget.rule(push("t", .sync, device: "d", group: "s"), now: now).verdict == .wait(until: now + 20 * minute))
    }

    @Test("what would expire in the queue is dropped")
    func expires() {
        var budget = PushBudget()
        for id in 0..<5 { _ = budget.rule(push("\(id)"), now: start) }
        #expect(budget.rule(push("a", life: 12_999), now: start).verdict == .drop(.alertCap))
        #expect(budget.rule(push("b", life: 13_000), now: start).verdict == .wait(until: start + 10_000))
    }

    @Test("a day's alerts are counted for 24 hours")
    func day() {
        var budget = PushBudget()
        let limits = AlertLimits(burst: 10, every: .seconds(1), perDay: 3)
        _ = budget.rule(push("c", .critical), alerts: limits, now: start)
        for id in 0..<2 { #expect(budget.rule(push("\(id)"), alerts: limits, now: start).verdict == .send) }
        #expect(budget.rule(push("x"), alerts: limits, now: start + 23 * 60 * minute).verdict == .drop(.dailyCap))
        #expect(budget.rule(push("c2", .critical), alerts: limits, now: start + 23 * 60 * minute).verdict == .send)
        #expect(budget.rule(push("y", life: 50 * 60 * minute), alerts: limits, now: start + 24 * 60 * minute).verdict == .send)
    }

    // MARK: Silent pushes

    @Test("a hundred silent pushes in ten minutes become one in 20 minutes, the newest")
    func silent() {
        var budget = PushBudget()
        var held: String?
        var sent: [String] = []
        for id in 0..<100 {
            let ruling = budget.rule(push("\(id)", .sync, device: "phone"), now: start + Int64(id) * 6000)
            #expect(ruling.displaced == (held.map { [$0] } ?? []))
            switch ruling.verdict {
            case .send: sent.append("\(id)")
            case .wait(let until):
                #expect(until == start + 20 * minute)
                held = "\(id)"
            case .drop: Issue.record("dropped \(id)")
            }
        }
        #expect(sent == ["0"] && held == "99")
        #expect(budget.rule(push("99", .sync, device: "phone"), now: start + 20 * minute) == .init(verdict: .send))
        #expect(budget.rule(push("x", .sync, device: "tablet"), now: start + 21 * minute).verdict == .send)
        #expect(budget.rule(push("y", .sync, device: "phone", life: 30 * minute), now: start + 21 * minute).verdict == .drop(.silentBudget))
    }

    @Test(
        "what takes a notification back waits for its device's turn, the newest of them, and gives way to what tells something",
        arguments: [false, true])
    func clears(isRestored: Bool) {
        var budget = PushBudget()
        func clear(_ id: String, at: Int64) -> PushBudget.Push {
            var push = push(id, .sync, device: "phone", group: nil, at: at)
            push.isClear = true
            return push
        }
        let end = start + 20 * minute
        #expect(budget.rule(clear("a", at: 1), now: start).verdict == .send)
        #expect(budget.rule(clear("b", at: 2), now: start) == .init(verdict: .wait(until: end)))
        #expect(budget.rule(clear("c", at: 3), now: start) == .init(verdict: .wait(until: end), displaced: ["b"]))
        // The push is older than the clearing, and still goes first.
        #expect(budget.rule(push("s", .sync, device: "phone", at: 0), now: start) == .init(verdict: .wait(until: end), displaced: ["c"]))
        if isRestored {
            budget = PushBudget()
            budget.restore(push("s", .sync, device: "phone", at: 0), now: start)
            budget.restore(clear("d", at: 4), now: start)
        }
        #expect(budget.rule(clear("d", at: 4), now: end) == .init(verdict: .drop(.displaced)))
        #expect(budget.rule(push("s", .sync, device: "phone", at: 0), now: end) == .init(verdict: .send))
        #expect(budget.rule(clear("e", at: 5), now: end).verdict == .wait(until: end + 20 * minute))
    }

    @Test("a silent push is dropped while an alert of its group is to come")
    func alertPending() {
        var budget = PushBudget()
        #expect(budget.rule(push("s", .sync, device: "d"), isAlertPending: true, now: start).verdict == .drop(.alertPending))
        for id in 0..<6 { _ = budget.rule(push("\(id)"), now: start) }
        #expect(budget.rule(push("s", .sync, device: "d"), now: start).verdict == .drop(.alertPending))
        #expect(budget.rule(push("s", .sync, device: "d", group: "h"), now: start).verdict == .send)
        _ = budget.rule(push("5"), now: start + 10_000)
        #expect(budget.rule(push("t", .sync, device: "e"), now: start + 10_000).verdict == .send)
    }

    @Test("both tables are bounded, and who is forgotten starts anew")
    func bounds() {
        var budget = PushBudget(peopleMax: 100, devicesMax: 50)
        for user in 0..<1000 {
            _ = budget.rule(push("a", user: "u\(user)"), now: start)
            _ = budget.rule(push("s", .sync, user: "u\(user)", device: "d"), now: start)
        }
        #expect(budget.personCount == 100 && budget.deviceCount == 50)
        #expect(budget.rule(push("s", .sync, user: "u0", device: "d"), now: start).verdict == .send)
        for round in 0..<10_000 { _ = budget.rule(push("\(round)"), now: start + Int64(round)) }
        #expect(budget.personCount <= 100)
        _ = budget.rule(push("z"), now: start + 25 * 60 * minute)
        #expect(budget.personCount == 1)
    }

    // MARK: Quiet hours

    /// 22:00 to 08:00 in Berlin, one hour ahead of UTC in winter.
    private let berlin = QuietHours(from: 22 * 60, to: 8 * 60, timezone: "Europe/Berlin")

    @Test("in quiet hours alerts wait for their end, or are dropped", arguments: Policy.allCases)
    func quiet(policy: Policy) {
        var budget = PushBudget()
        let (end, waits) = (start + 6 * 60 * minute, policy == .notify || policy == .pushOnly)
        let ruling = budget.rule(push("a", policy, device: "d"), quietHours: berlin, now: start)
        #expect(ruling.verdict == (waits ? .wait(until: end) : .send))
        let short = budget.rule(push("b", policy, device: "e", life: 60 * minute), quietHours: berlin, now: start)
        #expect(short.verdict == (waits ? .drop(.quietHours) : .send))
        // Two at night in Berlin is ten in the morning in Tokyo.
        #expect(budget.rule(push("d", policy, device: "g", timezone: "Asia/Tokyo"), quietHours: berlin, now: start).verdict == .send)
        #expect(budget.rule(push("c", policy, device: "f"), quietHours: berlin, now: end).verdict == .send)
    }

    @Test("what is restored waits for the end of one night: only what is newer there takes its place")
    func restoredNights() {
        var budget = PushBudget()
        let (berlinEnd, tokyoEnd) = (start + 6 * 60 * minute, start + 22 * 60 * minute)
        budget.restore(push("b", life: 1440 * minute, at: 1), quietUntil: berlinEnd, now: start)
        budget.restore(push("t", life: 1440 * minute, at: 2), quietUntil: tokyoEnd, now: start)
        // In Lima it is day.
        #expect(budget.rule(push("day", at: 3, timezone: "America/Lima"), quietHours: nil, now: start) == .init(verdict: .send))
        #expect(
            budget.rule(push("b2", at: 4, timezone: "Europe/Berlin"), quietHours: berlin, now: start)
                == .init(verdict: .wait(until: berlinEnd), displacedInZone: ["b"]))
        #expect(budget.rule(push("b", at: 1, timezone: "Europe/Berlin"), quietHours: berlin, now: berlinEnd).verdict == .drop(.displaced))
        #expect(
            budget.rule(push("t", life: 1440 * minute, at: 2, timezone: "Asia/Tokyo"), quietHours: berlin, now: tokyoEnd)
                == .init(verdict: .send))
    }

    @Test("the newest of a group in the night takes the place of the older, and no silent one waits for the morning")
    func quietGroup() {
        var budget = PushBudget()
        let end = start + 6 * 60 * minute
        #expect(budget.rule(push("a", at: 1), quietHours: berlin, now: start) == .init(verdict: .wait(until: end)))
        #expect(budget.rule(push("s", .sync, device: "d"), quietHours: berlin, now: start).verdict == .send)
        #expect(budget.rule(push("b", at: 2), quietHours: berlin, now: start) == .init(verdict: .wait(until: end), displaced: ["a"]))
        #expect(budget.rule(push("late", at: 1), quietHours: berlin, now: start) == .init(verdict: .drop(.displaced)))
        // However many pushes have no group, none is lost before the morning.
        for id in 0..<100 {
            #expect(budget.rule(push("\(id)", group: nil), quietHours: berlin, now: start) == .init(verdict: .wait(until: end)))
        }
        #expect(budget.rule(push("b", at: 2), quietHours: berlin, now: end) == .init(verdict: .send))
    }

    @Test("what quiet hours hold back in one time zone neither stops nor replaces what goes out in another")
    func zones() {
        var budget = PushBudget()
        func rule(_ id: String, _ zone: String, at: Int64, now: Int64 = start, alerts: AlertLimits = .standard) -> PushBudget.Ruling {
            budget.rule(push(id, at: at, timezone: zone), quietHours: berlin, alerts: alerts, now: now)
        }
        let end = start + 6 * 60 * minute
        #expect(rule("a", "Europe/Berlin", at: 1) == .init(verdict: .wait(until: end)))
        #expect(rule("b", "Asia/Tokyo", at: 2) == .init(verdict: .send))
        #expect(rule("b", "Europe/Berlin", at: 2) == .init(verdict: .wait(until: end), displacedInZone: ["a"]))
        #expect(rule("a", "Asia/Tokyo", at: 1) == .init(verdict: .send))
        #expect(rule("a", "Europe/Berlin", at: 1) == .init(verdict: .drop(.displaced)))
        // A push that waits for its turn still waits in zones without quiet hours, and is replaced in every zone.
        let one = AlertLimits(burst: 1, every: .seconds(3600), perDay: 0)
        #expect(rule("c", "Asia/Tokyo", at: 3, alerts: one).displaced == [])
        #expect(rule("c", "Europe/Berlin", at: 3, alerts: one) == .init(verdict: .wait(until: end), displacedInZone: ["b"]))
        #expect(rule("d", "Asia/Tokyo", at: 4, alerts: one).displaced == ["c"])
        // A push exempt from quiet hours replaces the held ones in every zone.
        #expect(budget.rule(push("e", .critical, at: 5), now: start).displaced.contains("c"))
    }

    @Test("windows within a day and over midnight, with their edges")
    func windows() {
        let noon = QuietHours(from: 12 * 60, to: 13 * 60 + 30, timezone: "UTC")
        let day = start - 60 * minute
        #expect(noon.end(at: day + 12 * 60 * minute - 1) == nil)
        #expect(noon.end(at: day + 12 * 60 * minute) == day + 810 * minute)
        #expect(noon.end(at: day + 810 * minute - 1) == day + 810 * minute && noon.end(at: day + 810 * minute) == nil)
        #expect(berlin.end(at: day + 21 * 60 * minute) == day + (24 + 7) * 60 * minute)
        #expect(berlin.end(at: day + 21 * 60 * minute - 1) == nil && berlin.end(at: day + 7 * 60 * minute) == nil)
        #expect(berlin.end(at: day + 21 * 60 * minute, timezone: "No/Where") == day + (24 + 7) * 60 * minute)
    }

    @Test("the end is told by the clock that is valid then")
    func clockChange() {
        // Berlin went to summer time on 2026-03-29 at 01:00Z, so eight o'clock is 06:00Z then. On 2026-10-25 it goes back.
        let march: Int64 = 1_774_742_400_000
        #expect(berlin.end(at: march - 60 * minute) == march + 6 * 60 * minute)
        let october: Int64 = 1_792_886_400_000
        #expect(berlin.end(at: october - 60 * minute) == october + 7 * 60 * minute)
    }

    // MARK: Spread

    @Test("a big audience's waits are shortened, by at most half and never below zero")
    func spread() {
        #expect(Policy.notify.spread(.seconds(5), recipients: 1000, fraction: 0.5) == .seconds(5))
        #expect(Policy.notify.spread(.seconds(10), recipients: 1001, fraction: 0.5) == .seconds(8.5))
        #expect(Policy.notify.spread(.seconds(5), recipients: 1001, fraction: 0) == .seconds(5))
        #expect(Policy.notify.spread(.seconds(3), recipients: 1001, fraction: 1) == .seconds(1.5))
        #expect(Policy.notify.spread(.zero, recipients: 1001, fraction: 0.9) == .zero)
        #expect(Policy.critical.spread(.seconds(2), recipients: 10_000, fraction: 0.5) == .seconds(1.75))
        for policy in [Policy.sync, .both, .pushOnly] {
            #expect(policy.spread(.seconds(5), recipients: 10_000, fraction: 0.5) == .seconds(5))
        }
    }
}
