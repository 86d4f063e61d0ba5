internal import HubCore
internal import HubDelivery

/// Admission of a lane: gate, breaker, rate, devices, quarantine and pushes in flight combined. A pure state machine over a clock.
struct LanePace {
    /// Pushes handed to the client per allowed call. Enough to keep the client busy while outcomes are stored;
    /// the rest waits in the outbox, where urgent pushes can overtake.
    static let handedFactor = 5
    /// Minimum handed over even with a narrow window, so that the client has calls when the window opens.
    static let handedMin = 32

    var gate = LaneGate()
    private(set) var breaker = LaneBreaker()
    private let quota: LaneQuota
    private(set) var devices: DeviceRates
    private(set) var quarantine: Quarantine
    private(set) var inFlight = 0

    /// Change of the lane's state to report.
    enum Turn: Equatable {
        case outage, recovered
        /// The gateway's quota is spent.
        case slowed
    }

    /// - Parameters:
    ///   - perMinute: the gateway's quota; nil: none.
    ///   - hasDeviceBuckets: whether the gateway has a quota per device.
    ///   - unproven: share for unproven tokens.
    init(perMinute: Int?, hasDeviceBuckets: Bool, unproven: Quarantine.Share = .apns) {
        self.init(quota: LaneQuota(perMinute: perMinute), hasDeviceBuckets: hasDeviceBuckets, unproven: unproven)
    }

    /// - Parameter quota: may be shared with other lanes.
    init(quota: LaneQuota, hasDeviceBuckets: Bool, unproven: Quarantine.Share) {
        self.quota = quota
        quarantine = Quarantine(unproven)
        devices = DeviceRates(hasBuckets: hasDeviceBuckets)
    }

    // MARK: Asking

    /// - Parameters:
    ///   - window: calls that the client allows at once at present.
    ///   - now: nanoseconds of the monotonic clock, like all times here.
    mutating func room(isUnproven: Bool, window: Int, now: UInt64) -> PushRoom {
        if let closed = closed(now: now) {
            return closed.isProbeDue ? PushRoom(count: 1, urgent: 1) : PushRoom(count: 0, urgent: 0, again: closed.again)
        }
        let free = free(isUnproven: isUnproven, window: window)
        guard free > 0 else { return PushRoom(count: 0, urgent: 0) }
        return quota.withRate { rate in
            let open = rate.room(now: now)
            let count = min(free, open.count)
            return PushRoom(count: count, urgent: min(free, open.urgent), again: count == 0 ? rate.wait(now: now) : nil)
        }
    }

    /// Pushes per second at present; nil: no limit.
    func allowed(now: UInt64) -> Double? { quota.withRate { $0.allowed(now: now) } }

    /// Takes rate tokens and probes for the pushes. `entered` takes their places among those in flight.
    mutating func admit(_ candidates: [PushCandidate], window: Int, now: UInt64) -> [PushAdmission] {
        // Held for the whole batch, so that no other lane takes the tokens in between.
        quota.withRate { admit(candidates, window: window, rate: &$0, now: now) }
    }

    private mutating func admit(_ candidates: [PushCandidate], window: Int, rate: inout LaneRate, now: UInt64) -> [PushAdmission] {
        var free = [false: free(isUnproven: false, window: window), true: free(isUnproven: true, window: window)]
        var isProbing = false
        return candidates.map { candidate in
            if isProbing { return .wait(again: nil) }
            if let closed = closed(now: now) {
                guard closed.isProbeDue else { return .wait(again: closed.again) }
                isProbing = true
                if breaker.isOpen { breaker.probe(now: now) }
                return .go
            }
            let isUnproven = !quarantine.isProven(candidate.target)
            guard free[false, default: 0] > 0, free[isUnproven, default: 0] > 0 else { return .wait(again: nil) }
            let hasDevice = candidate.target.form.isOfDevice
            // The lane's rate comes first, because a push that waits for it must not count for its device.
            let open = rate.room(now: now)
            guard (candidate.isUrgent ? open.urgent : open.count) > 0 else {
                _ = rate.take(isUrgent: candidate.isUrgent, now: now)
                return .wait(again: rate.wait(now: now))
            }
            if hasDevice, let wait = devices.take(candidate.target.token, now: now) { return .deviceWait(wait) }
            _ = rate.take(isUrgent: candidate.isUrgent, now: now)
            free[false, default: 0] -= 1
            if isUnproven { free[true, default: 0] -= 1 }
            return .go
        }
    }

    /// Nil: open. `again` is nil while a probe is in flight.
    private func closed(now: UInt64) -> (isProbeDue: Bool, again: Duration?)? {
        guard let wait = [gate.wait(now: now), breaker.wait(now: now)].compactMap({ $0 }).max() else { return nil }
        if wait <= .zero { return (true, nil) }
        return (false, gate.isProbing || breaker.isProbing ? nil : wait)
    }

    private func free(isUnproven: Bool, window: Int) -> Int {
        let free = max(Self.handedMin, Self.handedFactor * window) - inFlight
        return isUnproven ? min(free, quarantine.limit - quarantine.inFlight) : free
    }

    // MARK: What becomes of pushes

    /// Notes a push handed to the client.
    /// - Returns: whether it counts as unproven; pass this to `left`.
    mutating func entered(_ target: PushTarget) -> Bool {
        inFlight += 1
        let isUnproven = !quarantine.isProven(target)
        if isUnproven { quarantine.entered() }
        return isUnproven
    }

    /// Notes the end of a push in flight.
    /// - Parameter isBad: whether the gateway called its token bad; nil: not mentioned.
    mutating func left(wasUnproven: Bool, isBad: Bool?) {
        inFlight -= 1
        if wasUnproven { quarantine.left(isBad: isBad) }
    }

    /// Applies an outcome to the lane.
    /// - Parameter sentAt: when the push was handed over; nil: just now.
    mutating func note(_ outcome: PushOutcome, _ target: PushTarget, sentAt: UInt64? = nil, now: UInt64) -> Turn? {
        switch outcome {
        case .accepted:
            if !quarantine.isProven(target) { quarantine.prove(target.token, now: now) }
            return answered(now: now)
        case .dead, .rejected: return answered(now: now)
        case .skippedUnconfigured: return nil
        case .retry(let after, let reason):
            switch RetryCause(reason: reason) {
            case .transport, .unavailable, .apnsUnavailable: return failed(now: now)
            case .deviceThrottled:
                devices.hold(target.token, for: after, now: now)
                return answered(now: now)
            case .throttled:
                let turn = answered(now: now)
                // A topic has a quota of its own, and the answer need not name the spent one: other pushes will tell.
                guard target.form.isOfDevice, quota.withRate({ $0.spent(for: after, sentAt: sentAt ?? now, now: now) }) else { return turn }
                return turn ?? .slowed
            // Not sent, or a matter of credentials.
            case .lane, nil: return nil
            }
        }
    }

    /// Notes that nothing can be sent or answered at present.
    mutating func failed(now: UInt64) -> Turn? { breaker.failed(now: now) ? .outage : nil }

    private mutating func answered(now: UInt64) -> Turn? {
        guard breaker.answered(now: now) else { return nil }
        quota.withRate { $0.recover(now: now) }
        return .recovered
    }
}
