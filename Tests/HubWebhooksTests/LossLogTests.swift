import Testing

@testable import HubWebhooks

@Suite("LossLog")
struct LossLogTests {
    @Test("losses are summed up and said at most once in ten seconds, and at the end")
    func periods() {
        let lines = LogLines()
        var log = LossLog(logger: lines.logger)
        log.flush(now: 0)
        log.add(.expired, 0)
        #expect(log.nextDue == nil && lines.lines.isEmpty)
        log.add(.expired, 2)
        log.flush(now: 5)
        log.add(.expired, 3)
        log.add(.expired, 4)
        log.add(.queueFull, 1)
        log.flush(now: 4 + 10 * secondNanoseconds)
        #expect(lines.lines.count == 1 && log.nextDue == 5 + 10 * secondNanoseconds)
        log.flush(now: 5 + 10 * secondNanoseconds)
        #expect(lines.lines.count == 3 && lines.lines[1].contains("7") && lines.lines[2].contains("queue is full"))
        log.add(.inboxFull, 8)
        log.flush(now: 6 + 10 * secondNanoseconds, isLast: true)
        #expect(lines.lines.count == 4 && log.nextDue == nil)
    }
}
