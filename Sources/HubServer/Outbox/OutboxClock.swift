internal import HubCore
internal import HubDelivery
internal import Logging

/// The wall clock may be set by hours while pushes wait: how long they wait, and how long they are worth anything, stays the same.
extension Outbox {
    /// Milliseconds since 1970, as everything that waits here counts them.
    var now: Int64 { clock.wall(at: time.monotonicNanoseconds) ?? time.wallMilliseconds }

    /// Moves everything that waits when the wall clock was set. Only where no delivery is between two places: what the gateways have is
    /// moved when they answer.
    func followClock() {
        guard let step = clock.look(time) else { return }
        let shift = step.milliseconds
        clockShift += shift
        clockSteps = clockSteps.suffix(Self.clockStepsMax - 1) + [step]
        queue.shift(by: shift)
        laneWaits = laneWaits.mapValues { LaneWait(until: $0.until + shift, isFirm: $0.isFirm) }
        reloadedAt += shift
        timer?.task.cancel()
        timer = nil
        // Limits are counted anew, as after a restart. The end of quiet hours is a time of day: it is asked for again.
        rules.forget()
        for var delivery in queue.unparked {
            let isQuiet = delivery.attempts == 0 && delivery.outcome == PushBudget.Reason.quietHours.rawValue
            if isQuiet { delivery.dueAt -= shift }
            rules.restore(delivery, now: step.to)
            if isQuiet {
                delivery.dueAt = step.to
                queue.insert(delivery)
            }
        }
        logger.warning(
            "the wall clock was set; what waits goes on waiting for as long as before",
            metadata: [
                "clock.from": .string(Timestamp.iso8601(milliseconds: step.from)),
                "clock.to": .string(Timestamp.iso8601(milliseconds: step.to)),
                "clock.seconds": "\(shift / 1000)", "push.waiting": "\(queue.count)",
            ])
    }

    private static let clockStepsMax = 8

    /// A delivery that comes in while the wall clock has been set and what waits has not been moved: it will be moved with the rest.
    /// - Parameter ahead: how far the wall clock is ahead of `now`.
    func inTime(_ delivery: PushRecord, _ ahead: Int64) -> PushRecord {
        guard let timing = delivery.timing, abs(timing.committedAt - now - ahead) < abs(timing.committedAt - now) else { return delivery }
        return delivery.shifted(by: -ahead)
    }

    /// How far a stored delivery has to be moved that was committed before the wall clock was set.
    func missedShift(of delivery: PushRecord, now: Int64) -> Int64 {
        guard let committedAt = delivery.timing?.committedAt else { return 0 }
        return clockSteps.reduce(0) { shift, step in
            let isBefore = step.milliseconds > 0 ? committedAt + shift <= step.from : committedAt + shift > now
            return isBefore ? shift + step.milliseconds : shift
        }
    }
}

extension PushRecord {
    /// The same, with all its times moved.
    func shifted(by milliseconds: Int64) -> PushRecord {
        if milliseconds == 0 { return self }
        var delivery = self
        delivery.dueAt += milliseconds
        delivery.firstAttemptAt = firstAttemptAt.map { $0 + milliseconds }
        delivery.attempt?.startedAt += milliseconds
        if var message {
            message.expiresAt += milliseconds
            message.committedAt += milliseconds
            delivery.message = message
            // The setter takes the message's; a store sets it apart.
            delivery.sequence = sequence
        }
        return delivery
    }
}
