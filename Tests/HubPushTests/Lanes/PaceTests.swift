import HubDelivery
import Testing

@testable import HubPush

private let second = nanosecondsPerSecond

@Suite("LaneBreaker")
struct LaneBreakerTests {
    private func opened(at now: UInt64 = 0) -> LaneBreaker {
        var breaker = LaneBreaker()
        for _ in 0..<LaneBreaker.failuresMax { _ = breaker.failed(now: now) }
        return breaker
    }

    @Test("failures in a row open it, and an answer in between begins the count anew")
    func opens() {
        var breaker = LaneBreaker()
        for _ in 1..<LaneBreaker.failuresMax { #expect(breaker.failed(now: 0) == false) }
        #expect(breaker.answered(now: 0) == false)
        for _ in 1..<LaneBreaker.failuresMax { #expect(breaker.failed(now: 0) == false) }
        #expect(breaker.wait(now: 0) == nil)
        #expect(breaker.failed(now: 0) == true)
        #expect(breaker.wait(now: 0) == .seconds(5))
    }

    @Test("one trial after each hold; failed trials double it up to its bound, what was in flight adds nothing")
    func trials() {
        var breaker = opened()
        for _ in 0..<200 { #expect(breaker.failed(now: second) == false) }
        var now = 5 * second
        for hold in [10, 20, 40, 80, 120, 120] {
            #expect(breaker.wait(now: now) == .zero)
            breaker.beginTrial(now: now)
            #expect(breaker.wait(now: now) ?? .zero > .zero && breaker.isOnTrial)
            #expect(breaker.failed(now: now) == false)
            #expect(breaker.wait(now: now) == .seconds(hold))
            now += UInt64(hold) * second
        }
        #expect(breaker.answered(now: now) == false)
        breaker.beginTrial(now: now)
        #expect(breaker.answered(now: now) == true)
        #expect(breaker.wait(now: now) == nil)
    }

    @Test("a trial that nobody answers is followed by another one after the hold")
    func lostTrial() {
        var breaker = opened()
        breaker.beginTrial(now: 5 * second)
        #expect(breaker.wait(now: 10 * second) == .zero)
    }

    @Test("an outage that is back within a minute goes on where it was")
    func relapse() {
        var breaker = opened()
        breaker.beginTrial(now: 5 * second)
        _ = breaker.answered(now: 5 * second)
        for _ in 0..<LaneBreaker.failuresMax { _ = breaker.failed(now: 20 * second) }
        #expect(breaker.wait(now: 20 * second) == .seconds(10))
        breaker.beginTrial(now: 30 * second)
        _ = breaker.answered(now: 30 * second)
        for _ in 0..<LaneBreaker.failuresMax { _ = breaker.failed(now: 90 * second) }
        #expect(breaker.wait(now: 90 * second) == .seconds(5))
    }
}

@Suite("LaneRate")
struct LaneRateTests {
    /// Takes as much as there is each tenth of a second, and counts it.
    private func taken(_ rate: inout LaneRate, from: UInt64, seconds: Double) -> Int {
        var count = 0
        for step in 0..<Int(seconds * 10) {
            while rate.take(isUrgent: false, now: from + UInt64(step) * second / 10) { count += 1 }
        }
        return count
    }

    @Test("a few pushes go at once, however long the lane was silent")
    func single() {
        var rate = LaneRate(perMinute: 600_000)
        #expect(rate.room(now: 0).count == 2_000)
        for _ in 0..<2_000 { #expect(rate.take(isUrgent: false, now: 0) == true) }
        #expect(rate.take(isUrgent: false, now: 0) == false)
    }

    @Test("silence gathers no more than goes at once, however much the rate would give in a tenth of a second")
    func gathered() {
        var rate = LaneRate(perMinute: 600_000)
        #expect(rate.room(now: 3600 * second).count == 2_000)
        // The same behind bulk at the whole rate.
        _ = taken(&rate, from: 3600 * second, seconds: 70)
        #expect(rate.room(now: 3800 * second).count == 2_000)
    }

    @Test("bulk ramps up over a minute to four fifths of the quota, and no minute spends the quota")
    func ramp() {
        var rate = LaneRate(perMinute: 600_000)
        let first = taken(&rate, from: 0, seconds: 1)
        #expect((2_000...2_600).contains(first))
        let minute = first + taken(&rate, from: second, seconds: 59)
        #expect((200_000...260_000).contains(minute))
        let next = taken(&rate, from: 60 * second, seconds: 60)
        #expect((460_000...480_800).contains(next))
    }

    @Test("after half a minute without bulk the next one ramps up again")
    func quiet() {
        var rate = LaneRate(perMinute: 600_000)
        _ = taken(&rate, from: 0, seconds: 70)
        #expect(taken(&rate, from: 71 * second, seconds: 1) > 7_000)
        let again = 110 * second
        #expect(taken(&rate, from: again, seconds: 1) < 3_000)
    }

    @Test("urgent pushes run ahead of the rate by five seconds of it, and the others wait until that is made up for")
    func urgent() {
        var rate = LaneRate(perMinute: 6_000)
        var count = 0
        while rate.take(isUrgent: true, now: 0) { count += 1 }
        #expect(count == 600 + 400)
        #expect(rate.take(isUrgent: false, now: second) == false)
        #expect(rate.take(isUrgent: true, now: second) == true)
    }

    @Test("a small quota is not spent at once either: a tenth of a minute's, and never the whole in a minute")
    func small() {
        var rate = LaneRate(perMinute: 600)
        #expect(rate.room(now: 0).count == 60)
        var count = 0
        for step in 0..<600 { while rate.take(isUrgent: true, now: UInt64(step) * second / 10) { count += 1 } }
        #expect(count <= 600)
    }

    @Test("a waiter is told when there is something again")
    func waits() {
        var rate = LaneRate(perMinute: 600)
        while rate.take(isUrgent: false, now: 0) {}
        let wait = rate.wait(now: 0)
        let later = UInt64(wait.components.seconds) * second + UInt64(wait.components.attoseconds / 1_000_000_000)
        #expect(wait > .zero)
        #expect(rate.take(isUrgent: false, now: later / 4) == false)
        var other = LaneRate(perMinute: 600)
        while other.take(isUrgent: false, now: 0) {}
        #expect(other.take(isUrgent: false, now: later + second) == true)
    }

    @Test("after an outage ten a second and slowly more, urgent or not, with a quota and without", arguments: [600_000, nil])
    func recovery(perMinute: Int?) {
        var rate = LaneRate(perMinute: perMinute)
        rate.recover(now: 0)
        var count = 0
        for step in 0..<10 { while rate.take(isUrgent: true, now: UInt64(step) * second / 10) { count += 1 } }
        #expect((5...120).contains(count))
        for step in 10..<600 { while rate.take(isUrgent: true, now: UInt64(step) * second / 10) { count += 1 } }
        #expect(count > 5_000 && count < 260_000)
        _ = rate.room(now: 61 * second)
        #expect(rate.room(now: 62 * second).count >= (perMinute == nil ? Int.max : 2_000))
    }

    @Test("a lane without a quota has no rate")
    func unlimited() {
        var rate = LaneRate(perMinute: nil)
        for _ in 0..<100_000 { #expect(rate.take(isUrgent: false, now: 0) == true) }
    }
}

@Suite("DeviceRates")
struct DeviceRatesTests {
    @Test("twenty at once to one device, then three a second, and others are not held up")
    func bucket() {
        var devices = DeviceRates(hasBuckets: true)
        for _ in 0..<20 { #expect(devices.take("a", now: 0) == nil) }
        let wait = devices.take("a", now: 0)
        #expect(wait ?? .zero > .milliseconds(330) && wait ?? .zero < .milliseconds(335))
        #expect(devices.take("b", now: 0) == nil)
        #expect(devices.take("a", now: second / 3) == nil)
        #expect(devices.take("a", now: second / 3) != nil)
        var minute = 21
        for step in 0..<590 where devices.take("a", now: second + UInt64(step) * second / 10) == nil { minute += 1 }
        #expect(minute <= 200)
    }

    @Test("one device gets no more than 5,000 in any hour, however it is asked for, and most of them")
    func hour() {
        var devices = DeviceRates(hasBuckets: true)
        var sent: [UInt64] = []
        // As fast as may be for an hour, then a pause in which everything fills up, then again.
        for start in [0, 4 * 3600] as [UInt64] {
            for step in 0..<36_000 {
                let now = start * second + UInt64(step) * second / 10
                if devices.take("a", now: now) == nil { sent.append(now) }
            }
        }
        var (first, most) = (0, 0)
        for (index, at) in sent.enumerated() {
            while sent[first] + 3600 * second <= at { first += 1 }
            most = max(most, index - first + 1)
        }
        #expect(most <= 5_000 && most > 4_500)
        #expect(sent.count > 9_000)
    }

    @Test(
        "a device that its gateway calls throttled is left alone as long as asked, within bounds, with buckets and without",
        arguments: [true, false])
    func holds(hasBuckets: Bool) {
        var devices = DeviceRates(hasBuckets: hasBuckets)
        devices.hold("a", for: nil, now: 0)
        devices.hold("b", for: .seconds(90), now: 0)
        devices.hold("c", for: .seconds(86_400), now: 0)
        #expect(devices.take("a", now: 0) == .seconds(5))
        #expect(devices.take("a", now: 5 * second) == nil)
        #expect(devices.take("b", now: 0) == .seconds(90))
        #expect(devices.take("c", now: 0) == .seconds(600))
        #expect(devices.take("d", now: 0) == nil)
    }

    @Test("of too many devices the one pushed to longest ago is forgotten")
    func bounded() {
        var devices = DeviceRates(hasBuckets: true, devicesMax: 10)
        for _ in 0..<20 { _ = devices.take("first", now: 0) }
        for number in 0..<10 { _ = devices.take("t\(number)", now: 1) }
        #expect(devices.count == 10)
        #expect(devices.take("first", now: 1) == nil)
    }
}

@Suite("Quarantine")
struct QuarantineTests {
    private func unproven(_ token: String) -> PushTarget { target(.apns, platform: .ios, token: token) }

    @Test("a bad token halves the share, once for all that were under way; good ones widen it by one")
    func share() {
        var quarantine = Quarantine(.apns)
        for _ in 0..<50 { quarantine.entered() }
        for _ in 0..<50 { quarantine.left(wasBad: true) }
        #expect(quarantine.limit == 25 && quarantine.inFlight == 0)
        for _ in 0..<10 {
            quarantine.entered()
            quarantine.left(wasBad: true)
        }
        #expect(quarantine.limit == Quarantine.Share.apns.least)
        for _ in 0..<500 {
            quarantine.entered()
            quarantine.left(wasBad: false)
        }
        #expect(quarantine.limit == Quarantine.Share.apns.most)
        quarantine.entered()
        quarantine.left(isBad: nil)
        #expect(quarantine.limit == Quarantine.Share.apns.most)
    }

    @Test("a token that was accepted is proven from then on, also one that a backend names itself; a topic is no token")
    func proven() {
        var quarantine = Quarantine(.apns)
        #expect(!quarantine.isProven(unproven("aa")))
        quarantine.prove("aa", now: 0)
        #expect(quarantine.isProven(unproven("aa")) && !quarantine.isProven(unproven("bb")))
        #expect(!quarantine.isProven(target(.fcm, token: "bb")))
        var topic = target(.fcm, token: "news")
        topic.form = .topic
        #expect(quarantine.isProven(topic))
    }
}

extension Quarantine {
    fileprivate mutating func left(wasBad: Bool) { left(isBad: wasBad) }
}

@Suite("LaneAdmission")
struct LaneAdmissionTests {
    private let transport = PushOutcome.retry(after: nil, reason: RetryCause.transport.reason("reset"))
    private let down = PushOutcome.retry(after: nil, reason: RetryCause.unavailable.reason("http 503"))
    private let ok = PushOutcome.accepted(providerID: "x")

    private func fcm(_ number: Int, isUrgent: Bool = false) -> PushCandidate {
        PushCandidate(target: target(.fcm, token: "t\(number)"), isUrgent: isUrgent)
    }

    private func apns(_ number: Int, isProven: Bool) -> PushCandidate {
        var target = target(.apns, platform: .ios, token: "a\(number)")
        target.isProven = isProven
        return PushCandidate(target: target, isUrgent: false)
    }

    private func count(_ admissions: [PushAdmission]) -> Int { admissions.count { $0 == .go } }

    @Test("an outage lets nothing out but one trial, the most urgent; after its answer the lane ramps up")
    func outage() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        for number in 1...LaneBreaker.failuresMax {
            let turn = pace.note(number % 2 == 0 ? transport : down, fcm(number).target, now: 0)
            #expect(turn == (number == LaneBreaker.failuresMax ? .outage : nil))
        }
        #expect(pace.room(isUnproven: false, window: 200, now: 0) == PushRoom(count: 0, urgent: 0, again: .seconds(5)))
        #expect(pace.admit([fcm(1)], window: 200, now: second) == [.wait(again: .seconds(4))])

        #expect(pace.room(isUnproven: false, window: 200, now: 5 * second) == PushRoom(count: 1, urgent: 1))
        #expect(pace.admit([fcm(1), fcm(2)], window: 200, now: 5 * second) == [.go, .wait(again: nil)])
        // Whoever waits now is called by the trial's end.
        #expect(pace.admit([fcm(3)], window: 200, now: 6 * second) == [.wait(again: nil)])

        #expect(pace.note(ok, fcm(1).target, now: 6 * second) == .recovered)
        let after = 6 * second
        #expect(count(pace.admit((0..<100).map { fcm($0, isUrgent: true) }, window: 200, now: after)) <= 1)
        #expect(count(pace.admit((0..<100).map { fcm($0) }, window: 200, now: after + 30 * second)) > 50)
    }

    @Test("a refused push, a dead token and a throttled device are answers, and no outage")
    func answers() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        let outcomes: [PushOutcome] = [
            .rejected(reason: "x"), .dead(reason: "UNREGISTERED", since: nil),
            .retry(after: nil, reason: RetryCause.deviceThrottled.reason("x")),
            .retry(after: nil, reason: RetryCause.throttled.reason("x")),
        ]
        for outcome in outcomes {
            for _ in 1..<LaneBreaker.failuresMax { #expect(pace.note(down, fcm(1).target, now: 0) == nil) }
            #expect(pace.note(outcome, fcm(2).target, now: 0) != .outage)
        }
        #expect(pace.breaker.wait(now: 0) == nil)
    }

    @Test("pushes that wait for one device ask one after the other: the work for each does not grow with their number")
    func crowdOfOneDevice() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: true)
        // Milliseconds at which each asks next.
        var waiting = Array(repeating: UInt64(0), count: 600)
        var (asked, sent, now) = (0, 0, UInt64(0))
        while let soonest = waiting.min(), now < 600_000 {
            now = max(now, soonest)
            let due = waiting.count { $0 <= now }
            waiting.removeAll { $0 <= now }
            for admission in pace.admit(Array(repeating: fcm(1), count: due), window: 1000, now: now * 1_000_000) {
                asked += 1
                switch admission {
                case .deviceWait(let wait): waiting.append(now + UInt64(wait.milliseconds + 1))
                default: sent += 1
                }
            }
        }
        #expect(sent == 600 && asked < 3 * 600, "\(sent) sent, \(asked) asked")
        // 20 at once, and the rest at three a second.
        #expect(now > 192_000 && now < 200_000, "\(now) ms")
    }

    @Test("a device that is throttled waits alone")
    func device() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        _ = pace.note(.retry(after: .seconds(30), reason: RetryCause.deviceThrottled.reason("x")), fcm(1).target, now: 0)
        #expect(pace.admit([fcm(1), fcm(2)], window: 200, now: 0) == [.deviceWait(.seconds(30)), .go])
    }

    @Test("a topic is no device")
    func topic() {
        var pace = LaneAdmission(perMinute: 600_000, hasDeviceBuckets: true)
        var news = fcm(1)
        news.target.form = .topic
        #expect(count(pace.admit(Array(repeating: news, count: 100), window: 200, now: 0)) == 100)
        #expect(count(pace.admit(Array(repeating: fcm(1), count: 100), window: 200, now: 0)) == 20)
    }

    @Test("no more is handed over than keeps the client busy, and less while its window is narrow")
    func handed() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        let most = 200 * LaneAdmission.handedFactor
        let all = (0..<most + 400).map { PushCandidate(target: fcm($0).target.proven, isUrgent: false) }
        let admitted = pace.admit(all, window: 200, now: 0)
        #expect(count(admitted) == most && admitted.last == .wait(again: nil))
        for candidate in all.prefix(most) { _ = pace.entered(candidate.target) }
        #expect(pace.room(isUnproven: false, window: 200, now: 0) == PushRoom(count: 0, urgent: 0))
        for _ in 0..<100 { pace.left(wasUnproven: false, isBad: nil) }
        #expect(pace.room(isUnproven: false, window: 200, now: 0).count == 100)
        #expect(pace.room(isUnproven: false, window: 1, now: 0).count == 0)
    }

    @Test("unproven tokens have a small share, and proven ones pass them")
    func quarantine() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        let strangers = (0..<1_000).map { apns($0, isProven: false) }
        let admitted = pace.admit(strangers + [apns(5_000, isProven: true)], window: 200, now: 0)
        #expect(count(admitted) == Quarantine.Share.apns.first + 1 && admitted.last == .go)
        for candidate in strangers.prefix(Quarantine.Share.apns.first) { #expect(pace.entered(candidate.target) == true) }
        #expect(pace.room(isUnproven: true, window: 200, now: 0).count == 0)
        let others = 200 * LaneAdmission.handedFactor - Quarantine.Share.apns.first
        #expect(pace.room(isUnproven: false, window: 200, now: 0).count == others)
        // The first is bad: the share shrinks, the others' does not.
        pace.left(wasUnproven: true, isBad: true)
        #expect(pace.quarantine.limit == Quarantine.Share.apns.first / 2)
        #expect(pace.room(isUnproven: false, window: 200, now: 0).count == others + 1)
    }

    @Test("ten thousand invented tokens leave FCM's lane to the others, too")
    func invented() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false, unproven: .fcm)
        let invented = (0..<10_000).map { fcm($0) }
        let proven = PushCandidate(target: fcm(20_000).target.proven, isUrgent: true)
        #expect(count(pace.admit(invented + [proven], window: 200, now: 0)) == Quarantine.Share.fcm.first + 1)
        // Each round of them is called bad.
        for _ in 0..<10 {
            let admitted = count(pace.admit(invented, window: 200, now: 0))
            for candidate in invented.prefix(admitted) { _ = pace.entered(candidate.target) }
            for _ in 0..<admitted { pace.left(wasUnproven: true, isBad: true) }
        }
        #expect(count(pace.admit(invented, window: 200, now: 0)) == Quarantine.Share.fcm.least)
        let others = (0..<2_000).map { PushCandidate(target: fcm(30_000 + $0).target.proven, isUrgent: false) }
        #expect(count(pace.admit(others, window: 200, now: 0)) == 200 * LaneAdmission.handedFactor)
    }

    @Test("a lane stopped for its credentials lets nothing out but its trial")
    func stopped() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        _ = pace.gate.stop("PERMISSION_DENIED", now: 0)
        #expect(pace.admit([fcm(1)], window: 200, now: 0) == [.wait(again: .seconds(60))])
        #expect(pace.admit([fcm(1), fcm(2)], window: 200, now: 60 * second) == [.go, .wait(again: nil)])
        #expect(pace.gate.admit(now: 60 * second) == nil)
        #expect(pace.admit([fcm(2)], window: 200, now: 61 * second) == [.wait(again: nil)])
    }

    @Test("a stopped topic lets nothing out but its trial, the first push, which the lane may still hold")
    func topicStop() {
        var pace = LaneAdmission(perMinute: nil, hasDeviceBuckets: false)
        let two = [apns(1, isProven: true), apns(2, isProven: true)]
        func stop(_ wait: Duration, isOnTrial: Bool = false) -> LaneStop { LaneStop(wait: wait, isOnTrial: isOnTrial) }
        let wait = PushAdmission.wait(again: .seconds(4))
        #expect(pace.admit(two, topic: stop(.seconds(4)), window: 200, now: 0) == [wait, wait])
        #expect(pace.admit(two, topic: stop(.seconds(4), isOnTrial: true), window: 200, now: 0) == [.wait(again: nil), .wait(again: nil)])
        #expect(pace.admit(two, topic: stop(.zero), window: 200, now: 0) == [.go, .wait(again: nil)])
        #expect(
            pace.room(isUnproven: false, topic: stop(.seconds(4)), window: 200, now: 0)
                == PushRoom(count: 0, urgent: 0, again: .seconds(4)))
        #expect(pace.room(isUnproven: false, topic: stop(.zero), window: 200, now: 0) == PushRoom(count: 1, urgent: 1))
        _ = pace.gate.stop("PERMISSION_DENIED", now: 0)
        #expect(pace.admit(two, topic: stop(.zero), window: 200, now: 0) == [.wait(again: .seconds(60)), .wait(again: nil)])
        #expect(
            pace.room(isUnproven: false, topic: stop(.zero), window: 200, now: 0) == PushRoom(count: 0, urgent: 0, again: .seconds(60)))
    }
}
