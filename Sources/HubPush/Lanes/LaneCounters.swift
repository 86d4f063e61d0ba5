package import HubDelivery
internal import HubHTTPClient

/// State and totals of one lane: a copy, for metrics.
package struct LaneCounters: Sendable {
    /// A lane's ability to send.
    package enum State: String, Sendable, CaseIterable {
        case open
        /// Stopped by wrong credentials or configuration.
        case stopped
        /// The gateway does not answer; single pushes try it.
        case outage
    }

    /// Gateway, environment and ids; no secret. Two lanes can share a name.
    package var name: String
    package var provider: PushProvider
    /// The gate's and breaker's combined state.
    package var state = State.open
    /// Pushes handed to the client and not answered.
    package var inFlight = 0
    /// Pushes per second at present, shared with the project's other lanes; nil: unlimited.
    package var rate: Double?
    /// Number of the lane's topics that are stopped individually.
    package var stoppedTopics = 0
    /// Pushes in flight that wait in front of the HTTP client.
    package var queued = 0
    /// Calls that the HTTP client allows at once at present.
    package var window = 0
    /// Connections opened since the start.
    package var connectionsOpened = 0
    /// Times all connections were closed on purpose.
    package var renewals = 0
    /// Requests that libcurl began to send more than once.
    package var repeatedByLibcurl = 0
    /// Answers that did not come over HTTP/2.
    package var answeredOverHTTP1 = 0
    /// Pushes refused because the queue was full.
    package var refused = 0

    package init(name: String, provider: PushProvider) {
        self.name = name
        self.provider = provider
    }
}

extension PushLane {
    var figures: LaneCounters {
        var figures = admissionFigures()
        let client = multi.counters
        figures.queued = client.queued
        figures.window = client.window
        figures.connectionsOpened = client.connectionsOpened
        figures.renewals = client.renewals
        figures.repeatedByLibcurl = client.repeatedByLibcurl
        figures.answeredOverHTTP1 = client.answeredOverHTTP1
        figures.refused = client.refused
        return figures
    }
}

extension LaneAdmission {
    /// - Parameter now: nanoseconds of the monotonic clock.
    func figures(name: String, provider: PushProvider, now: UInt64) -> LaneCounters {
        let state: LaneCounters.State = gate.reason != nil ? .stopped : breaker.isOpen ? .outage : .open
        var figures = LaneCounters(name: name, provider: provider)
        figures.state = state
        figures.inFlight = inFlight
        figures.rate = allowed(now: now)
        return figures
    }
}

extension PushLanes {
    /// Numbers of all lanes, in no particular order.
    var figures: [LaneCounters] {
        let apns = apnsLanes.values.map { lane in
            var figures = lane.figures
            figures.stoppedTopics = apnsGateways.values.reduce(0) { $0 + $1.stoppedTopics(on: lane) }
            return figures
        }
        return apns + fcmGateways.values.map(\.figures)
    }
}

extension APNsGateway {
    /// Number of this app's stopped topics on the lane: 0 or 1.
    fileprivate func stoppedTopics(on lane: PushLane) -> Int {
        [APNsEnvironment.production, .sandbox].map(side).contains { $0.lane === lane && $0.stoppedReason != nil } ? 1 : 0
    }
}
