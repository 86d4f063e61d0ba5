package import HubCore

/// How long publications take from their arrival to the end of the write to this loop's subscribers, by the way they came: measured
/// once for each publication that has subscribers here, however many they are.
package struct PublishLatency: Sendable {
    /// In the order of `Publication.Way.allCases`.
    package private(set) var histograms = [Histogram](repeating: Histogram(), count: Publication.Way.allCases.count)
    private var begun: [(way: Int, arrivedAt: UInt64)] = []
    /// How many of `begun` belong to the turn that goes out.
    private var goingOut = 0

    /// The publication, whose arrival is known, goes out with this turn, to somebody here.
    mutating func begin(_ publication: Publication) {
        let way = switch publication.way {
        case .direct: 0
        case .stored: 1
        case .client: 2
        }
        begun.append((way, publication.arrivedAt))
    }

    /// The turn begins to go out: what begins from now on belongs to the next one.
    mutating func goOut() {
        goingOut = begun.count
    }

    /// What went out is written.
    /// - Parameter now: nanoseconds of the monotonic clock, which may be read a little earlier on another thread.
    mutating func end(now: UInt64) {
        if goingOut == 0 { return }
        for (way, arrivedAt) in begun.prefix(goingOut) { histograms[way].note(nanoseconds: now > arrivedAt ? now - arrivedAt : 0) }
        begun.removeSubrange(..<goingOut)
        goingOut = 0
    }
}

/// What the engine of one loop has done and holds: a copy of its plain numbers, for metrics.
package struct EngineFigures: Sendable {
    package var counters = ChannelEngine.Counters()
    /// Frames that shared a write with others of their channel: `FanOut.joinedFrames`.
    package var joinedFrames: UInt64 = 0
    /// Occupied channels that this loop is home of.
    package var channels = 0
    /// By `Publication.Way`, in the order of its cases.
    package var latencies: [Histogram] = []

    package init() {}
}

extension ChannelEngine {
    package var figures: EngineFigures {
        var figures = EngineFigures()
        figures.counters = counters
        figures.joinedFrames = unsafe fanOut.joinedFrames
        figures.channels = home.count
        figures.latencies = latency.histograms
        return figures
    }

    /// What the turn flushed is written.
    package func written(at now: UInt64) {
        if unsafe !fanOut.isGoingOut { latency.end(now: now) }
    }
}
