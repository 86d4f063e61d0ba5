internal import HubCore
internal import HubDelivery

/// Admission of pushes to a lane: a state machine over a clock. Only the quota is behind a lock, because a project's lanes share it.
///
/// `admit` asks for each push, in this order:
///
/// 1. Is the app's topic stopped? (a `LaneGate` of the app, APNs only)
/// 2. Is the lane stopped for its credentials? (`LaneGate`)
/// 3. Does the gateway answer? (`LaneBreaker`)
/// 4. Has the lane room for one more in flight, and for one more unproven token? (`Quarantine`)
/// 5. Has the gateway's quota a token? (`LaneRate`; urgent pushes draw on a reserve)
/// 6. May the device get another push now? (`DeviceRates`)
struct LaneAdmission {
    /// Pushes handed to the client per allowed call. Enough to keep the client busy while outcomes are stored;
    /// the rest waits in the outbox, where urgent pushes can overtake.
    static let handedFactor = 5
    /// Minimum handed over even with a narrow window, so that the client has calls when the window opens.
    static let handedMin = 32

    var gate = LaneGate()
    private(set) var breaker = LaneBreaker()
    /// Locked within the lane's lock; takes no further lock.
    private let quota: Guarded<LaneRate>
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
        self.init(quota: Guarded(LaneRate(perMinute: perMinute)), hasDeviceBuckets: hasDeviceBuckets, unproven: unproven)
    }

    /// - Parameter quota: may be shared with other lanes.
    init(quota: Guarded<LaneRate>, hasDeviceBuckets: Bool, unproven: Quarantine.Share) {
        self.quota = quota
        quarantine = Quarantine(unproven)
        devices = DeviceRates(hasBuckets: hasDeviceBuckets)
    }

    // MARK: Asking

    /// Places of a batch that `admit` has not given away.
    private struct Places {
        var free: Int
        var freeUnproven: Int
        /// A push of this batch is a trial, so the others wait for its end.
        var hasTrial = false
        /// Pushes of this batch that wait for their device, by its token.
        var waiting: [String: Int] = [:]
    }

    /// Takes rate tokens and trials for the pushes. `entered` takes their places among those in flight.
    /// - Parameters:
    ///   - topic: stop of the app's topic; nil: open.
    ///   - window: calls that the client allows at once at present.
    ///   - now: nanoseconds of the monotonic clock, like all times here.
    mutating func admit(_ candidates: [PushCandidate], topic: LaneStop? = nil, window: Int, now: UInt64) -> [PushAdmission] {
        var places = Places(free: free(isUnproven: false, window: window), freeUnproven: free(isUnproven: true, window: window))
        // Held for the whole batch, so that no other lane takes the tokens in between.
        return quota.withLock { rate in candidates.map { admit($0, &places, topic: topic, rate: &rate, now: now) } }
    }

    private mutating func admit(
        _ candidate: PushCandidate, _ places: inout Places, topic: LaneStop?, rate: inout LaneRate, now: UInt64
    ) -> PushAdmission {
        if places.hasTrial { return .wait(again: nil) }
        // 1. The topic.
        if let topic {
            guard topic.isTrialDue else { return .wait(again: topic.again) }
            places.hasTrial = true
        }
        // 2. The lane's gate, and 3. the breaker.
        if let stop = stop(now: now) {
            guard stop.isTrialDue else { return .wait(again: stop.again) }
            if breaker.isOpen { breaker.beginTrial(now: now) }
            places.hasTrial = true
            return .go
        }
        // 4. Room in the lane, and in the share of unproven tokens.
        let isUnproven = !quarantine.isProven(candidate.target)
        guard places.free > 0, !isUnproven || places.freeUnproven > 0 else { return .wait(again: nil) }
        // 5. The quota. It comes before the device, because a push that waits for the quota must not count for its device.
        let open = rate.room(now: now)
        guard (candidate.isUrgent ? open.urgent : open.count) > 0 else {
            _ = rate.take(isUrgent: candidate.isUrgent, now: now)
            return .wait(again: rate.wait(now: now))
        }
        // 6. The device.
        if candidate.target.form.isOfDevice, let wait = devices.take(candidate.target.token, now: now) {
            // Each waits behind those before it. Otherwise all of them would ask whenever the first may go.
            let ahead = places.waiting[candidate.target.token, default: 0]
            places.waiting[candidate.target.token] = ahead + 1
            return .deviceWait(wait + devices.pace * ahead)
        }
        _ = rate.take(isUrgent: candidate.isUrgent, now: now)
        places.free -= 1
        if isUnproven { places.freeUnproven -= 1 }
        return .go
    }

    /// The same questions for a whole route, without those about a single device. Reserves nothing.
    mutating func room(isUnproven: Bool, topic: LaneStop? = nil, window: Int, now: UInt64) -> PushRoom {
        if let topic {
            guard topic.isTrialDue else { return PushRoom(count: 0, urgent: 0, again: topic.again) }
            let room = room(isUnproven: isUnproven, window: window, now: now)
            return PushRoom(count: min(1, room.count), urgent: min(1, room.urgent), again: room.again)
        }
        if let stop = stop(now: now) {
            return stop.isTrialDue ? PushRoom(count: 1, urgent: 1) : PushRoom(count: 0, urgent: 0, again: stop.again)
        }
        let free = free(isUnproven: isUnproven, window: window)
        guard free > 0 else { return PushRoom(count: 0, urgent: 0) }
        return quota.withLock { rate in
            let open = rate.room(now: now)
            let count = min(free, open.count)
            return PushRoom(count: count, urgent: min(free, open.urgent), again: count == 0 ? rate.wait(now: now) : nil)
        }
    }

    /// Stop of the lane by gate and breaker; nil: open.
    private func stop(now: UInt64) -> LaneStop? {
        guard let gate = gate.stop(now: now) else { return breaker.stop(now: now) }
        return breaker.stop(now: now).map(gate.joined) ?? gate
    }

    private func free(isUnproven: Bool, window: Int) -> Int {
        let free = max(Self.handedMin, Self.handedFactor * window) - inFlight
        return isUnproven ? min(free, quarantine.limit - quarantine.inFlight) : free
    }

    /// Pushes per second at present; nil: no limit.
    func allowed(now: UInt64) -> Double? { quota.withLock { $0.allowed(now: now) } }

    // MARK: What becomes of pushes

    /// Notes a push handed to the client.
    /// - Returns: whether it counts as unproven; pass this to `left`.
    mutating func entered(_ target: PushTarget) -> Bool {
        inFlight += 1
        let isUnproven = !quarantine.isProven(target)
        if isUnproven { quarantine.entered() }
        return isUnproven
    }

    /// Notes the end of a push in flight. Call once per `entered`.
    /// - Parameter isBad: whether the gateway called its token bad; nil: not mentioned.
    mutating func left(wasUnproven: Bool, isBad: Bool?) {
        assert(inFlight > 0, "a push left its lane twice")
        inFlight -= 1
        if wasUnproven { quarantine.left(isBad: isBad) }
        assert(quarantine.inFlight <= inFlight, "more unproven pushes in flight than pushes")
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
                guard target.form.isOfDevice, quota.withLock({ $0.spent(for: after, sentAt: sentAt ?? now, now: now) }) else { return turn }
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
        quota.withLock { $0.recover(now: now) }
        return .recovered
    }
}

/// A stop of a lane or topic at one moment.
struct LaneStop: Equatable {
    /// Time until the next trial; zero: the next push is the trial.
    var wait: Duration
    /// A trial is in flight.
    var isOnTrial: Bool

    var isTrialDue: Bool { wait <= .zero }

    /// Wait of a push before it asks again; nil: until the trial's end.
    var again: Duration? { isOnTrial ? nil : wait }

    /// Both stops together.
    func joined(_ other: LaneStop) -> LaneStop {
        LaneStop(wait: max(wait, other.wait), isOnTrial: isOnTrial || other.isOnTrial)
    }
}
