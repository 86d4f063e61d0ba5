import HubCore
import HubTesting
import Testing

@testable import HubScaleOut

@Suite("What a node keeps of its messages")
struct SentEntriesTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("a message is kept until it was read back, and for five seconds more")
    func kept() {
        var sent = SentEntries()
        for text in ["a", "b", "c"] { _ = sent.append(bytes(text), now: 0) }
        #expect(sent.unanswered(most: 10, bytes: 100).map(\.number) == [1, 2, 3])
        #expect(sent.unanswered(most: 2, bytes: 100).map(\.number) == [1, 2])
        #expect(sent.unanswered(most: 10, bytes: 0).map(\.number) == [1], "the first one goes, however long")
        sent.answered(through: 2)
        #expect(sent.unanswered(most: 10, bytes: 100).map(\.number) == [3] && sent.hasUnanswered)
        sent.readBack(1, now: 10)
        sent.drop(now: 10 + SentEntries.keptFor - 1)
        #expect(sent.count == 3)
        sent.drop(now: 10 + SentEntries.keptFor)
        #expect(sent.count == 2)
    }

    @Test("in a new epoch everything kept is to be appended again, under its number")
    func newEpoch() {
        var sent = SentEntries()
        for text in ["a", "b", "c"] { _ = sent.append(bytes(text), now: 0) }
        sent.answered(through: 3)
        sent.readBack(1, now: 0)
        sent.readBack(2, now: SentEntries.keptFor)
        sent.drop(now: SentEntries.keptFor)
        sent.epochChanged()
        #expect(sent.unanswered(most: 10, bytes: 100).map(\.payload) == [bytes("b"), bytes("c")])
        // Nothing goes before it was read in this epoch.
        sent.drop(now: 10 * SentEntries.keptFor)
        #expect(sent.count == 2)
        #expect(sent.append(bytes("d"), now: 0) == 4)
    }

    @Test("a message that is given up leaves its number, and its bytes go")
    func givenUp() {
        var sent = SentEntries()
        _ = sent.append(bytes("a"), now: 0)
        _ = sent.append(bytes("b"), now: 0)
        sent.giveUp(1)
        #expect(sent.unanswered(most: 10, bytes: 100).map(\.payload) == [[], bytes("b")])
    }

    @Test("a message that is read back for the first time tells how long it took")
    func took() {
        var sent = SentEntries()
        _ = sent.append(bytes("a"), now: 100)
        #expect(sent.readBack(1, now: 130) == 30 && sent.readBack(1, now: 140) == nil && sent.readBack(2, now: 140) == nil)
    }

    @Test("no more is kept than the bound")
    func bounded() {
        var sent = SentEntries()
        let large = [UInt8](repeating: 0, count: 1 << 20)
        let taken = (0..<100).count { _ in sent.append(large, now: 0) != nil }
        #expect(taken == SentEntries.bytesMax / (large.count + SentEntries.entryBytes))
        sent.answered(through: UInt64(taken))
        for number in 1...taken { sent.readBack(UInt64(number), now: 0) }
        sent.drop(now: SentEntries.keptFor)
        #expect(sent.count == 0 && sent.append(large, now: 0) != nil)
    }

    @Test("entries that are given up leave room for those that are kept")
    func roomForKept() {
        var sent = SentEntries()
        let large = [UInt8](repeating: 0, count: 1 << 20)
        while sent.append(large, now: 0, isPassing: true) != nil {}
        #expect(sent.append(large, now: 0) != nil)
    }
}

@Suite("Probes of a stream")
struct StreamProbeTests {
    @Test("one is sent whenever nothing of the node's own was read for a second")
    func due() {
        let (began, every) = (ContinuousClock.now, StreamProbe.every)
        let early = every - .nanoseconds(1)
        var probe = StreamProbe()
        #expect(probe.isDue(at: began) && !probe.isDue(at: began + early) && probe.isDue(at: began + every), "nothing has come back yet")
        let read = began + every + .milliseconds(500)
        probe.readBack(at: read, took: .milliseconds(2))
        #expect(!probe.isDue(at: read + early) && probe.isDue(at: read + every))
        let later = read + every + .milliseconds(100)
        probe.readBack(at: later, took: .milliseconds(3))
        #expect(!probe.isDue(at: later + early) && probe.isDue(at: later + every), "a message in between puts it off")
        #expect(probe.last?.at == later && probe.last?.took == .milliseconds(3))
    }
}

@Suite("Numbers of received messages")
struct ReceivedNumbersTests {
    @Test("tell doubles and gaps of every node apart")
    func verdicts() {
        var received = ReceivedNumbers()
        #expect(received.take(7, of: 1) == .new, "a node's first message may have any number")
        #expect(received.take(8, of: 1) == .new && received.take(8, of: 1) == .known && received.take(3, of: 1) == .known)
        #expect(received.take(1, of: 2) == .new)
        #expect(received.take(12, of: 1) == .gap(missing: 3) && received.take(13, of: 1) == .new && received.take(2, of: 2) == .new)
        received.forget(1)
        #expect(received.take(1, of: 1) == .new)
    }

    @Test("remember no more nodes than their bound, and forget the one that was silent for longest")
    func bounded() {
        var received = ReceivedNumbers()
        for origin in 0..<UInt64(ReceivedNumbers.originsMax) { _ = received.take(5, of: origin) }
        _ = received.take(5, of: 0)
        _ = received.take(1, of: .max)
        #expect(received.count == ReceivedNumbers.originsMax)
        #expect(received.take(5, of: 0) == .known && received.take(4, of: 1) == .new, "node 1 was forgotten")
    }
}

@Suite("Trimming of a stream")
struct TrimPointTests {
    @Test("goes by what was read, never by a clock of this machine")
    func trimming() {
        var trim = TrimPoint()
        #expect(trim.minimum == nil, "who has read nothing trims nothing")
        trim.read(StreamID(milliseconds: 100_000, number: 3), bytes: 10)
        #expect(trim.minimum == StreamID(milliseconds: 70_000))
        trim.read(StreamID(milliseconds: 90_000), bytes: 10)
        #expect(trim.minimum == StreamID(milliseconds: 70_000), "an older id changes nothing")
        for number in 1...300 { trim.read(StreamID(milliseconds: 100_001, number: UInt64(number)), bytes: 1 << 20) }
        #expect(
            trim.minimum.map { $0.milliseconds == 100_001 && $0.number > 30 && $0.number < 60 } == true,
            "\(String(describing: trim.minimum))")
        trim.restart()
        #expect(trim.minimum == nil)
    }

    @Test("ids are read as Redis writes them")
    func ids() {
        #expect(StreamID("12-3") == StreamID(milliseconds: 12, number: 3) && StreamID("12-3")?.description == "12-3")
        for text in ["", "12", "12-", "-3", "1-2-3", "a-b", "99999999999999999999-0"] { #expect(StreamID(text) == nil, "\(text)") }
        #expect(StreamID(milliseconds: 1, number: 9) < StreamID(milliseconds: 2))
    }
}
