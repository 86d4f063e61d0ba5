internal import HubCore
internal import HubDelivery

/// The time that pushes wait by.
///
/// An operator may set the wall clock by hours while pushes wait. The time of this clock ignores the step until `follow`; the owner then
/// moves everything that waits. So each push waits, and lives, for as long as before.
struct OutboxClock: Sendable {
    private var clock = ClockSteps()
    /// The latest steps.
    private var steps: [ClockSteps.Step] = []
    /// Milliseconds by which the wall clock was set since the start.
    private(set) var shift: Int64 = 0

    private static let stepsMax = 8

    init(at now: Moment) { _ = clock.look(wall: now.wall, monotonic: Self.nanoseconds(now)) }

    private static func nanoseconds(_ now: Moment) -> UInt64 { UInt64(now.monotonic) * 1_000_000 }

    /// Milliseconds since 1970.
    func time(at now: Moment) -> Int64 { clock.wall(at: Self.nanoseconds(now)) ?? now.wall }

    /// Adopts the wall clock.
    /// - Returns: the step by which everything that waits has to be moved; nil: the wall clock was not set.
    mutating func follow(_ now: Moment) -> ClockSteps.Step? {
        guard let step = clock.look(wall: now.wall, monotonic: Self.nanoseconds(now)) else { return nil }
        shift += step.milliseconds
        steps = steps.suffix(Self.stepsMax - 1) + [step]
        return step
    }

    /// A push that was committed by the wall clock as it is set, in the time of this clock: `follow` moves it with the others.
    func inTime(_ push: PushRecord, at now: Moment) -> PushRecord {
        let time = time(at: now)
        let ahead = now.wall - time
        guard abs(ahead) >= ClockSteps.leastMilliseconds, let timing = push.timing,
            abs(timing.committedAt - now.wall) < abs(timing.committedAt - time)
        else { return push }
        return push.shifted(by: -ahead)
    }

    /// Milliseconds by which a stored push has to be moved that was committed before the wall clock was set.
    /// - Parameter time: milliseconds since 1970, on this clock.
    func missedShift(of push: PushRecord, time: Int64) -> Int64 {
        guard let committedAt = push.timing?.committedAt else { return 0 }
        return steps.reduce(0) { shift, step in
            let isBefore = step.milliseconds > 0 ? committedAt + shift <= step.from : committedAt + shift > time
            return isBefore ? shift + step.milliseconds : shift
        }
    }
}

extension PushRecord {
    /// The same push with all times moved.
    func shifted(by milliseconds: Int64) -> PushRecord {
        if milliseconds == 0 { return self }
        var push = self
        push.dueAt += milliseconds
        push.firstAttemptAt = firstAttemptAt.map { $0 + milliseconds }
        push.attempt?.startedAt += milliseconds
        if var message {
            message.expiresAt += milliseconds
            message.committedAt += milliseconds
            push.message = message
            // The setter takes the message's; a store sets it apart.
            push.sequence = sequence
        }
        return push
    }
}
