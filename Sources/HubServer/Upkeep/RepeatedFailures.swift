package import HubCore
package import Logging
internal import Synchronization

/// Pace of one failure's log lines: the first at once, then a count of later ones, at most one line per ten seconds.
struct RepeatedFailure: Equatable {
    static let periodNanoseconds: UInt64 = 10_000_000_000

    private var toldAt: UInt64?
    /// Failures since the last line.
    private var untold = 0

    /// Counts a failure.
    /// - Parameter now: nanoseconds of the monotonic clock.
    /// - Returns: number of failures to report if a line is due; nil otherwise.
    mutating func happened(now: UInt64) -> Int? {
        untold += 1
        return take(now: now)
    }

    /// Number of failures to report once the ten seconds are over; nil if none, or not yet.
    mutating func rest(now: UInt64) -> Int? { untold == 0 ? nil : take(now: now) }

    /// Number of failures to report, even within the ten seconds; nil if none.
    mutating func restAtOnce() -> Int? {
        defer { untold = 0 }
        return untold == 0 ? nil : untold
    }

    /// Whether all failures have been reported.
    var isTold: Bool { untold == 0 }

    /// Whether the failure is so long ago that it may be forgotten.
    func isOver(now: UInt64) -> Bool { untold == 0 && toldAt.map { now - $0 >= Self.periodNanoseconds } ?? true }

    private mutating func take(now: UInt64) -> Int? {
        if let toldAt, now - toldAt < Self.periodNanoseconds { return nil }
        defer { untold = 0 }
        toldAt = now
        return untold
    }
}

/// Joins log lines that repeat a failure into one per ten seconds, with a count. A full disk makes one of each call.
///
/// A failure is a line with an `error`, identified by its message. All other lines pass unchanged.
package final class RepeatedFailures: Sendable {
    private struct Entry {
        var failure = RepeatedFailure()
        var last: LogEvent
        let handler: any LogHandler
    }

    /// Most messages that are tracked; failures with further ones are logged unchanged.
    static let messagesMax = 256
    /// Metadata key of the count.
    static let countKey = "failures"

    private let entries = Mutex<[String: Entry]>([:])
    private let time: any TimeSource

    /// - Parameter time: source of the monotonic clock.
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
        // The last failures of a series are reported even if no other follows.
        Task { [weak self] in
            do { try await Task.sleep(for: .nanoseconds(RepeatedFailure.periodNanoseconds)) } catch { return }
            self?.tellRest { $0.rest(now: $1) }
        }
    }

    /// Reports everything held back, at the end of the process.
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

/// A log handler that writes repeated failures as one line per ten seconds.
package struct PacedLogHandler: LogHandler {
    private var base: any LogHandler
    private let failures: RepeatedFailures

    /// A handler that writes to `base`.
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
