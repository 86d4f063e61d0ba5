import Testing

@testable import HubPush

@Suite("TokenJudge")
struct TokenJudgeTests {
    private let second = nanosecondsPerSecond

    @Test("a fifth of a batch is bad: it trips, and not one token is condemned", arguments: [0, 1, 2, 3, 4])
    func fifth(offset: Int) {
        var judge = TokenJudge(.apns)
        var condemned = 0
        var trips = 0
        for index in 0..<1000 {
            let ruling =
                index % 5 == offset
                ? judge.bad("t\(index)", since: 1, now: UInt64(index)).ruling : judge.good("t\(index)", now: UInt64(index))
            condemned += ruling.condemned.count
            trips += ruling.hasTripped ? 1 : 0
        }
        #expect(condemned == 0)
        #expect(trips == 1)
        #expect(judge.isTripped && judge.held.isEmpty)
        #expect(judge.due(now: 3600 * second) == TokenJudge.Ruling())
    }

    @Test("bad tokens at the very beginning of a batch are held until the batch has shown what it is")
    func firstOnes() {
        var judge = TokenJudge(.apns)
        for index in 0..<5 { _ = judge.bad("bad\(index)", since: 7, now: 0) }
        #expect(judge.held.count == 5)
        // Five of five would be too many; five of two hundred are chance.
        var condemned: [TokenJudge.Held] = []
        for index in 0..<195 { condemned += judge.good("good\(index)", now: 1).condemned }
        #expect(condemned.map(\.token).sorted() == (0..<5).map { "bad\($0)" })
        #expect(condemned.allSatisfy { $0.since == 7 })
    }

    @Test("a few bad tokens of a small deployment are removed after a while, without further answers")
    func small() {
        var judge = TokenJudge(.apns)
        #expect(judge.bad("a", since: 1, now: 0).fate == .open)
        #expect(judge.bad("b", since: 2, now: second).fate == .open)
        #expect(judge.nextDue == 5 * second)
        let rulings = [4, 5, 6].map { judge.due(now: $0 * second).condemned.map(\.token) }
        #expect(rulings == [[], ["a"], ["b"]])
        #expect(judge.nextDue == nil)
    }

    @Test("a dead token or two at a lane that accepted nothing yet go after the wait; once there are more all further ones are kept")
    func fewStrangers() {
        var judge = TokenJudge(.apns)
        let wait = judge.rules.wait
        #expect(judge.bad("a", isProven: false, since: 1, now: 0).fate == .open)
        #expect(judge.due(now: wait).condemned.map(\.token) == ["a"])
        #expect(judge.bad("b", isProven: false, since: 2, now: wait).fate == .open)
        #expect(judge.due(now: 2 * wait).condemned.map(\.token) == ["b"])
        #expect(judge.bad("c", isProven: false, since: 3, now: 2 * wait).fate == .doubtful)
        #expect(judge.due(now: 9 * wait).condemned.isEmpty && judge.nextDue == nil)
        #expect(judge.good("d", isProven: false, now: 9 * wait).condemned.map(\.token) == ["c"])
    }

    @Test("when time decides, a doubtful share counts against removal even with few answers")
    func smallAndWrong() {
        var judge = TokenJudge(.apns)
        for index in 0..<3 { _ = judge.bad("t\(index)", since: 1, now: 0) }
        #expect(!judge.isTripped)
        let ruling = judge.due(now: 30 * second)
        #expect(ruling == TokenJudge.Ruling(hasTripped: true))
        #expect(judge.held.isEmpty)
    }

    @Test("one token complained about a hundred times is one bad token")
    func sameToken() {
        var judge = TokenJudge(.apns)
        for _ in 0..<100 { #expect(judge.bad("t", since: 1, now: 0).ruling.hasTripped == false) }
        #expect(judge.held.count == 1)
    }

    @Test("a held token that is accepted after all is kept")
    func rehabilitated() {
        var judge = TokenJudge(.apns)
        _ = judge.bad("t", since: 1, now: 0)
        _ = judge.good("t", now: 1)
        #expect(judge.due(now: 60 * second) == TokenJudge.Ruling())
    }

    @Test("a healthy share is removed as answers come in, and good answers end what had tripped")
    func recovers() {
        var judge = TokenJudge(.apns)
        var condemned = 0
        for index in 0..<1000 {
            let ruling =
                index % 25 == 24 ? judge.bad("t\(index)", since: 1, now: 0).ruling : judge.good("t\(index)", now: 0)
            condemned += ruling.condemned.count
            #expect(!ruling.hasTripped)
        }
        #expect(condemned >= 36)
        for index in 0..<50 { _ = judge.bad("u\(index)", since: 1, now: 0) }
        #expect(judge.isTripped)
        #expect(judge.bad("v", since: 1, now: 0).fate == .tooMany)
        for index in 0..<200 { _ = judge.good("w\(index)", now: 0) }
        #expect(!judge.isTripped)
        #expect(judge.bad("x", since: 1, now: 0).fate == .open)
    }

    @Test("FCM bears a fifth of dead tokens; beyond 30 % nothing is removed", arguments: [(2, false), (4, true)])
    func fcm(badOfTen: Int, trips: Bool) {
        var judge = TokenJudge(.fcm)
        var condemned = 0
        var hasTripped = false
        for index in 0..<500 {
            let ruling =
                index % 10 < badOfTen ? judge.bad("t\(index)", since: 1, now: 0).ruling : judge.good("t\(index)", now: 0)
            condemned += ruling.condemned.count
            hasTripped = hasTripped || ruling.hasTripped
        }
        #expect(hasTripped == trips)
        #expect(trips ? condemned == 0 : condemned > 80)
    }

    @Test(
        "tokens that nobody has seen work never count against the lane, however many are called bad, and are removed where others are accepted"
    )
    func invented() {
        var judge = TokenJudge(.apns)
        for index in 0..<150 { _ = judge.good("proven\(index)", now: 0) }
        var condemned: Set<String> = []
        for index in 0..<500 {
            let (fate, ruling) = judge.bad("invented\(index)", isProven: false, since: 1, now: UInt64(index) * second / 10)
            #expect(fate == .open && !ruling.hasTripped)
            condemned.formUnion(ruling.condemned.map(\.token))
        }
        // A proven one that has died is removed between them.
        let dead = judge.bad("proven7", since: 1, now: 50 * second)
        #expect(dead.fate == .open)
        condemned.formUnion(dead.ruling.condemned.map(\.token))
        condemned.formUnion(judge.due(now: 60 * second).condemned.map(\.token))
        #expect(condemned.count == 501 && condemned.contains("proven7"))
        #expect(!judge.isTripped)
    }

    @Test("where none was ever accepted the setting may be wrong: nothing is removed, and it is told, until the first is accepted")
    func firstStart() {
        var judge = TokenJudge(.apns)
        #expect(judge.bad("t0", isProven: false, since: 1, now: 0).fate == .open)
        #expect(judge.bad("t1", isProven: false, since: 1, now: 0).fate == .open)
        for index in 2..<2_000 { #expect(judge.bad("t\(index)", isProven: false, since: 1, now: 0).fate == .doubtful) }
        #expect(judge.due(now: 3600 * second) == TokenJudge.Ruling() && judge.nextDue == nil)
        #expect(judge.strangers.count == TokenJudge.Rules.apns.heldMax)
        // One of them was honest.
        let ruling = judge.good("t5", isProven: false, now: 3600 * second)
        #expect(ruling.condemned.count == TokenJudge.Rules.apns.heldMax - 1 && !ruling.condemned.contains { $0.token == "t5" })
        #expect(judge.bad("u", isProven: false, since: 1, now: 3600 * second).fate == .open)
        #expect(judge.nextDue == 3605 * second)
    }

    @Test("where too many that worked before are called bad, those that never worked are kept as well")
    func strangersInDoubt() {
        var judge = TokenJudge(.apns)
        for index in 0..<150 { _ = judge.good("proven\(index)", now: 0) }
        #expect(judge.bad("stranger", isProven: false, since: 1, now: 0).fate == .open)
        for index in 0..<20 { _ = judge.bad("proven\(index)", since: 1, now: 0) }
        #expect(judge.isTripped && judge.strangers.isEmpty)
        #expect(judge.bad("stranger", isProven: false, since: 1, now: 0).fate == .tooMany)
    }

    @Test("no more than a bounded number is held")
    func bounded() {
        var judge = TokenJudge(.init(percentMax: 100, badMin: 1, samplesMin: 10_000, heldMax: 10))
        for index in 0..<100 { _ = judge.bad("t\(index)", since: 1, now: 0) }
        #expect(judge.held.count == 10)
    }

    @Test("nothing that is held prints its token")
    func silent() {
        var judge = TokenJudge(.apns)
        _ = judge.bad("SECRET", since: 1, now: 0)
        var text = ""
        dump(judge.held, to: &text)
        #expect(!(text + "\(judge.held)" + String(reflecting: judge.held)).contains("SECRET"))
    }
}

@Suite("ForeignTokens and AcceptedShapes")
struct TokenMemoryTests {
    @Test("a mark ends after an hour, and more than a few are told")
    func foreign() {
        var tokens = ForeignTokens()
        for index in 0..<5 { #expect(tokens.mark("t\(index)", now: 0) == false) }
        #expect(tokens.mark("t0", now: 0) == false)
        #expect(tokens.mark("t5", now: 0) == true)
        #expect(tokens.isMarked("t5", now: ForeignTokens.keptFor - 1) == true)
        #expect(tokens.isMarked("t5", now: ForeignTokens.keptFor) == false)
        for index in 0..<(2 * ForeignTokens.countMax) { _ = tokens.mark("u\(index)", now: 1) }
        #expect(tokens.isMarked("u\(2 * ForeignTokens.countMax - 1)", now: 2) == false)
    }

    @Test("the last thousand shapes are known")
    func shapes() {
        var shapes = AcceptedShapes()
        for shape in 0..<(AcceptedShapes.countMax + 1) { shapes.note(shape) }
        shapes.note(5)
        #expect(!shapes.contains(0))
        #expect(shapes.contains(1) && shapes.contains(AcceptedShapes.countMax))
    }
}
