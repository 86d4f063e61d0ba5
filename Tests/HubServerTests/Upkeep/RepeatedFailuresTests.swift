import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubServer

/// Keeps the lines that are logged.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    /// Adds a line, with its error and count if any.
    func add(_ event: LogEvent) {
        let words = ["error", RepeatedFailures.countKey].compactMap { event.metadata?[$0].map { "\($0)" } }
        lines.withLock { $0.append(([event.message.description] + words).joined(separator: ", ")) }
    }
}

private struct LineHandler: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { lines.add(event) }
}

@Suite("Repeated failures")
struct RepeatedFailuresTests {
    private let clock = ManualClock()
    private let lines = Lines()
    private let failures: RepeatedFailures
    private let logger: Logger

    init() {
        let failures = RepeatedFailures(time: clock)
        self.failures = failures
        logger = Logger(label: "test") { [lines] _ in PacedLogHandler(LineHandler(lines: lines), failures: failures) }
    }

    private func fail(_ times: Int, _ message: Logger.Message = "not stored", error: String = "full") {
        for _ in 0..<times { logger.error(message, metadata: ["error": "\(error)"]) }
    }

    @Test("the first one is told at once, and then those of ten seconds together")
    func counts() {
        var failure = RepeatedFailure()
        let second: UInt64 = 1_000_000_000
        #expect(failure.happened(now: 0) == 1)
        for instant in 1...30 { #expect(failure.happened(now: UInt64(instant)) == nil) }
        #expect(failure.rest(now: 9 * second) == nil && failure.rest(now: 10 * second) == 30 && failure.rest(now: 30 * second) == nil)
        #expect(failure.happened(now: 19 * second) == nil && failure.happened(now: 20 * second) == 2)
        #expect(!failure.isOver(now: 29 * second) && failure.isOver(now: 30 * second))
        #expect(failure.happened(now: 30 * second) == 1)
    }

    @Test("a full disk makes one line in ten seconds of each message, with the last error and a count; the end tells the rest")
    func lineRate() {
        fail(31)
        fail(5, "not removed")
        #expect(lines.all == ["not stored, full", "not removed, full"])
        clock.advance(seconds: 10)
        fail(1, error: "still full")
        #expect(lines.all.last == "not stored, still full, 31")
        fail(2, error: "full at last")
        failures.flush()
        #expect(lines.all.suffix(2) == ["not removed, full, 4", "not stored, full at last, 2"])
        failures.flush()
        #expect(lines.all.count == 5)
    }

    @Test("what is held back is told although nothing follows")
    func trailing() {
        fail(31)
        failures.tellRest { $0.rest(now: $1) }
        #expect(lines.all.count == 1)
        clock.advance(seconds: 10)
        failures.tellRest { $0.rest(now: $1) }
        #expect(lines.all == ["not stored, full", "not stored, full, 30"])
    }

    @Test("what is no failure passes as it is, also where its words are the same")
    func others() {
        for alarm in ["a", "b"] { logger.error("push alarm", metadata: ["push.alarm": "\(alarm)"]) }
        for _ in 0..<3 { logger.info("reloaded", metadata: ["error": "none"]) }
        #expect(lines.all.count == 5)
    }

    @Test("more messages than are told apart are written as they come, until old ones are forgotten")
    func bound() {
        for index in 0..<RepeatedFailures.messagesMax { fail(1, "message \(index)") }
        fail(2, "one more")
        #expect(lines.all.suffix(2) == ["one more, full", "one more, full"])
        clock.advance(seconds: 10)
        fail(2, "one more")
        #expect(lines.all.count == RepeatedFailures.messagesMax + 3)
    }
}
