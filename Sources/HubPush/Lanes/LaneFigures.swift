package import HubDelivery
internal import HubHTTPClient

/// How one lane stands and what it has done: a copy, for metrics.
package struct LaneFigures: Sendable {
    package enum State: String, Sendable, CaseIterable {
        case open
        /// Its credentials or its configuration make sending hopeless.
        case stopped
        /// Its gateway does not answer: single pushes are tried.
        case outage
    }

    /// Gateway, environment and ids; no secret. Two lanes can have the same.
    package var name: String
    package var provider: PushProvider
    package var state = State.open
    /// Pushes handed over and not answered.
    package var inFlight = 0
    /// A second, at present, together with other lanes of the same project; nil: as many as are answered.
    package var rate: Double?
    /// Of its topics, those that are stopped by themselves.
    package var stoppedTopics = 0
    /// Of those in flight, what waits in front of the HTTP client, and how many it lets in at present.
    package var queued = 0
    package var window = 0
    /// Since the start: connections opened, times all of them were given up, requests that libcurl began to send more than once, answers
    /// that did not come over HTTP/2, pushes not taken because the queue was full.
    package var connectionsOpened = 0
    package var renewals = 0
    package var repeatedByLibcurl = 0
    package var answeredOverHTTP1 = 0
    package var refused = 0

    package init(name: String, provider: PushProvider) {
        self.name = name
        self.provider = provider
    }
}

extension PushLane {
    func figures(name: String, provider: PushProvider) -> LaneFigures {
        var figures = pace(name: name, provider: provider)
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

extension LanePace {
    /// - Parameter now: nanoseconds of the monotonic clock.
    func figures(name: String, provider: PushProvider, now: UInt64) -> LaneFigures {
        let state: LaneFigures.State = gate.reason != nil ? .stopped : breaker.isOpen ? .outage : .open
        var figures = LaneFigures(name: name, provider: provider)
        figures.state = state
        figures.inFlight = inFlight
        figures.rate = allowed(now: now)
        return figures
    }
}

extension PushLanes {
    /// In no particular order.
    var figures: [LaneFigures] {
        let apns = apnsLanes.values.map { lane in
            var figures = lane.lane.figures(name: lane.name, provider: .apns)
            figures.stoppedTopics = apnsGateways.values.reduce(0) { $0 + $1.stoppedTopics(on: lane) }
            return figures
        }
        return apns + fcmGateways.values.map(\.figures)
    }
}

extension APNsGateway {
    /// How many of this app's topics are stopped on the lane: none or one.
    fileprivate func stoppedTopics(on lane: APNsLane) -> Int {
        [APNsEnvironment.production, .sandbox].map(side).contains { $0.lane === lane && $0.gate.reason != nil } ? 1 : 0
    }
}
