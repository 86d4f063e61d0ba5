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

    /// A push that was just made, in the time of this clock.
    ///
    /// The maker of the push and this clock notice a step one after the other, in any order. A new push is due about now, so it is moved by
    /// those of the latest steps that bring it nearest to the present.
    func inTime(_ push: PushRecord, at now: Moment) -> PushRecord {
        let time = time(at: now)
        let ahead = now.wall - time
        if steps.isEmpty, abs(ahead) < ClockSteps.leastMilliseconds { return push }
        var candidates = abs(ahead) < ClockSteps.leastMilliseconds ? [0] : [0, -ahead]
        var sum: Int64 = 0
        for step in steps.reversed() {
            sum += step.milliseconds
            candidates.append(sum)
        }
        return push.shifted(by: candidates.min { abs(push.dueAt + $0 - time) < abs(push.dueAt + $1 - time) } ?? 0)
    }

    /// Milliseconds by which a push has to be moved that was made before the wall clock was set.
    /// - Parameters:
    ///   - madeAt: when, in milliseconds since 1970.
    ///   - time: milliseconds since 1970, on this clock.
    func missedShift(of madeAt: Int64, time: Int64) -> Int64 {
        steps.reduce(0) { shift, step in
            let isBefore = step.milliseconds > 0 ? madeAt + shift <= step.from : madeAt + shift > time
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
