package import HubCore

/// Time from a publication's arrival to the end of its write to this loop's subscribers, per path. Measured once per publication
/// with subscribers here.
package struct PublishLatency: Sendable {
    /// In the order of `Publication.Way.allCases`.
    package private(set) var histograms = [Histogram](repeating: Histogram(), count: Publication.Way.allCases.count)
    private var begun: [(way: Int, arrivedAt: UInt64)] = []
    /// Number of entries in `begun` that belong to the outgoing turn.
    private var goingOut = 0

    /// Notes a publication with a known arrival and subscribers here, for this turn.
    mutating func begin(_ publication: Publication) {
        let way =
            switch publication.way {
            case .direct: 0
            case .stored: 1
            case .client: 2
            }
        begun.append((way, publication.arrivedAt))
    }

    /// Assigns the noted publications to the outgoing turn.
    mutating func goOut() {
        goingOut = begun.count
    }

    /// Ends the measurement after the outgoing turn is written.
    /// - Parameter now: nanoseconds of the monotonic clock, which may be read a little earlier on another thread.
    mutating func end(now: UInt64) {
        if goingOut == 0 { return }
        assert(goingOut <= begun.count, "\(goingOut) of \(begun.count) publications go out")
        for (way, arrivedAt) in begun.prefix(goingOut) { histograms[way].note(nanoseconds: now > arrivedAt ? now - arrivedAt : 0) }
        begun.removeSubrange(..<goingOut)
        goingOut = 0
    }
}

/// Numbers of one loop's engine, copied for metrics.
package struct EngineCounters: Sendable {
    /// Totals since the start.
    package var counters = ChannelEngine.Counters()
    /// Frames that shared a write (`FanOut.joinedFrames`).
    package var joinedFrames: UInt64 = 0
    /// Occupied channels that this loop is home of.
    package var channels = 0
    /// One histogram per `Publication.Way`, in the order of its cases.
    package var latencies: [Histogram] = []

    /// All zero.
    package init() {}
}

extension ChannelEngine {
    /// A copy of the current numbers. Call on the loop's thread.
    package var figures: EngineCounters {
        var figures = EngineCounters()
        figures.counters = counters
        figures.joinedFrames = unsafe fanOut.joinedFrames
        figures.channels = home.count
        figures.latencies = latency.histograms
        return figures
    }

    /// Notes that the flushed frames are written.
    /// - Parameter now: nanoseconds of the monotonic clock.
    package func written(at now: UInt64) {
        if unsafe !fanOut.isGoingOut { latency.end(now: now) }
    }
}
