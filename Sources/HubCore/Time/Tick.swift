internal import Dispatch
internal import Synchronization

/// Moments at which all tasks wake that look for something again and again. They share a wake of the machine, which costs more than most
/// looks.
package enum Tick {
    private static let began = ContinuousClock.now
    private static let sleeper = TickSleeper()
    /// Milliseconds that two looks of neighbouring ticks may be closer than a period: the first of them began late.
    package static let lateMax: Int64 = 50

    /// Waits until the next period of this length, in whole milliseconds, begins. A task that was late waits for less.
    /// - Throws: `CancellationError`.
    package static func wait(_ period: Duration) async throws {
        let began = began
        try await sleeper.wait(until: next(period, at: .now, since: began))
    }

    /// The beginning of the period after the one that `now` is in.
    package static func next(
        _ period: Duration, at now: ContinuousClock.Instant, since began: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        let length = period.milliseconds
        precondition(now >= began && length > 0, "ticks of \(period)")
        return began + .milliseconds(((now - began).milliseconds / length + 1) * length)
    }
}

/// A thread that sleeps for all tasks which wait. `Task.sleep` sets a timer of the system for each task and moment, which costs two wakes
/// of another thread.
private final class TickSleeper: Sendable {
    private struct State {
        var waiting: [UInt64: (until: ContinuousClock.Instant, task: CheckedContinuation<Void, any Error>)] = [:]
        var lastNumber: UInt64 = 0
        /// When the thread wakes; nil: it is awake.
        var wakesAt: ContinuousClock.Instant?
    }

    /// Longest sleep while nobody waits.
    private static let sleepMax: Duration = .seconds(3_600)

    private let state = Mutex(State())
    private let earlier = DispatchSemaphore(value: 0)

    init() { DispatchQueue(label: "tandem.ticks").async { [self] in while true { sleep() } } }

    func wait(until moment: ContinuousClock.Instant) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { task in
                let (isCancelled, isEarlier) = state.withLock { state in
                    // A cancellation from here on finds the task.
                    if Task.isCancelled { return (true, false) }
                    state.waiting[number] = (moment, task)
                    return (false, state.wakesAt.map { moment < $0 } ?? false)
                }
                if isEarlier { earlier.signal() }
                if isCancelled { task.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.task.resume(throwing: CancellationError())
        }
    }

    /// Wakes the tasks whose moment has come, and sleeps until the next one.
    private func sleep() {
        let (due, left) = state.withLock { state in
            let now = ContinuousClock.now
            let due = state.waiting.filter { $0.value.until <= now }
            for number in due.keys { state.waiting[number] = nil }
            let next = state.waiting.values.map(\.until).min() ?? now + Self.sleepMax
            state.wakesAt = next
            return (due.values.map(\.task), next - now)
        }
        for task in due { task.resume() }
        _ = earlier.wait(timeout: .now() + .milliseconds(Int(left.milliseconds) + 1))
        state.withLock { $0.wakesAt = nil }
    }
}
