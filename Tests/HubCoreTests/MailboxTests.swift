import Dispatch
import HubTesting
import Synchronization
import Testing

@testable import HubCore

@Suite("Mailbox")
struct MailboxTests {
    @Test("a mailbox keeps the order of each sender and loses nothing; offers are bounded")
    func order() {
        let mailbox = Mailbox<Int> {}
        DispatchQueue.concurrentPerform(iterations: 4) { sender in
            for number in 0..<5000 { mailbox.post(sender * 10_000 + number) }
        }
        var messages: [Int] = [-1]
        mailbox.drain(into: &messages)
        #expect(messages.count == 20_000)
        for sender in 0..<4 { #expect(messages.filter { $0 / 10_000 == sender } == (0..<5000).map { sender * 10_000 + $0 }) }
        mailbox.drain(into: &messages)
        #expect(messages.isEmpty && !mailbox.isOccupied)
        #expect((0..<5).map { mailbox.offer($0, limit: 3) } == [.first, .later, .later, .full, .full] && mailbox.isOccupied)
        mailbox.post(9)
        #expect(mailbox.offer(10, limit: 3) == .full && mailbox.count == 4)
        mailbox.drain(into: &messages)
        #expect(messages == [0, 1, 2, 9])
        #expect(mailbox.offer(11, limit: 3) == .first)
    }

    @Test("the reader is woken once for all that comes until it reads")
    func wakes() {
        let counter = Counter()
        let mailbox = Mailbox<Int> { counter.increment() }
        for number in 0..<3 { mailbox.post(number) }
        _ = mailbox.offer(3, limit: 10)
        #expect(counter.value == 1)
        var messages: [Int] = []
        mailbox.drain(into: &messages)
        _ = mailbox.offer(4, limit: 10)
        mailbox.post(5)
        #expect(messages == [0, 1, 2, 3] && counter.value == 2)
    }

    @Test("a bound can be measured in whatever the waiting messages hold")
    func measured() {
        let mailbox = Mailbox<[Int]> {}
        func offer(_ count: Int) -> Mailbox<[Int]>.Offer {
            mailbox.offer { waiting in
                waiting.reduce(0) { $0 + $1.count } + count <= 10 ? Array(repeating: 0, count: count) : nil
            }
        }
        #expect([offer(6), offer(5), offer(4), offer(1)] == [.first, .full, .later, .full])
    }

    @Test("closed, it takes nothing more, hands out what waits, wakes its reader once and tells it of the end")
    func closed() {
        let counter = Counter()
        let mailbox = Mailbox<Int> { counter.increment() }
        mailbox.post(1)
        mailbox.close()
        mailbox.close()
        mailbox.post(2)
        #expect(mailbox.offer(3, limit: 10) == .closed && mailbox.isClosed && counter.value == 2)
        var messages: [Int] = []
        #expect(mailbox.drain(into: &messages) && messages == [1])
        #expect(!mailbox.drain(into: &messages) && messages.isEmpty)
    }
}

private final class Counter: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    func increment() { count.add(1, ordering: .relaxed) }
}

@Suite("Inbox")
struct InboxTests {
    @Test("items come out in the order of posting, also across waits")
    func order() async {
        let inbox = Inbox<Int>()
        let reader = Task {
            var all: [Int] = []
            while let items = await inbox.next() { all += items }
            return all
        }
        for number in 0..<1000 {
            inbox.post(number)
            if number % 100 == 0 { await Task.yield() }
        }
        inbox.close()
        #expect(await reader.value == Array(0..<1000))
    }

    @Test("a waiting reader wakes for every sender's items and for the end")
    func waits() async {
        let inbox = Inbox<Int>()
        let reader = Task {
            var sum = 0
            while let items = await inbox.next() { sum += items.reduce(0, +) }
            return sum
        }
        await withTaskGroup(of: Void.self) { group in
            for sender in 1...4 {
                group.addTask {
                    for _ in 0..<500 {
                        inbox.post(sender)
                        await Task.yield()
                    }
                }
            }
        }
        inbox.close()
        #expect(await reader.value == 5000)
    }

    @Test("an offer beyond the limit, and everything after the end, is refused")
    func bound() {
        let inbox = Inbox<Int>()
        #expect(inbox.offer(1, limit: 2) && inbox.offer(2, limit: 2) && !inbox.offer(3, limit: 2))
        inbox.close()
        #expect(!inbox.offer(4, limit: 100) && inbox.count == 2)
    }
}

@Suite("Guarded")
struct GuardedTests {
    @Test("a value shared by threads loses no change, and its changes see the time never decrease")
    func shared() {
        let clock = ManualClock()
        let guarded = Guarded((changes: 0, latest: UInt64(0), isOrdered: true))
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<1000 {
                clock.advance(milliseconds: 1)
                guarded.withLock(at: clock) { state, now in
                    state.changes += 1
                    state.isOrdered = state.isOrdered && now >= state.latest
                    state.latest = now
                }
            }
        }
        let state = guarded.withLock { $0 }
        #expect(state.changes == 4000 && state.isOrdered && state.latest == clock.monotonicNanoseconds)
    }
}
