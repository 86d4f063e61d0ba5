package import HubCore
package import Logging
internal import Synchronization

/// How often one failure is told: the first time at once, then what came meanwhile together, every ten seconds at most.
struct RepeatedFailure: Equatable {
    static let periodNanoseconds: UInt64 = 10_000_000_000

    private var toldAt: UInt64?
    /// Since it was told last.
    private var untold = 0

    /// It happened once more.
    /// - Parameter now: nanoseconds of the monotonic clock.
    /// - Returns: how often it happened that nobody was told of, when it is time to tell; else nil.
    mutating func happened(now: UInt64) -> Int? {
        untold += 1
        return take(now: now)
    }

    /// Failures left to tell once the ten seconds are over; nil: nothing, or not yet.
    mutating func rest(now: UInt64) -> Int? { untold == 0 ? nil : take(now: now) }

    /// Failures left to tell, although the ten seconds are not over.
    mutating func restAtOnce() -> Int? {
        defer { untold = 0 }
        return untold == 0 ? nil : untold
    }

    /// Nothing is held back.
    var isTold: Bool { untold == 0 }

    /// It has not happened for so long that it is as if it never had.
    func isOver(now: UInt64) -> Bool { untold == 0 && toldAt.map { now - $0 >= Self.periodNanoseconds } ?? true }

    private mutating func take(now: UInt64) -> Int? {
        if let toldAt, now - toldAt < Self.periodNanoseconds { return nil }
        defer { untold = 0 }
        toldAt = now
        return untold
    }
}

/// Lines of the log that say the same failure again and again, as many as a full disk makes of each call: one in ten seconds with a count.
///
/// A failure is a line with an `error`; its message tells it from others. All other lines pass as they are.
package final class RepeatedFailures: Sendable {
    private struct Entry {
        var failure = RepeatedFailure()
        var last: LogEvent
        let handler: any LogHandler
    }

    /// Messages that are told apart; more are written as they come.
    static let messagesMax = 256
    /// The text of a line that stands for several.
    static let countKey = "failures"

    private let entries = Mutex<[String: Entry]>([:])
    private let time: any TimeSource

    package init(time: any TimeSource) {
        self.time = time
    }

    fileprivate func log(_ event: LogEvent, to handler: any LogHandler) {
        let now = time.monotonicNanoseconds
        let message = event.message.description
        let (count, isHeldBack) = entries.withLock { entries -> (Int?, Bool) in
            if entries[message] == nil, entries.count >= Self.messagesMax {
                entries = entries.filter { !$0.value.failure.isOver(now: now) }
                if entries.count >= Self.messagesMax { return (1, false) }
            }
            var entry = entries[message] ?? Entry(last: event, handler: handler)
            defer { entries[message] = entry }
            entry.last = event
            let wasTold = entry.failure.isTold
            let count = entry.failure.happened(now: now)
            return (count, count == nil && wasTold)
        }
        if let count { handler.log(event: event.counting(count)) }
        guard isHeldBack else { return }
        // The last ones of a series are told as well, when nothing follows that would tell them.
        Task { [weak self] in
            do { try await Task.sleep(for: .nanoseconds(RepeatedFailure.periodNanoseconds)) } catch { return }
            self?.tellRest { $0.rest(now: $1) }
        }
    }

    /// Tells what was held back, at the end of the process.
    package func flush() { tellRest { failure, _ in failure.restAtOnce() } }

    func tellRest(_ take: (inout RepeatedFailure, UInt64) -> Int?) {
        let now = time.monotonicNanoseconds
        let due = entries.withLock { entries in
            entries.keys.sorted().compactMap { message -> (Entry, Int)? in
                guard var entry = entries[message], let count = take(&entry.failure, now) else { return nil }
                entries[message] = entry
                return (entry, count)
            }
        }
        for (entry, count) in due { entry.handler.log(event: entry.last.counting(count)) }
    }
}

extension LogEvent {
    fileprivate func counting(_ count: Int) -> LogEvent {
        guard count > 1 else { return self }
        var event = self
        event.metadata = (event.metadata ?? [:]).merging([RepeatedFailures.countKey: "\(count)"]) { $1 }
        return event
    }
}

/// A log in which repeated failures are one line in ten seconds.
package struct PacedLogHandler: LogHandler {
    private var base: any LogHandler
    private let failures: RepeatedFailures

    package init(_ base: any LogHandler, failures: RepeatedFailures) {
        self.base = base
        self.failures = failures
    }

    package func log(event: LogEvent) {
        if event.level >= .warning, event.metadata?["error"] != nil { failures.log(event, to: base) } else { base.log(event: event) }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    package var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    package var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    package var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }
}
