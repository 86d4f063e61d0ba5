import HubCore
import HubDefinitions
import HubDelivery
import Testing

@Suite("Escalation")
struct EscalationTests {
    private let phone = ConnectionID.of(1)

    // MARK: Receipts

    @Test("a receipt of an app on the screen settles the event, and nothing is pushed")
    func receipt() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        let event = stage.publish(to: ["ann"])
        stage.escalation.pinged(event, loop: 0, cursor: 7)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann") && stage.escalation.nextDue == 5000)
        stage.pong(phone, 6)
        #expect(stage.advance(to: 100) == [])
        stage.pong(phone, 7)
        #expect(!stage.escalation.isWaiting(event: "e1", user: "ann"))
        #expect(stage.advance(to: 200) == ["confirmed e1 [0]", "closed e1"])
        #expect(stage.advance(to: 60_000) == [] && stage.escalation.nextDue == nil)
    }

    @Test("without a receipt the push is due at its time and not before, and a receipt after it changes nothing")
    func due() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        let event = stage.publish(to: ["ann"])
        stage.escalation.pinged(event, loop: 0, cursor: 7)
        #expect(stage.advance(to: 4999) == [])
        #expect(stage.advance(to: 5000) == ["push e1 ann", "settled [0]", "closed e1"])
        stage.pong(phone, 7)
        #expect(stage.advance(to: 60_000) == [])
    }

    @Test("what counts as a receipt: the right loop, a cursor behind the event, a PING that went out, a seat that was there")
    func strayReceipts() {
        var stage = EscalationStage()
        let other = ConnectionID.of(1, loop: 1)
        let late = ConnectionID.of(2)
        stage.attach(phone, "ann", .foreground)
        stage.attach(other, "ann", .foreground)
        let event = stage.publish(to: ["ann"])
        stage.pong(phone, 9)
        stage.escalation.pinged(event, loop: 1, cursor: 50)
        stage.pong(phone, 60)
        stage.pong(other, 49)
        stage.attach(late, "ann", .foreground)
        stage.escalation.pinged(event, loop: 0, cursor: 10)
        stage.pong(late, 11)
        // After an unsubscribe and a new subscribe, the second seat was not sent the event.
        stage.book.detach(phone, channel: "c")
        stage.pong(phone, 12)
        stage.attach(phone, "ann", .foreground)
        stage.pong(phone, 12)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
        stage.pong(other, 50)
        #expect(!stage.escalation.isWaiting(event: "e1", user: "ann"))
    }

    @Test("receipts are for their user and their channel only")
    func others() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        stage.attach(.of(2), "bob", .foreground)
        let mine = stage.publish(to: ["ann"])
        let elsewhere = stage.publish(to: ["ann"], channel: "d")
        for event in [mine, elsewhere] { stage.escalation.pinged(event, loop: 0, cursor: 1) }
        stage.pong(.of(2), 5)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
        stage.pong(phone, 5)
        #expect(!stage.escalation.isWaiting(event: "e1", user: "ann") && stage.escalation.isWaiting(event: "e2", user: "ann"))
    }

    @Test("a receipt of an app in the background counts for nothing, unless the app said that it shows what it reads")
    func background() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .background)
        stage.attach(.of(2), "bob", .background, keepsWorking: true)
        let event = stage.publish(to: ["ann", "bob"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(phone, 1)
        stage.pong(.of(2), 1)
        #expect(stage.advance(to: 5000) == ["confirmed e1 [1]", "push e1 ann", "settled [0]", "closed e1"])
    }

    @Test("a seat whose role changed says nothing about the events before")
    func roleChanged() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        for _ in 1...2 { stage.publish(to: ["ann"]) }
        stage.book.restart(phone, channel: "c", firstEvent: 2)
        for event in 1...2 { stage.escalation.pinged(UInt64(event), loop: 0, cursor: 1) }
        stage.pong(phone, 1)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann") && !stage.escalation.isWaiting(event: "e2", user: "ann"))
    }

    @Test("the app's own word settles, in any state")
    func byWord() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .background)
        stage.publish(to: ["ann", "bob/phone", "bob/tablet"])
        stage.escalation.confirmed(event: "e1", user: "ann")
        stage.escalation.confirmed(event: "e1", user: "bob", device: "tablet")
        stage.escalation.confirmed(event: "e9", user: "ann")
        #expect(stage.advance(to: 5000) == ["confirmed e1 [0]", "push e1 bob/phone", "settled [1]", "closed e1"])
    }

    // MARK: Provisional receipts

    @Test(
        "a receipt of an app that says nothing puts the push off, and only a proof settles it",
        arguments: [(Policy.notify, [20_000, 35_000], 40_000), (.sync, [20_000, 35_000], 40_000), (.critical, [20_000], 25_000)]
            as [(Policy, [Int64], Int64)])
    func provisional(policy: Policy, asks: [Int64], due: Int64) {
        for proof in [Int?.none] + asks.indices.map({ $0 }) {
            var stage = EscalationStage()
            stage.attach(phone, "ann")
            let event = stage.publish(policy, to: ["ann"], at: 1000)
            stage.escalation.pinged(event, loop: 0, cursor: 3)
            stage.pong(phone, 3)
            // More receipts prove nothing so soon, whatever their cursors.
            stage.pong(phone, 8)
            for (index, ask) in asks.enumerated().prefix(proof.map { $0 + 1 } ?? asks.count) {
                #expect(stage.advance(to: 999 + ask) == [])
                #expect(stage.advance(to: 1000 + ask) == ["prove e1 ann"])
                let cursor = UInt64(9 + index)
                stage.escalation.proving(event, loop: 0, cursor: cursor)
                stage.pong(phone, 8)
                if index == proof { stage.pong(phone, cursor) }
            }
            guard proof == nil else {
                // No question and no push follows.
                #expect(stage.advance(to: 1000 + due) == ["confirmed e1 [0]", "closed e1"])
                continue
            }
            #expect(stage.advance(to: 999 + due) == [])
            #expect(stage.advance(to: 1000 + due) == ["push e1 ann", "settled [0]", "closed e1"])
        }
    }

    @Test("who read an event late, perhaps only after leaving the screen, is asked as much later")
    func readLate() {
        var stage = EscalationStage()
        stage.attach(phone, "ann")
        let event = stage.publish(.sync, to: ["ann"], at: 1000)
        stage.escalation.pinged(event, loop: 0, cursor: 3)
        stage.pong(phone, 3, at: 8500)
        // At 21 s an app that left the screen at 8 s still answers.
        #expect(stage.advance(to: 23_499) == [])
        #expect(stage.advance(to: 23_500) == ["prove e1 ann"])
        stage.escalation.proving(event, loop: 0, cursor: 9)
        stage.pong(phone, 9, at: 23_600)
        #expect(stage.advance(to: 23_600) == ["confirmed e1 [0]", "closed e1"])
    }

    @Test("a provisional receipt is settled by the app on the screen, and not by one in the background")
    func provisionalThenState() {
        for (state, settles) in [(AppState.foreground, true), (.background, false)] {
            var stage = EscalationStage()
            stage.attach(phone, "ann")
            let event = stage.publish(to: ["ann"])
            stage.escalation.pinged(event, loop: 0, cursor: 3)
            stage.pong(phone, 3)
            stage.book.setState(phone, state)
            stage.pong(phone, 4)
            #expect(stage.escalation.isWaiting(event: "e1", user: "ann") != settles)
        }
    }

    @Test("a proof comes from a connection that was sent the event")
    func proofOfAnother() {
        var stage = EscalationStage()
        stage.attach(phone, "ann")
        let event = stage.publish(to: ["ann"])
        stage.escalation.pinged(event, loop: 0, cursor: 3)
        stage.pong(phone, 3)
        stage.attach(.of(2), "ann")
        _ = stage.advance(to: 35_000)
        stage.escalation.proving(event, loop: 0, cursor: 9)
        stage.pong(.of(2), 9)
        #expect(stage.advance(to: 40_000) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    @Test("a short-lived event is pushed before it expires, with a question only where an answer would count")
    func shortLife() {
        // Lifetimes and results: 30 s asks at 20 s and pushes at 26 s, 20 s pushes at 16 s unasked. Below, 5 s pushes at 1 s without a
        // receipt.
        for (lifetime, asked, due) in [(30_000, true, 26_000), (20_000, false, 16_000)] as [(Int64, Bool, Int64)] {
            var stage = EscalationStage()
            stage.attach(phone, "ann")
            let event = stage.publish(to: ["ann"], lifetime: lifetime)
            stage.escalation.pinged(event, loop: 0, cursor: 3)
            stage.pong(phone, 3)
            #expect(stage.advance(to: due - 1).isEmpty != asked)
            #expect(stage.advance(to: due) == ["push e1 ann", "settled [0]", "closed e1"])
        }
        var stage = EscalationStage()
        stage.publish(to: ["ann"], lifetime: 5000)
        #expect(stage.advance(to: 999) == [])
        #expect(stage.advance(to: 1000) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    // MARK: Several devices

    @Test("with scope participant one device's receipt settles the participant")
    func participantScope() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", device: "phone", .background)
        stage.attach(.of(2), "ann", device: "tablet", .foreground)
        let event = stage.publish(to: ["ann"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(phone, 1)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
        stage.pong(.of(2), 1)
        #expect(stage.advance(to: 60_000) == ["confirmed e1 [0]", "closed e1"])
    }

    @Test("with scope device each device settles itself, and the recipient is done when the last is")
    func deviceScope() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", device: "phone", .foreground)
        stage.attach(.of(2), "ann", device: "tablet", .foreground)
        let event = stage.publish(to: ["ann/phone", "ann/tablet", "bob/phone"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(.of(2), 1)
        #expect(stage.advance(to: 4999) == [])
        #expect(stage.advance(to: 5000) == ["push e1 ann/phone", "push e1 bob/phone", "settled [0, 1]", "closed e1"])
    }

    @Test("a recipient with one device pushed to and another waited for is not done")
    func half() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", device: "phone")
        let event = stage.publish(to: ["ann/phone", "ann/tablet"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(phone, 1)
        #expect(stage.advance(to: 5000) == ["push e1 ann/tablet", "unsettled"])
        #expect(stage.advance(to: 20_000) == ["prove e1 ann"])
        #expect(stage.advance(to: 40_000) == ["prove e1 ann", "push e1 ann/phone", "settled [0]", "closed e1"])
    }

    @Test("a user with two devices to be proven is asked once")
    func askedOnce() {
        var stage = EscalationStage()
        stage.attach(phone, "ann")
        let event = stage.publish(to: ["ann/phone", "ann/tablet"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(phone, 1)
        #expect(stage.advance(to: 20_000) == ["prove e1 ann"])
    }

    @Test("a connection of unknown device stands for every device")
    func unknownDevice() {
        var stage = EscalationStage()
        stage.attach(phone, "ann", .foreground)
        let event = stage.publish(to: ["ann/phone", "ann/tablet"])
        stage.escalation.pinged(event, loop: 0, cursor: 1)
        stage.pong(phone, 1)
        #expect(stage.advance(to: 0) == ["confirmed e1 [0]", "closed e1"])
    }

    // MARK: Replays

    @Test("a return alone cancels nothing; a receipt of the replay does")
    func replay() {
        for isRead in [true, false] {
            var stage = EscalationStage()
            stage.publish(to: ["ann"], wait: 10_000)
            stage.attach(phone, "ann", .foreground)
            stage.pong(phone, 30)
            #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
            stage.replay("e1", "ann", to: phone, cursor: 20, at: 1000)
            stage.pong(phone, isRead ? 20 : 19)
            #expect(stage.advance(to: 10_000) == (isRead ? ["confirmed e1 [0]"] : ["push e1 ann", "settled [0]"]) + ["closed e1"])
        }
    }

    @Test(
        "a replay just before the push gives the receipt time to arrive, once",
        arguments: [(Policy.notify, 5000), (.critical, 2000)] as [(Policy, Int64)])
    func extended(policy: Policy, grace: Int64) {
        var stage = EscalationStage()
        stage.publish(policy, to: ["ann"], wait: 10_000)
        stage.attach(phone, "ann", .foreground)
        stage.replay("e1", "ann", to: phone, cursor: 20, at: 9000)
        #expect(stage.advance(to: 8999 + grace) == [])
        stage.attach(.of(2), "ann", .foreground)
        stage.replay("e1", "ann", to: .of(2), cursor: 21, at: 8999 + grace)
        #expect(stage.advance(to: 9000 + grace) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    @Test("a replay gives no time beyond the event's life")
    func extendedShortLife() {
        var stage = EscalationStage()
        stage.publish(to: ["ann"], wait: 5000, lifetime: 10_000)
        stage.replay("e1", "ann", to: phone, cursor: 20, at: 4000)
        #expect(stage.advance(to: 5999) == [])
        #expect(stage.advance(to: 6000) == ["push e1 ann", "settled [0]", "closed e1"])
    }

    @Test("the proof of a replay is asked for as long after the replay")
    func replayProof() {
        var stage = EscalationStage()
        stage.attach(.of(2), "bob")
        let event = stage.publish(.critical, to: ["ann", "bob"], wait: 30_000)
        stage.escalation.pinged(event, loop: 0, cursor: 2)
        stage.attach(phone, "ann")
        stage.replay("e1", "ann", to: phone, cursor: 20, at: 15_200)
        stage.pong(phone, 20)
        stage.pong(.of(2), 20)
        #expect(stage.advance(to: 20_000) == ["prove e1 bob"])
        // Bob's question is too early to prove anything for ann.
        stage.escalation.proving(event, loop: 0, cursor: 21)
        stage.pong(phone, 21)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
        stage.pong(.of(2), 21)
        #expect(stage.advance(to: 35_499) == ["confirmed e1 [1]"])
        #expect(stage.advance(to: 35_500) == ["prove e1 ann"])
        stage.escalation.proving(event, loop: 0, cursor: 22)
        stage.pong(phone, 22)
        #expect(stage.advance(to: 60_000) == ["confirmed e1 [0]", "closed e1"])
    }

    @Test("who was sent the event twice over one connection read it the first time")
    func replayedTwice() {
        var stage = EscalationStage()
        let event = stage.publish(to: ["ann"], wait: 10_000)
        stage.attach(phone, "ann")
        stage.replay("e1", "ann", to: phone, cursor: 20, at: 1000)
        stage.pong(phone, 20)
        // A new subscription replays the event.
        stage.replay("e1", "ann", to: phone, cursor: 30, at: 17_000)
        stage.pong(phone, 30)
        #expect(stage.advance(to: 21_000) == ["prove e1 ann"])
        stage.escalation.proving(event, loop: 0, cursor: 40)
        stage.pong(phone, 40)
        #expect(stage.advance(to: 60_000) == ["confirmed e1 [0]", "closed e1"])
    }

    @Test(
        "who came back once more while a proof is waited for is asked when their answer counts, once",
        arguments: [
            (Policy.notify, 30_000, true), (.notify, 30_000, false), (.notify, 12_000, true), (.critical, 18_000, true),
            (.critical, 18_000, false),
        ]
            as [(Policy, Int64, Bool)])
    func replayedToAnother(policy: Policy, secondAt: Int64, answers: Bool) {
        var stage = EscalationStage()
        let event = stage.publish(policy, to: ["ann"], wait: 10_000)
        stage.attach(phone, "ann")
        stage.replay("e1", "ann", to: phone, cursor: 20, at: 0)
        stage.pong(phone, 20)
        _ = stage.advance(to: secondAt)
        stage.book.disconnected(phone)
        stage.attach(.of(2), "ann")
        stage.replay("e1", "ann", to: .of(2), cursor: 30, at: secondAt)
        stage.pong(.of(2), 30)
        var cursor: UInt64 = 40
        var pushed: Int64?
        for now in stride(from: secondAt, through: 120_000, by: 500) {
            for line in stage.advance(to: now) {
                if line.hasPrefix("push") { pushed = now }
                guard line.hasPrefix("prove") else { continue }
                cursor += 1
                stage.escalation.proving(event, loop: 0, cursor: cursor)
                // An answer too soon counts for nothing, because its sender may have just left the screen.
                if answers || now < secondAt + 20_000 { stage.pong(.of(2), cursor) }
            }
            // A third return changes nothing any more.
            if now == secondAt + 24_000, !answers {
                stage.attach(.of(3), "ann")
                stage.replay("e1", "ann", to: .of(3), cursor: 100, at: now)
                stage.pong(.of(3), 100)
            }
        }
        #expect(!stage.escalation.isWaiting(event: "e1", user: "ann"))
        #expect(pushed == (answers ? nil : secondAt + 25_000))
    }

    @Test("only the last replays to a user are remembered")
    func replaysBounded() {
        var stage = EscalationStage()
        stage.publish(to: ["ann"], wait: 10_000)
        for slot in 1...20 {
            stage.attach(.of(slot), "ann", .foreground)
            stage.replay("e1", "ann", to: .of(slot), cursor: UInt64(slot), at: 0)
        }
        stage.pong(.of(12), 100)
        #expect(stage.escalation.isWaiting(event: "e1", user: "ann"))
        stage.pong(.of(13), 100)
        #expect(!stage.escalation.isWaiting(event: "e1", user: "ann"))
    }
}
