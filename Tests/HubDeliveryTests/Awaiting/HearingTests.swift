import HubCore
import HubTesting
import Testing

@testable import HubDelivery

@Suite("Hearing what has come before anything falls due")
struct HearingTests {
    @Test("pushes fall due up to when the loops were asked that have all answered")
    func rounds() throws {
        var hearing = Hearing(loopCount: 2)
        #expect(hearing.dueUpTo(now: 1000, isWaiting: true) < 0)
        let asked = hearing.ask(now: 1000, due: 900, isWaiting: true)
        let first = try #require(asked)
        #expect(hearing.ask(now: 1001, due: 900, isWaiting: true) == nil)
        #expect(hearing.answered(first, by: 0, newcomers: 0, now: 1002) == nil && hearing.dueUpTo(now: 1002, isWaiting: true) < 0)
        #expect(hearing.answered(first, by: 1, newcomers: 0, now: 1003) == Hearing.Delay(from: 1000, until: 1003))
        #expect(hearing.dueUpTo(now: 1003, isWaiting: true) == 1000)
        // A push that is not due yet needs no round before the next beat.
        #expect(hearing.ask(now: 1050, due: 1060, isWaiting: true) == nil)
        #expect(hearing.ask(now: 1060, due: 1060, isWaiting: true) != nil)
    }

    @Test("without loops all is heard, and nobody is asked while nobody is waited for")
    func nobody() {
        var none = Hearing(loopCount: 0)
        #expect(none.dueUpTo(now: 5, isWaiting: true) == 5 && none.ask(now: 5, due: 5, isWaiting: true) == nil)
        var one = Hearing(loopCount: 1)
        #expect(one.ask(now: 5, due: nil, isWaiting: false) == nil && one.nextLook(due: nil, isWaiting: false) == nil)
        // Times of events that have ended must go without a round: the task would be woken for them again and again.
        #expect(one.dueUpTo(now: 5, isWaiting: false) == 5)
    }

    @Test("a loop that does not answer is given up, and what it answers later counts for nothing")
    func givenUp() throws {
        var hearing = Hearing(loopCount: 1)
        let asked = hearing.ask(now: 0, due: 0, isWaiting: true)
        let round = try #require(asked)
        #expect(hearing.nextLook(due: 0, isWaiting: true) == Hearing.roundMax)
        #expect(hearing.giveUp(now: Hearing.roundMax - 1) == nil)
        #expect(hearing.giveUp(now: Hearing.roundMax) == Hearing.Delay(from: 0, until: Hearing.roundMax))
        #expect(hearing.dueUpTo(now: 9000, isWaiting: true) == 0)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 9000) == nil)
    }

    @Test("after a standstill of the task the answers that lie there are heard before anybody is given up")
    func standstill() throws {
        var hearing = Hearing(loopCount: 2)
        let asked = hearing.ask(now: 0, due: 0, isWaiting: true)
        let round = try #require(asked)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 10) == nil)
        #expect(hearing.giveUp(now: 2600) == nil && hearing.nextLook(due: 0, isWaiting: true) == 2850)
        #expect(hearing.answered(round, by: 1, newcomers: 0, now: 2610) == Hearing.Delay(from: 0, until: 2610))

        _ = hearing.ask(now: 3000, due: 3000, isWaiting: true)
        #expect(hearing.giveUp(now: 5600) == nil && hearing.giveUp(now: 5849) == nil)
        #expect(hearing.giveUp(now: 6200) == Hearing.Delay(from: 3000, until: 6200), "a second standstill is not waited for")
    }

    @Test("another node that lets a round run out is waited for again once it answers")
    func silentNode() throws {
        var hearing = Hearing(loopCount: 1)
        hearing.add(source: 1)
        func ask(_ hearing: inout Hearing, at now: Int64) throws -> UInt64 {
            let round = hearing.ask(now: now, due: now, isWaiting: true)
            return try #require(round)
        }
        var round = try ask(&hearing, at: 0)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 1) == nil)
        #expect(hearing.giveUp(now: Hearing.roundMax) == Hearing.Delay(from: 0, until: Hearing.roundMax))
        round = try ask(&hearing, at: 3000)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 3001) != nil)
        // A late answer to an old round shows that the node lives.
        #expect(hearing.answered(round, by: 1, newcomers: 0, now: 3050) == nil)
        round = try ask(&hearing, at: 4000)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 4001) == nil)
        #expect(hearing.answered(round, by: 1, newcomers: 0, now: 4002) == Hearing.Delay(from: 4000, until: 4002))
    }

    @Test("a round that waited for a node alone ends with the node")
    func goneNode() throws {
        var hearing = Hearing(loopCount: 1)
        hearing.add(source: 1)
        let asked = hearing.ask(now: 0, due: 0, isWaiting: true)
        let round = try #require(asked)
        #expect(hearing.answered(round, by: 0, newcomers: 0, now: 1) == nil)
        #expect(hearing.remove(source: 1, now: 70) == Hearing.Delay(from: 0, until: 70))
        #expect(hearing.dueUpTo(now: 70, isWaiting: true) == 0)
    }

    @Test("as long as a loop has newcomers to let in the hub is late without a gap")
    func newcomers() throws {
        var hearing = Hearing(loopCount: 1)
        for (asked, from) in [(1000, 1000), (1100, 1004), (1200, 1104)] as [(Int64, Int64)] {
            let number = hearing.ask(now: asked, due: nil, isWaiting: true)
            let round = try #require(number)
            #expect(hearing.answered(round, by: 0, newcomers: 3, now: asked + 4) == Hearing.Delay(from: from, until: asked + 4, least: 0))
        }
    }

    @Test("a beat that is heard late is the delivery task's own delay")
    func wakes() throws {
        var hearing = Hearing(loopCount: 1)
        let asked = hearing.ask(now: 0, due: nil, isWaiting: true)
        let round = try #require(asked)
        _ = hearing.answered(round, by: 0, newcomers: 0, now: 1)
        #expect(hearing.nextLook(due: 5000, isWaiting: true) == Hearing.beatMilliseconds)
        #expect(hearing.woke(now: 400) == Hearing.Delay(from: Hearing.beatMilliseconds, until: 400))
        #expect(hearing.woke(now: 500) == nil)
    }
}
